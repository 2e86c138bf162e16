// hash.c - hashing, the table behind every intern table, and exact integer arithmetic. Hashes are the same on
// every machine: parts of a search are told from those of another by them.
#include "base/internal.h"

// The lowest byte first, whatever the machine. Eight bytes in one expression: compilers make one load of it.
static u64 word8(const char *s) {
  const u8 *b = (const u8 *)s;
  return (u64)b[0] | (u64)b[1] << 8 | (u64)b[2] << 16 | (u64)b[3] << 24 | (u64)b[4] << 32 | (u64)b[5] << 40 |
         (u64)b[6] << 48 | (u64)b[7] << 56;
}

static u64 word_of(const char *s, size_t n) {
  u64 w = 0;
  for (size_t k = 0; k < n; k++) w |= (u64)(u8)s[k] << 8 * k;
  return w;
}

// Every step is a bijection of the word for a fixed state and of the state for a fixed word: two inputs of
// one length that differ in one word never collide.
u64 hash_bytes(const void *p, size_t n, u64 seed) {
  const char *s = p;
  u64 h = hash_u64(n, seed + 1);
  for (; n >= 8; n -= 8, s += 8) h = hash_step(h, word8(s));
  if (n) h = hash_step(h, word_of(s, n));
  return hash_u64(h, n);
}

// The caller's hash may be a packed index, so its low bits alone would not spread.
static u32 home_slot(u64 h, u32 cap) { return (u32)((h * 0x9E3779B97F4A7C15u) >> 32) & (cap - 1); }

bool hmap_next(const hmap *m, u64 h, u32 *it, u32 *val) {
  if (!m->cap) return false;
  h = h ? h : 1;
  u32 home = home_slot(h, m->cap);
  for (;;) {
    u32 slot = (home + (*it)++) & (m->cap - 1);
    if (!m->hash[slot]) return false; // there is always one: at most three quarters are taken
    if (m->hash[slot] == h) {
      *val = m->val[slot];
      return true;
    }
  }
}

static void put(hmap *m, u64 h, u32 val) {
  u32 slot = home_slot(h, m->cap);
  while (m->hash[slot]) slot = (slot + 1) & (m->cap - 1);
  m->hash[slot] = h;
  m->val[slot] = val;
}

void hmap_add(arena *a, hmap *m, u64 h, u32 val) {
  if (m->n >= m->cap - m->cap / 4) {
    hmap old = *m;
    if (old.cap > 1u << 30) base_out_of_memory((size_t)old.cap * 24);
    m->cap = old.cap ? 2 * old.cap : 16;
    m->hash = ZNEWN(a, u64, m->cap);
    m->val = NEWN(a, u32, m->cap);
    for (u32 i = 0; i < old.cap; i++)
      if (old.hash[i]) put(m, old.hash[i], old.val[i]);
  }
  put(m, h ? h : 1, val);
  m->n++;
}

u32 hmap_get(const hmap *m, u64 h) {
  u32 it = 0, val;
  return hmap_next(m, h, &it, &val) ? val : 0;
}

void key_put_bytes(arena *a, key_words *k, const void *p, size_t n) {
  const char *s = p;
  u64 *w = vec_push_n(a, k, (u32)(1 + (n + 7) / 8));
  *w++ = n;
  for (; n >= 8; s += 8, n -= 8) *w++ = word8(s);
  if (n) *w = word_of(s, n);
}

static u64 key_hash(const key_words *k) { return hash_bytes(k->v, k->n * sizeof *k->v, 0); }

u32 key_find(const key_table *t, const key_words *k) {
  for (u32 it = 0, i; t->map.n && hmap_next(&t->map, key_hash(k), &it, &i);)
    if (t->key.v[i - 1].n == k->n && !memcmp(t->key.v[i - 1].v, k->v, k->n * sizeof *k->v)) return i;
  return 0;
}

u32 key_add(arena *a, key_table *t, const key_words *k) {
  *vec_push(a, &t->key) = (key_words){arena_dup(a, k->v, k->n * sizeof *k->v), k->n, k->n};
  hmap_add(a, &t->map, key_hash(k), t->key.n);
  return t->key.n;
}

i64 gcd_i64(i64 a, i64 b) {
  u64 x = a < 0 ? -(u64)a : (u64)a, y = b < 0 ? -(u64)b : (u64)b;
  while (y) {
    u64 r = x % y;
    x = y;
    y = r;
  }
  assert(x <= INT64_MAX); // only gcd(INT64_MIN, 0 or INT64_MIN) is not an i64
  return (i64)x;
}

i64 divisor_below(i64 n, i64 most) {
  i64 best = 1;
  for (i64 d = 1; d <= n / d; d++) {
    if (n % d) continue;
    if (d <= most) best = MAX(best, d);
    if (n / d <= most) best = MAX(best, n / d);
  }
  return best;
}

i64 divisor_above(i64 n, i64 least) {
  i64 best = n;
  for (i64 d = 1; d <= n / d; d++) {
    if (n % d) continue;
    if (d >= least) best = MIN(best, d);
    if (n / d >= least) best = MIN(best, n / d);
  }
  return best;
}

bool mul_i64(i64 a, i64 b, i64 *out) { return !__builtin_mul_overflow(a, b, out); }

// splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
u64 rng_next(u64 *state) {
  u64 z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double rng_unit(u64 *state) { return (double)(rng_next(state) >> 11) * 0x1p-53; }
