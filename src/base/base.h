// base.h - the ground everything stands on: arenas, growable arrays, symbols, locations, diagnostics,
// files and small helpers. Layer 0: knows nothing of tensors or programs.
//
// Idea: one `ctx` is one session. It owns an arena, the interned symbols and locations, and the list of
// diagnostics. The library never prints and never exits; the command line prints what the session holds.
#ifndef HEDDLE_BASE_H
#define HEDDLE_BASE_H
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int64_t i64;
typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef uint8_t u8;

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)   ((a) < (b) ? (a) : (b))
#define MAX(a, b)   ((a) > (b) ? (a) : (b))
#if defined(__GNUC__)
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define NORETURN          __attribute__((noreturn))
#else
#define PRINTF_LIKE(f, a)
#define NORETURN
#endif

// ---- memory ------------------------------------------------------------------------------------------
// An arena hands out memory that is freed all at once. Never returns NULL: when memory runs out it jumps to
// `*base_oom` if set (the API boundary sets it, thread-local), else prints one line and aborts.
typedef struct arena arena;
typedef struct {
  void *block;
  size_t used;
} arena_mark_t;
arena *arena_new(void);
void arena_free(arena *a);                  // NULL is fine
void *arena_alloc(arena *a, size_t bytes);  // aligned to 16, not cleared
void *arena_zalloc(arena *a, size_t bytes); // cleared
void *arena_dup(arena *a, const void *p, size_t bytes);
char *arena_strdup(arena *a, const char *s);
char *arena_strndup(arena *a, const char *s, size_t n);
char *arena_printf(arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
arena_mark_t arena_mark(arena *a);            // scratch: everything allocated after the mark ...
void arena_release(arena *a, arena_mark_t m); // ... is given back here (LIFO)
size_t arena_bytes(const arena *a);           // bytes taken from the system
extern _Thread_local jmp_buf *base_oom;
extern _Thread_local i64 base_fail_after; // fault injection: the n-th block allocation fails; 0 = off
NORETURN void base_out_of_memory(size_t bytes);
void base_trim(void); // gives memory that was freed back to the system, where malloc has kept it
void base_zero(void *p,
               size_t bytes);    // of malloc's memory; whole pages are given back until somebody writes there
void *base_malloc(size_t bytes); // malloc that obeys base_oom and base_fail_after

#define NEW(a, T)      ((T *)arena_zalloc(a, sizeof(T)))
#define NEWN(a, T, n)  ((T *)arena_alloc(a, sizeof(T) * (size_t)(n)))
#define ZNEWN(a, T, n) ((T *)arena_zalloc(a, sizeof(T) * (size_t)(n)))

// Growable array in an arena (old storage stays in the arena until it is freed: at most twice the final
// size is taken). VEC(int) xs = {0}; *vec_push(a, &xs) = 3; xs.v[0].
#define VEC(T)                                                                                               \
  struct {                                                                                                   \
    T *v;                                                                                                    \
    u32 n, cap;                                                                                              \
  }
void *vec_grow(arena *a, void *v, u32 n, u32 *cap, u32 want, size_t size);
#define vec_reserve(a, vec, want)                                                                            \
  ((vec)->cap >= (want)                                                                                      \
       ? (void)0                                                                                             \
       : (void)((vec)->v = vec_grow(a, (vec)->v, (vec)->n, &(vec)->cap, (want), sizeof *(vec)->v)))
#define vec_push(a, vec) (vec_reserve(a, vec, (vec)->n + 1), &(vec)->v[(vec)->n++])
#define vec_push_n(a, vec, k)                                                                                \
  (vec_reserve(a, vec, (vec)->n + (k)), (vec)->n += (k), &(vec)->v[(vec)->n - (k)])

// ---- hashing, numbers --------------------------------------------------------------------------------
u64 hash_bytes(const void *p, size_t n, u64 seed);
static inline u64 hash_u64(u64 x, u64 seed) {
  x ^= seed * 0x9E3779B97F4A7C15u;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  return x ^ (x >> 32);
}
// One word more of several; a hash_u64 ends them.
static inline u64 hash_step(u64 h, u64 x) {
  h = (h ^ x) * 0x9FB21C651E98DF25u;
  return h ^ (h >> 35);
}
// Open-addressed map from a 64-bit hash (0 is remapped) to u32; the caller compares keys. Used by every
// intern table: for (u32 it = 0, id; hmap_next(&m, h, &it, &id);) if (same(id)) return id;  hmap_add(...).
typedef struct {
  u64 *hash;
  u32 *val;
  u32 cap, n;
} hmap;
bool hmap_next(const hmap *m, u64 h, u32 *it, u32 *val); // walks the values stored under hash h
void hmap_add(arena *a, hmap *m, u64 h, u32 val);
u32 hmap_get(const hmap *m, u64 h); // first value under h, 0 if none (h unique by construction)

// Keys of any length, compared in full. A key's number counts from 1, in the order in which they came.
typedef struct {
  u64 *v;
  u32 n, cap;
} key_words;                                                         // {0}; vec_push and these add to it
void key_put_bytes(arena *a, key_words *k, const void *p, size_t n); // and how many
typedef struct {
  hmap map;
  VEC(key_words) key;
} key_table;
u32 key_find(const key_table *t, const key_words *k);    // 0: it is not there
u32 key_add(arena *a, key_table *t, const key_words *k); // copies it; it is not there yet

i64 gcd_i64(i64 a, i64 b);
// Of n > 0: its largest divisor up to `most`, its least from `least` on; 1 and n where there is none. Time: root of n.
i64 divisor_below(i64 n, i64 most);
i64 divisor_above(i64 n, i64 least);
bool mul_i64(i64 a, i64 b, i64 *out); // false on overflow
// Of counts (not negative): INT64_MAX, which is printed as more than 9.2e18, instead of wrapping.
static inline i64 add_sat(i64 a, i64 b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }
static inline i64 mul_sat(i64 a, i64 b) { return b && a > INT64_MAX / b ? INT64_MAX : a * b; }
static inline i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }
u64 rng_next(u64 *state);    // splitmix64: the state is any seed
double rng_unit(u64 *state); // [0,1)
u64 clock_ns(void);          // monotonic

// ---- symbols and locations ---------------------------------------------------------------------------
typedef struct {
  u32 i;
} sym; // interned string; 0 = none, printed ""
typedef struct {
  u32 i;
} loc; // where something came from; 0 = unknown

typedef struct ctx ctx;
ctx *ctx_new(void);
void ctx_free(ctx *c);
arena *ctx_arena(ctx *c); // lives as long as the session
// What op/ keeps with a session: the operators that were registered with it (op/own.c). ctx_free calls `end`, if there
// is one, before the memory goes.
void ctx_keep(ctx *c, void *kept, void (*end)(void *kept));
void *ctx_kept(const ctx *c); // NULL: nothing
sym sym_of(ctx *c, const char *s);
sym sym_ofn(ctx *c, const char *s, size_t n);
sym sym_fmt(ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
sym sym_with(ctx *c, sym name, const char *suffix);
const char *sym_str(const ctx *c, sym s);
u32 sym_len(const ctx *c, sym s);

// A location is a file with an optional line and column (text), or with a node path (ONNX: "graph/node" and
// "input 2"). `text` points at the line itself when the source text is known (for the caret), else NULL.
typedef struct {
  sym file, node, part; // part: "input 2", "attribute axis", ...
  u32 line, col;        // from 1; 0 = none
  const char *text;     // NUL- or newline-terminated source line, owned by the session
  loc alike; // of the same in the next copy of a repeated block, which is one function now; 0: none
} loc_info;
loc loc_text(ctx *c, sym file, u32 line, u32 col, const char *text);
loc loc_node(ctx *c, sym file, sym node, sym part);
const loc_info *loc_get(const ctx *c, loc l); // NULL for loc 0
void loc_set_alike(ctx *c, loc l, loc next);  // l is not 0
sym loc_place(ctx *c, loc l); // in a few words: its node, or file:line, or the file; 0: of loc 0

// ---- diagnostics -------------------------------------------------------------------------------------
// One row per diagnostic in diag.def: stable code, severity, one-line title, explanation for `heddle
// explain`. A diagnostic is a message at a location, with notes (each with its own location) and hints.
typedef enum { DIAG_WARNING, DIAG_ERROR } diag_severity;
typedef enum {
  DIAG_NONE,
#define DIAG(code, name, sev, title, text) name,
#include "base/diag.def"
#undef DIAG
  DIAG_COUNT
} diag_id;
typedef struct {
  const char *code, *name, *title, *text;
  diag_severity severity;
} diag_row;
const diag_row *diag_row_of(diag_id id); // never NULL for a valid id
diag_id diag_find(const char *code);     // "E0301" -> id; DIAG_NONE if unknown
void diag(ctx *c, diag_id id, loc at, const char *fmt, ...) PRINTF_LIKE(4, 5);
void diag_note(ctx *c, loc at, const char *fmt, ...) PRINTF_LIKE(3, 4); // belongs to the latest diag
void diag_hint(ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3);         // what the user can type or change
// A hint that proposes a number, for whoever says it in other words.
void diag_hint_number(ctx *c, u32 number, const char *fmt, ...) PRINTF_LIKE(3, 4);
u32 diag_errors(const ctx *c); // how many errors so far
u32 diag_count(const ctx *c);
void diag_clear(ctx *c);
void diag_truncate(ctx *c, u32 n);          // keep the first n (used by trial runs)
void diag_locate(ctx *c, u32 from, loc at); // of those from number `from` on that have none
typedef struct {
  diag_id id;
  loc at;
  const char *message;
  u32 notes;
} diag_item;
diag_item diag_get(const ctx *c, u32 index);
typedef struct {
  loc at;
  const char *message;
  bool hint;
  u32 number; // that a hint proposes; 0: none
} diag_part_item;
diag_part_item diag_part(const ctx *c, u32 index, u32 note); // notes and hints
// All diagnostics as text, jq/rustc style, with caret where the source line is known:
//   error[E0301]: matmul: inner extents differ: 1024 against 768
//     --> mlp.heddle:4:8
//      4 |   %y = matmul %a, %v
//        |        ^
//     note: ... hint: ...
char *diag_render(const ctx *c, arena *a);

// ---- text building -----------------------------------------------------------------------------------
typedef struct {
  arena *a;
  char *v;
  size_t n, cap;
} strbuf; // strbuf b = {.a = arena}; always NUL-terminated after a put
void sb_put(strbuf *b, const char *s);
void sb_putn(strbuf *b, const char *s, size_t n);
void sb_char(strbuf *b, char ch);
void sb_fmt(strbuf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void sb_json_str(strbuf *b, const char *s); // quoted and escaped
void sb_shell(strbuf *b, const char *s);    // as a shell reads it back: in quotes where it must be
// Names come from files of strangers: what a terminal does not show, but the characters to keep, as \x1b.
void sb_clean(strbuf *b, const char *s, size_t n, const char *keep);
void sb_i64(strbuf *b, i64 x); // fast path for printers
const char *sb_str(strbuf *b); // "" if nothing was put
// Messages are written for several: "1 plans are" becomes "1 plan is", in place. diag, its notes and hints,
// and lines of reports do so themselves.
char *text_agree(char *text);
const char *text_bytes(arena *a, double bytes); // "28.8 GiB", "512 B"
const char *text_bytes_beside(arena *a, i64 bytes,
                              i64 other); // in bytes where the other reads the same: "424055296 B"

// Did you mean? near_name x = near_to(word, n); then near_try(&x, name) with every name that there is. x.name
// is the one the fewest edits away from the word, of equal ones the first; NULL if all are more than 1 + n /
// 3 away.
typedef struct {
  const char *word, *name;
  size_t len;
  u32 limit;
  bool pattern;
} near_name;
near_name near_to(const char *word, size_t n);
near_name near_to_pattern(const char *word,
                          size_t n); // with * for anything and ? for one letter, which are not counted
void near_try(near_name *x, const char *name);

// ---- files -------------------------------------------------------------------------------------------
typedef struct {
  const u8 *data;
  size_t size;
  bool mapped;
} file_view;
bool file_map(ctx *c, const char *path, file_view *out); // read-only map; diagnostic and false on failure
void file_unmap(file_view *f);
// Outputs appear whole or not at all: written to a temporary beside the target, then renamed.
bool file_write(ctx *c, const char *path, const void *data, size_t n); // "-" writes to standard output
// The same in parts. What is put after a failure is dropped; file_end tells. NULL, false and a diagnostic.
typedef struct file_out file_out;
file_out *file_begin(ctx *c, arena *a, const char *path);
void file_put(file_out *f, const void *data, size_t n);
bool file_end(file_out *f);
void file_put_at(file_out *f, i64 at, const void *data, size_t n); // over what was put; not in a pipe
void file_drop(file_out *f);                                       // instead of file_end: nothing appears
// file_end then returns when the file and its name are on the disk: what is there survives a loss of power.
void file_durable(file_out *f);
// Fault injection: the n-th operation (write, sync, name) on outputs fails, and all after it, as if the process had
// ended there; a write that fails has written half. 0: off.
extern _Thread_local i64 base_io_fail_after;
bool file_exists(const char *path);
bool dir_exists(const char *path);
bool dir_readable(ctx *c, const char *path); // its files can be listed and opened; else false and E_FILE_OPEN
bool dir_make(ctx *c, const char *path);     // and files can be made there

// ---- JSON reading (small documents: npy headers, plans' --json, test data) ----------------------------
typedef enum { JSON_NULL, JSON_BOOL, JSON_NUM, JSON_STR, JSON_ARR, JSON_OBJ } json_kind;
typedef struct json json;
struct json {
  json_kind kind;
  u32 n;            // elements or members
  double num;       // also 0/1 for bool
  const char *str;  // string; for a number its text
  json *item;       // n elements; members' values
  const char **key; // n member names
};
const json *json_parse(ctx *c, arena *a, sym file, const char *text,
                       size_t n); // NULL and a diagnostic if bad
// The same of a document that begins in line `line` of the file, as in files with one a line.
const json *json_parse_line(ctx *c, arena *a, sym file, const char *text, size_t n, u32 line);
const json *json_get(const json *j, const char *key); // NULL if absent

// ---- YAML documents as the same tree, with line and column (machines, plans) --------------------------
typedef struct ynode ynode;
struct ynode {
  enum { Y_SCALAR, Y_SEQ, Y_MAP } kind;
  loc at;
  const char *str; // scalar text
  bool quoted;
  u32 n;
  ynode **item; // n elements; members' values
  ynode **key;  // n keys (scalars)
};
const ynode *yaml_parse(ctx *c, arena *a, sym file, const char *text,
                        size_t n);                      // NULL and a diagnostic if bad
const ynode *yaml_get(const ynode *y, const char *key); // NULL if absent

// ---- threads and progress ----------------------------------------------------------------------------
int cpu_count(void);
// Runs job(arg, i) for i in 0..n-1 on up to `threads` threads (the caller is one of them); returns when all
// are done.
void parallel_for(int threads, u32 n, void (*job)(void *arg, u32 i, int thread), void *arg);
typedef struct {
  const char *title;
  u64 total;
  u64 start_ns, last_ns;
  bool on;
} progress;
void progress_begin(progress *p, const char *title, u64 total); // draws on standard error if it is a terminal
void progress_step(progress *p, u64 done);
void progress_end(progress *p);

// ---- the order of plain numbers, for qsort and bsearch: ascending.c ----------------------------------------
int ascending_u32(const void *x, const void *y);
int ascending_i64(const void *x, const void *y);
int ascending_double(const void *x, const void *y);

// ---- protobuf: protobuf.c ------------------------------------------------------------------------------------
#include "base/protobuf.h"

// ---- rows of cells between commas: csv.c ---------------------------------------------------------------------
#include "base/csv.h"
#endif
