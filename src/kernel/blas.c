// blas.c - matrix products of f32 and f64 by OpenBLAS, where the machine has it.
//
// Idea: the library is opened when the first product asks, so that nothing is built or linked against it and a machine
// without it runs the same program. It is told to use one thread: who calls deals out the parts of a product, and cuts
// them by its extents alone, so that no result depends on the number of threads.
#include "kernel/internal.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

// Of Fortran, as every BLAS has them: columns next to each other, all by reference.
typedef void gemm_f32(const char *ta, const char *tb, const int *m, const int *n, const int *k,
                      const float *alpha, const float *a, const int *lda, const float *b, const int *ldb,
                      const float *beta, float *c, const int *ldc);
typedef void gemm_f64(const char *ta, const char *tb, const int *m, const int *n, const int *k,
                      const double *alpha, const double *a, const int *lda, const double *b, const int *ldb,
                      const double *beta, double *c, const int *ldc);

static struct {
  gemm_f32 *f32;
  gemm_f64 *f64;
  bool off, no_room;
  int callers; // threads that multiply at once, as far as they are known; 0: any
  char name[64];
} blas;

// The library keeps addresses for every thread that calls it, and asks again and again, for ever, where it is given none.
// Of a thread 128 MiB, as much for malloc there, and its stack; of the library itself less than 64.
static bool has_room(void) {
  const size_t each = 264 << 20, itself = 64 << 20,
               n = itself + (size_t)(blas.callers ? blas.callers : cpu_count()) * each;
  struct rlimit all, data;
  if (getrlimit(RLIMIT_AS, &all) || getrlimit(RLIMIT_DATA, &data) ||
      (all.rlim_cur == RLIM_INFINITY && data.rlim_cur == RLIM_INFINITY))
    return true;
  void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  munmap(p, n);
  return true;
}

// dlsym gives a pointer to data; ISO C has no cast of that to a function.
static void find(void *so, const char *name, void *to) {
  void *at = dlsym(so, name);
  memcpy(to, &at, sizeof at);
}

// The loops that an OpenBLAS should use which has taken those of its oldest processors; NULL: its own choice stands. It
// does so on processors that are newer than itself, and is then several times slower than it could be.
static const char *better_loops(void *so) {
#if defined(__GNUC__) && defined(__x86_64__)
  static const char *const old[] = {"Prescott", "Core2", "Penryn", "Nehalem"};
  char *(*name)(void) = NULL;
  find(so, "openblas_get_corename", &name);
  const char *is = name ? name() : "";
  for (size_t k = 0; k < COUNT_OF(old); k++) {
    if (strcmp(is, old[k])) continue;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd"))
      return "SKYLAKEX";
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "HASWELL" : NULL;
  }
#endif
  (void)so;
  return NULL;
}

// The library reads what its loops should be when it is opened.
static void *open_anew(void *so, const char *name, const char *loops) {
  static const char WORD[] = "OPENBLAS_CORETYPE";
  if (!loops || getenv(WORD)) return so;
  dlclose(so);
  setenv(WORD, loops, 1);
  so = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  unsetenv(WORD);
  return so;
}

// Only OpenBLAS is taken unasked: what else is called libblas may be slower than Heddle's own loops.
static void open_library(void) {
  const char *name = getenv("HEDDLE_BLAS");
  if (name && !strcmp(name, "none")) return;
  if (!name || !*name) name = "libopenblas.so.0";
  if ((blas.no_room = !has_room())) return;
  void *so = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (so) so = open_anew(so, name, better_loops(so));
  if (!so) return;
  void (*set_threads)(int) = NULL;
  find(so, "openblas_set_num_threads", &set_threads);
  if (set_threads) set_threads(1);
  find(so, "sgemm_", &blas.f32);
  find(so, "dgemm_", &blas.f64);
  char *(*config)(void) = NULL; // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  find(so, "openblas_get_config", &config);
  const char *about = config ? config() : name;
  const size_t first = strcspn(about, " "), second = about[first] ? strcspn(about + first + 1, " ") + 1 : 0;
  snprintf(blas.name, sizeof blas.name, "%.*s", (int)(first + second), about);
}

bool ker_has_blas(dtype t) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_library);
  return !blas.off && (t == DT_F32 ? blas.f32 != NULL : t == DT_F64 && blas.f64 != NULL);
}

bool kernel_set_blas(bool on) {
  blas.off = !on;
  return ker_has_blas(DT_F64);
}

const char *kernel_blas(void) { return ker_has_blas(DT_F32) ? blas.name : "no BLAS"; }

// Whether rows or columns lie next to each other, and how far apart the others are.
static char form_of(i64 rows, i64 cols, i64 row, i64 col, int *ld) {
  const bool by_rows = (col == 1 || cols == 1) && (row >= cols || rows == 1);
  *ld = (int)(by_rows ? MAX(rows == 1 ? cols : row, 1) : MAX(cols == 1 ? rows : col, 1));
  return by_rows ? 'N' : 'T';
}

bool ker_blas_takes(i64 rows, i64 cols, i64 row, i64 col) {
  const i64 most = INT32_MAX;
  if (rows > most || cols > most || row > most || col > most) return false;
  return ((col == 1 || cols == 1) && (row >= cols || rows == 1)) ||
         ((row == 1 || rows == 1) && (col >= rows || cols == 1));
}

void ker_blas_product(dtype t, const matrix_product *x) {
  assert(ker_has_blas(t));
  int lda, ldb;
  // By columns a matrix of ours is its transpose: c^T = b^T a^T.
  const char ta = form_of(x->m, x->k, x->a_row, x->a_col, &lda),
             tb = form_of(x->k, x->n, x->b_row, x->b_col, &ldb);
  const int m = (int)x->m, n = (int)x->n, k = (int)x->k, ldc = (int)MAX(x->m == 1 ? x->n : x->c_row, 1);
  if (t == DT_F32) {
    const float one = 1, beta = x->add;
    blas.f32(&tb, &ta, &n, &m, &k, &one, x->b, &ldb, x->a, &lda, &beta, x->c, &ldc);
  } else {
    const double one = 1, beta = x->add;
    blas.f64(&tb, &ta, &n, &m, &k, &one, x->b, &ldb, x->a, &lda, &beta, x->c, &ldc);
  }
}

// ---- before the first product -----------------------------------------------------------------------------
enum { ROWS = 512, COLS = 1024, DEEP = 512 }; // no part of a product is packed in larger panels

typedef struct {
  int threads;
  atomic_int there;
  const float *operand;
  float *result; // of all threads, each its own
} warming;

// The library keeps memory for as many callers as it has had at once, so all of them meet here first: soon, or never where
// the system has no more threads.
static void warm_part(void *arg, u32 i, int thread) {
  enum { WAIT_NS = 20000000 };
  (void)thread;
  warming *x = arg;
  const u64 until = clock_ns() + WAIT_NS;
  atomic_fetch_add(&x->there, 1);
  while (atomic_load(&x->there) < x->threads && clock_ns() < until) {}
  ker_blas_product(DT_F32, &(matrix_product){.m = ROWS,
                                             .n = COLS,
                                             .k = DEEP,
                                             .a = x->operand,
                                             .a_row = DEEP,
                                             .a_col = 1,
                                             .b = x->operand,
                                             .b_row = COLS,
                                             .b_col = 1,
                                             .c = x->result + (size_t)i * ROWS * COLS,
                                             .c_row = COLS});
}

bool kernel_warm(int threads) {
  blas.callers = MAX(threads, 1);
  if (!ker_has_blas(DT_F32)) return !blas.no_room;
  warming x = {.threads = MAX(threads, 1)};
  float *zeros = calloc((size_t)DEEP * COLS, sizeof *zeros);
  x.operand = zeros, x.result = malloc((size_t)x.threads * ROWS * COLS * sizeof *x.result);
  if (x.operand && x.result) parallel_for(x.threads, (u32)x.threads, warm_part, &x);
  free(zeros), free(x.result);
  return true;
}
