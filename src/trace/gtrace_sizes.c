// gtrace_sizes.c - bytes of the messages of a ring: gradient_name_list.json has the shape of every tensor, and names of
// communications have the tensors' numbers, "3+4".
//
//   {"gradient_name_list": ["bertencoder0_position_weight;shape=(512, 1024);dtype=float16", ..]}
//
// A step of a ring of n carries an n-th of a tensor, over all its loops, channels and slices.
#include "trace/comm_words.h"
#include "trace/gtrace.h"
#include <stdlib.h>

enum { LONGEST = 1 << 26 };
static const i64 BYTES_MOST = (i64)1 << 50;

// "name;shape=(512, 1024);dtype=float16"; -1: it does not say.
static i64 bytes_of(ctx *c, const char *s) {
  const char *shape = strstr(s, ";shape="), *type = strstr(s, ";dtype=");
  if (!shape || !type || shape > type) return -1;
  type += 7;
  i64 n = comm_type_bytes(sym_str(c, comm_type_of(c, type, (u32)strcspn(type, ";"))));
  for (const char *p = shape; p < type && n > 0;) {
    if (*p < '0' || *p > '9') {
      p++;
      continue;
    }
    char *end;
    const long long d = strtoll(p, &end, 10);
    n = d > 0 && d < BYTES_MOST / n ? n * d : -1;
    p = end;
  }
  return n > 0 ? n : -1;
}

// "3+4"; -1: it has others than numbers of the list, or such without a size.
static i64 tensor_bytes(const char *name, const i64 *size, u32 n) {
  i64 sum = 0;
  for (const char *p = name;; p++) {
    char *end;
    const unsigned long k = strtoul(p, &end, 10);
    if (end == p || k >= n || size[k] < 0 || sum > BYTES_MOST) return -1;
    sum += size[k];
    if (!*end) return sum;
    if (*end != '+') return -1;
    p = end;
  }
}

bool gtrace_sizes(reading *x, arena *tmp, const char *path, u32 workers, const gtrace_message *v, u32 n) {
  const char *text;
  size_t length;
  bool cut;
  if (!file_exists(path)) return true;
  if (!trace_whole(x->c, tmp, path, LONGEST, &text, &length, &cut)) return false;
  const json *j = json_parse(x->c, tmp, sym_of(x->c, path), text, length), *list = j;
  if (!j) return false;
  if (j->kind == JSON_OBJ) list = json_get(j, "gradient_name_list");
  if (!list || list->kind != JSON_ARR) return true;
  i64 *size = NEWN(tmp, i64, list->n + 1);
  for (u32 k = 0; k < list->n; k++)
    size[k] = list->item[k].kind == JSON_STR ? bytes_of(x->c, list->item[k].str) : -1;
  hmap parts = {0}; // how many messages carry one step of the ring, of one worker
  VEC(u32) count = {0};
  u32 *of = NEWN(tmp, u32, n + 1);
  for (u32 k = 0; k < n; k++) {
    const u64 end = hash_step(hash_step(hash_step(24, v[k].what), v[k].from.i), v[k].to.i);
    const u64 h =
        hash_u64(hash_step(hash_step(hash_step(end, v[k].tensor.i), (u64)v[k].chunk), (u64)v[k].step), 1);
    u32 at = hmap_get(&parts, h);
    if (!at) {
      *vec_push(tmp, &count) = 0;
      hmap_add(tmp, &parts, h, at = count.n);
    }
    assert(count.v);
    count.v[of[k] = at - 1]++;
  }
  for (u32 k = 0; k < n; k++) {
    const i64 bytes = v[k].what > GTRACE_RECV ? -1 : tensor_bytes(sym_str(x->c, v[k].tensor), size, list->n);
    if (bytes > 0) x->t->comms.v[x->t->comm[v[k].event]].bytes = MAX(1, bytes / workers / count.v[of[k]]);
  }
  return true;
}
