// comm_words.c - communications in the words of profilers and of kernels' names: operations, element types,
// members. Not which kernel belongs to which communication (kineto_link.c).
#include "trace/comm_words.h"
#include <ctype.h>
#include <stdlib.h>

enum { LETTERS = 32 };
static void letters_of(const char *name, u32 n, char to[LETTERS]) {
  u32 m = 0;
  for (u32 k = 0; k < n && m + 1 < LETTERS; k++)
    if (isalpha((unsigned char)name[k])) to[m++] = (char)tolower((unsigned char)name[k]);
  to[m] = 0;
}

// Letters alone, in lower case: "_allgather_base" and "all_gather_into_tensor" begin with the same word then.
comm_kind comm_kind_of_word(const char *name, u32 n) {
  char letters[LETTERS];
  comm_kind kind = COMM_OTHER;
  size_t longest = 0;
  letters_of(name, n, letters);
  for (u32 k = 0; k < COMM_OTHER; k++) {
    const size_t len = strlen(comm_kind_rows[k].letters);
    if (len > longest && !strncmp(letters, comm_kind_rows[k].letters, len))
      kind = (comm_kind)k, longest = len;
  }
  return kind;
}

sym comm_op_of(ctx *c, const char *name, u32 n) {
  char letters[LETTERS];
  const comm_kind kind = comm_kind_of_word(name, n);
  if (kind < COMM_OTHER) return sym_of(c, comm_kind_rows[kind].name);
  letters_of(name, n, letters);
  if (!strcmp(letters, "wait") || !strcmp(letters, "init")) return (sym){0};
  return sym_ofn(c, name, n);
}

static const struct {
  const char *name, *type;
} types[] = {
    {"float", "f32"},
    {"half", "f16"},
    {"bfloat16", "bf16"},
    {"double", "f64"},
    {"byte", "u8"},
    {"char", "i8"},
    {"short", "i16"},
    {"int", "i32"},
    {"long", "i64"},
    {"long int", "i64"},
    {"bool", "bool"},
    {"float32", "f32"},
    {"float16", "f16"},
    {"float64", "f64"},
    {"int8", "i8"},
    {"uint8", "u8"},
    {"int32", "i32"},
    {"int64", "i64"},
    {"uint32", "u32"},
    {"uint64", "u64"},
    {"float8_e4m3fn", "f8"},
    {"float8_e5m2", "f8"},
    {"float8_e4m3fnuz", "f8"},
    {"float8_e5m2fnuz", "f8"},
    {"int8_t", "i8"},
    {"uint8_t", "u8"},
    {"int32_t", "i32"},
    {"uint32_t", "u32"},
    {"int64_t", "i64"},
    {"uint64_t", "u64"},
    {"__half", "f16"},
    {"__nv_bfloat16", "bf16"},
    {"signed char", "i8"},
    {"unsigned char", "u8"},
    {"f32", "f32"},
    {"f16", "f16"},
    {"bf16", "bf16"},
    {"f64", "f64"},
    {"i8", "i8"},
    {"u8", "u8"},
    {"i32", "i32"},
    {"u32", "u32"},
    {"i64", "i64"},
    {"u64", "u64"},
};
static const struct {
  const char *type;
  u32 bytes;
} sizes[] = {{"f32", 4}, {"f16", 2}, {"bf16", 2}, {"f64", 8}, {"u8", 1},  {"i8", 1}, {"i16", 2},
             {"i32", 4}, {"i64", 8}, {"bool", 1}, {"u32", 4}, {"u64", 8}, {"f8", 1}};

static const char *type_of(const char *name, size_t n) {
  for (u32 k = 0; k < COUNT_OF(types); k++)
    if (strlen(types[k].name) == n && !strncasecmp(types[k].name, name, n)) return types[k].type;
  return NULL;
}

u32 comm_type_bytes(const char *type) {
  for (u32 k = 0; k < COUNT_OF(sizes); k++)
    if (!strcmp(sizes[k].type, type)) return sizes[k].bytes;
  return 0;
}

sym comm_type_of(ctx *c, const char *name, u32 n) {
  if (n > 5 && !memcmp(name, "c10::", 5)) name += 5, n -= 5;
  const char *known = type_of(name, n);
  return known ? sym_of(c, known) : sym_ofn(c, name, n);
}

sym comm_members_of(ctx *c, const char *list, u32 n) {
  char *to = base_malloc(n + 1);
  u32 m = 0;
  bool whole = true;
  for (u32 k = 0; k < n; k++) {
    const char ch = list[k];
    if (isdigit((unsigned char)ch))
      to[m++] = ch;
    else if (ch == ',' && m && to[m - 1] != ',')
      to[m++] = ',';
    else if (ch == '.')
      whole = false; // "..." for those that are left out
  }
  while (m && to[m - 1] == ',') m--;
  const sym s = whole ? sym_ofn(c, to, m) : (sym){0};
  free(to);
  return s;
}

// ---- kernels ------------------------------------------------------------------------------------------------
static bool has(const char *v, u32 n, const char *what) {
  const size_t m = strlen(what);
  for (const char *p = v, *end = v + n;
       (size_t)(end - p) >= m && (p = memchr(p, *what, (size_t)(end - p) - m + 1)); p++)
    if (!memcmp(p, what, m)) return true;
  return false;
}

// Kernels of libraries beside NCCL, by what their names have; op NULL: not known from the name.
static const struct {
  const char *part, *op;
} libraries[] = {
    {"cross_device_reduce", "all_reduce"}, // custom all-reduce of serving engines
    {"deep_ep::", "all_to_all"},
    {"dpsk::ep::", "all_to_all"},
    {"mscclpp", NULL},
    {"msccl", NULL},
    {"nvshmem", NULL},
    {"rccl", NULL},
    {"oneccl", NULL},
    {"hccl", NULL},
};

// "AllReduce_Sum_f16_RING_LL(..." or "AllReduce_RING_LL_Sum_float(..." or "AllReduceRingLLKernel_sum_f32(...".
static void nccl_parts(ctx *c, const char *v, u32 n, trace_comm *out) {
  u32 end = 0;
  while (end < n && v[end] != '(' && v[end] != '<') end++;
  u32 word = 0;
  while (word < end && v[word] != '_') word++;
  const sym op = comm_op_of(c, v, word);
  if (comm_kind_named(sym_str(c, op)) != COMM_OTHER) out->op = op;
  for (u32 at = word; at < end;) { // a type may have underlines itself
    const u32 start = ++at;
    while (at < end && v[at] != '_') at++;
    const char *type = type_of(v + start, at - start);
    if (!type) type = type_of(v + start, end - start);
    if (type) out->type = sym_of(c, type);
  }
}

bool comm_of_kernel(ctx *c, const char *v, u32 n, trace_comm *out) {
  static const char *const starts[] = {"ncclDevKernel_", "ncclKernel_", "nccl_", "nccl"};
  for (u32 k = 0; k < COUNT_OF(starts); k++) {
    const u32 m = (u32)strlen(starts[k]);
    if (n < m || memcmp(v, starts[k], m)) continue;
    nccl_parts(c, v + m, n - m, out);
    return true;
  }
  if (n > 5 && has(v, n, "nccl") && has(v, n, "Kernel")) return true; // in a namespace, or renamed
  for (u32 k = 0; k < COUNT_OF(libraries); k++)
    if (has(v, n, libraries[k].part)) {
      if (libraries[k].op) out->op = sym_of(c, libraries[k].op);
      return true;
    }
  return false;
}
