// pickle.c - reads Python's pickles, protocols 0 to 5, that hold plain data, into the tree that json_parse makes. Not an
// interpreter: nothing is imported, called or executed, and what would need that is refused at its offset.
//
// Idea: a pickle is a program for a machine with a stack and a memo. Of its opcodes (pickle.def) those are run that
// make numbers, text and containers. Values are nodes named by their index, because a container may be filled after
// others refer to it; when the program stops, the nodes below its result become a tree. Nodes, references, nesting and
// the size of the tree when what is shared is counted as often as it is reached are bounded, so that a small file
// cannot ask for much memory, nor whoever walks the tree for much time.
#include "diagnose/flight.h"
#include <stdlib.h>

enum {
  NODES_MAX = 1 << 23,
  PART = 1 << 11,
  STEPS_MAX = 1 << 27, // references to nodes, from the stack and from containers
  TREE_MAX = 1 << 26,  // values of the tree, shared ones as often as they are reached
  DEPTH_MAX = 64,
  INT_BYTES_MAX = 1024
};
#define NO_NODE (~0u)

typedef struct {
  json v; // kind; what it is, once it is done
  enum { RAW, BUSY, DONE } made;
  u64 size;    // of the tree that it is the root of
  u32 deep;    // levels of that tree
  VEC(u32) of; // elements; keys and values in turn
} node;
typedef struct {
  ctx *c;
  arena *a;
  sym file;
  const u8 *start, *p, *end, *at; // at: the opcode
  const char *op;                 // its name
  bool stopped;
  u32 steps;
  node *part[NODES_MAX / PART]; // of nodes: they stay where they are
  u32 n;                        // nodes
  u32 small[256 + 3];           // numbers 0 to 255, None, False, True: their nodes, + 1
  VEC(u32) stack, marks, memo;  // marks: heights of the stack; memo: nodes
} reader;

static bool bad(reader *r, diag_id id, const char *fmt, ...) PRINTF_LIKE(3, 4);
static bool bad(reader *r, diag_id id, const char *fmt, ...) {
  char s[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(s, sizeof s, fmt, ap);
  va_end(ap);
  diag(r->c, id,
       loc_node(r->c, r->file, sym_fmt(r->c, "offset %llu", (unsigned long long)(r->at - r->start)),
                r->op ? sym_fmt(r->c, "opcode %s", r->op) : (sym){0}),
       "%s", s);
  return false;
}

// ---- bytes ------------------------------------------------------------------------------------------------
static const u8 *take(reader *r, u64 n) {
  const u64 left = (u64)(r->end - r->p);
  if (n > left) {
    bad(r, E_PICKLE, "%llu bytes are to follow, the file has %llu more", (unsigned long long)n,
        (unsigned long long)left);
    diag_hint(r->c, "copy the file again: it was cut off, or is not a pickle");
    return NULL;
  }
  r->p += n;
  return r->p - n;
}

static bool number(reader *r, int bytes, u64 *out) {
  const u8 *s = take(r, (u64)bytes);
  *out = 0;
  for (int k = bytes; s && k--;) *out = *out << 8 | s[k];
  return s;
}

// Up to the end of the line, which is passed over.
static const char *line(reader *r, size_t *n) {
  const u8 *s = r->p, *e = memchr(s, '\n', (size_t)(r->end - s));
  if (!e) {
    bad(r, E_PICKLE, "a line that does not end");
    return NULL;
  }
  r->p = e + 1;
  *n = (size_t)(e - s);
  return (const char *)s;
}

// ---- nodes and the stack ------------------------------------------------------------------------------------
static bool step(reader *r) {
  return ++r->steps <= STEPS_MAX || bad(r, E_LIMIT, "more than %d values", STEPS_MAX);
}

static bool push(reader *r, u32 n) { return step(r) && (*vec_push(r->a, &r->stack) = n, true); }

static node *node_at(const reader *r, u32 k) { return &r->part[k / PART][k % PART]; }
static node *node_new(reader *r) {
  if (r->n % PART == 0) r->part[r->n / PART] = NEWN(r->a, node, PART);
  return node_at(r, r->n++);
}

static bool room(reader *r) {
  return r->n < NODES_MAX || bad(r, E_LIMIT, "more than %d values that are not shared", NODES_MAX);
}

static bool push_new(reader *r, json v) {
  if (!room(r)) return false;
  *node_new(r) = (node){.v = v, .made = v.kind < JSON_ARR ? DONE : RAW, .size = 1};
  return push(r, r->n - 1);
}

// Elements above the latest mark, or all of them.
static u32 height(const reader *r) { return r->stack.n - (r->marks.n ? r->marks.v[r->marks.n - 1] : 0); }

static bool need(reader *r, u32 n) {
  return height(r) >= n || bad(r, E_PICKLE, "needs %u values, the stack has %u", n, height(r));
}

// The container below the top n values.
static node *below(reader *r, u32 n, json_kind k) {
  if (!need(r, n + 1)) return NULL;
  node *x = node_at(r, r->stack.v[r->stack.n - n - 1]);
  if (x->v.kind == k) return x;
  bad(r, E_PICKLE, "adds to what is not a %s", k == JSON_OBJ ? "dictionary" : "list or set");
  return NULL;
}

static bool move_to(reader *r, node *x, u32 n) {
  if (x->v.kind == JSON_OBJ && n % 2) return bad(r, E_PICKLE, "a key without a value");
  if (!x->of.n) x->of.v = NEWN(r->a, u32, n), x->of.cap = n; // most are filled at once
  for (u32 k = 0; k < n; k++) {
    if (!step(r)) return false;
    *vec_push(r->a, &x->of) = r->stack.v[r->stack.n - n + k];
  }
  r->stack.n -= n;
  return true;
}

// ---- what opcodes do --------------------------------------------------------------------------------------------
static bool refuse(reader *r, int arg) {
  (void)arg;
  bad(r, E_PICKLE, "refused: this names or runs code of a program, and Heddle reads data only");
  diag_hint(r->c, "write the dump as JSON, or with Python, from a file that you trust:\n"
                  "        json.dump(pickle.load(open(\"IN\", \"rb\")), open(\"OUT.json\", \"w\"))");
  return false;
}

static bool protocol(reader *r, int arg) {
  (void)arg;
  u64 v;
  if (!number(r, 1, &v)) return false;
  return v <= 5 || bad(r, E_PICKLE, "protocol %llu; 0 to 5 are read", (unsigned long long)v);
}

static bool frame(reader *r, int arg) {
  (void)arg;
  u64 n;
  if (!number(r, 8, &n)) return false;
  return n <= (u64)(r->end - r->p) || (take(r, n), false);
}

static bool stop(reader *r, int arg) {
  (void)arg;
  r->stopped = true;
  return need(r, 1);
}

static bool mark(reader *r, int arg) {
  (void)arg;
  return step(r) && (*vec_push(r->a, &r->marks) = r->stack.n, true);
}

static bool marked(reader *r, u32 *n) {
  *n = height(r);
  if (!r->marks.n) return bad(r, E_PICKLE, "needs a mark, there is none");
  r->marks.n--;
  return true;
}

static bool pop(reader *r, int arg) {
  (void)arg;
  if (!height(r) && r->marks.n) return r->marks.n--, true;
  return need(r, 1) && (r->stack.n--, true);
}

static bool pop_mark(reader *r, int arg) {
  (void)arg;
  u32 n;
  return marked(r, &n) && (r->stack.n -= n, true);
}

static bool dup_top(reader *r, int arg) {
  (void)arg;
  return need(r, 1) && push(r, r->stack.v[r->stack.n - 1]);
}

// A value that cannot change and is often met: one node for all.
static bool push_small(reader *r, u32 which, json v) {
  if (r->small[which]) return push(r, r->small[which] - 1);
  r->small[which] = r->n + 1;
  return push_new(r, v);
}

static bool constant(reader *r, int kind) { return push_small(r, 256, (json){.kind = (json_kind)kind}); }
static bool boolean(reader *r, int x) {
  return push_small(r, 257 + (u32)x, (json){.kind = JSON_BOOL, .num = x});
}

static bool push_number(reader *r, const char *text) {
  return push_new(r, (json){.kind = JSON_NUM, .num = strtod(text, NULL), .str = text});
}

static bool int_line(reader *r, int is_long) {
  size_t n, k = 0;
  const char *s = line(r, &n);
  if (!s) return false;
  if (!is_long && n == 2 && s[0] == '0' && (s[1] == '0' || s[1] == '1')) return boolean(r, s[1] == '1');
  if (is_long && n && s[n - 1] == 'L') n--;
  if (n > 3 * INT_BYTES_MAX) return bad(r, E_LIMIT, "an integer of %llu digits", (unsigned long long)n);
  k = n && *s == '-';
  bool ok = n > k;
  for (; k < n; k++) ok &= s[k] >= '0' && s[k] <= '9';
  return ok ? push_number(r, arena_strndup(r->a, s, n)) : bad(r, E_PICKLE, "not an integer");
}

static bool int_fixed(reader *r, int bytes) {
  u64 x;
  if (!number(r, abs(bytes), &x)) return false;
  if (bytes == 1 && r->small[x]) return push(r, r->small[x] - 1);
  if (bytes == 1) r->small[x] = r->n + 1;
  return push_number(r, arena_printf(r->a, "%lld", bytes < 0 ? (long long)(int32_t)x : (long long)x));
}

// Two's complement of any length, least byte first, in decimal.
static const char *decimal(arena *a, const u8 *s, u32 n) {
  u32 word[INT_BYTES_MAX / 4 + 1] = {0}, words = (n + 3) / 4, carry = 1, ndigits = 0;
  const bool minus = n && s[n - 1] >> 7;
  for (u32 k = 0; k < words * 4; k++) word[k / 4] |= (u32)(k < n ? s[k] : minus ? 255 : 0) << k % 4 * 8;
  for (u32 k = 0; minus && k < words; k++) word[k] = ~word[k] + carry, carry = carry && !word[k];
  char *digits = NEWN(a, char, words * 10 + 12), *e = digits + words * 10 + 11;
  *--e = 0;
  do {
    u64 rest = 0;
    for (u32 k = words; k--;) {
      rest = rest << 32 | word[k];
      word[k] = (u32)(rest / 10), rest %= 10;
    }
    *--e = (char)('0' + rest), ndigits++;
    while (words && !word[words - 1]) words--;
  } while (words);
  if (minus && ndigits) *--e = '-';
  return e;
}

static bool int_long(reader *r, int bytes) {
  u64 n;
  if (!number(r, bytes, &n)) return false;
  if (bytes == 4 && n >> 31) return bad(r, E_PICKLE, "a negative length");
  const u8 *s = take(r, n);
  if (s && n > INT_BYTES_MAX) return bad(r, E_LIMIT, "an integer of %llu bytes", (unsigned long long)n);
  return s && push_number(r, decimal(r->a, s, (u32)n));
}

static bool float_line(reader *r, int arg) {
  (void)arg;
  size_t n;
  const char *s = line(r, &n);
  if (!s) return false;
  if (!n || n > 64) return bad(r, E_PICKLE, "not a number");
  const char *text = arena_strndup(r->a, s, n);
  char *end;
  strtod(text, &end);
  return *end ? bad(r, E_PICKLE, "not a number") : push_number(r, text);
}

static bool float_fixed(reader *r, int bytes) {
  const u8 *s = take(r, (u64)bytes);
  u64 u = 0;
  double x;
  if (!s) return false;
  for (int k = 0; k < bytes; k++) u = u << 8 | s[k];
  memcpy(&x, &u, sizeof x);
  char text[40];
  for (int digits = 1; digits <= 17; digits++) { // the fewest that read back the same
    snprintf(text, sizeof text, "%.*g", digits, x);
    if (strtod(text, NULL) == x) break;
  }
  return push_new(r, (json){.kind = JSON_NUM, .num = x, .str = arena_strdup(r->a, text)});
}

static bool push_text(reader *r, const char *s, size_t n) {
  strbuf b = {.a = r->a};
  for (const char *z; (z = memchr(s, 0, n)); n -= (size_t)(z - s) + 1, s = z + 1) {
    sb_putn(&b, s, (size_t)(z - s));
    sb_put(&b, "\xEF\xBF\xBD"); // the tree's text cannot hold NUL
  }
  if (b.v) sb_putn(&b, s, n);
  return push_new(r, (json){.kind = JSON_STR, .str = b.v ? b.v : arena_strndup(r->a, s, n)});
}

static bool string(reader *r, int bytes) {
  u64 n;
  if (!number(r, bytes, &n)) return false;
  const u8 *s = take(r, n);
  return s && push_text(r, (const char *)s, (size_t)n);
}

static int hex(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

// n hexadecimal digits at s, if they are there.
static bool hexes(const char *s, const char *end, int n, u32 *out) {
  *out = 0;
  for (int k = 0; k < n; k++) {
    if (s + k >= end || hex(s[k]) < 0) return false;
    *out = *out << 4 | (u32)hex(s[k]);
  }
  return true;
}

static void put_code(strbuf *b, u32 u) {
  if (!u || u > 0x10FFFF || (u >= 0xD800 && u < 0xE000)) u = 0xFFFD;
  if (u < 0x80) {
    sb_char(b, (char)u);
    return;
  }
  const int more = u < 0x800 ? 1 : u < 0x10000 ? 2 : 3;
  sb_char(b, (char)((more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0) | u >> 6 * more));
  for (int k = more; k--;) sb_char(b, (char)(0x80 | (u >> 6 * k & 0x3F)));
}

// Protocol 0 writes a character below 256 as one byte, others as \uXXXX or \UXXXXXXXX.
static bool escaped_line(reader *r, int arg) {
  (void)arg;
  size_t n;
  const char *s = line(r, &n);
  if (!s) return false;
  strbuf b = {.a = r->a};
  for (const char *end = s + n; s < end;) {
    const int digits = *s != '\\' || s + 1 == end ? 0 : s[1] == 'u' ? 4 : s[1] == 'U' ? 8 : 0;
    u32 u = (u8)*s, low;
    if (digits && !hexes(s + 2, end, digits, &u)) return bad(r, E_PICKLE, "a wrong escape in text");
    s += digits ? digits + 2 : 1;
    if (u >> 10 == 0xD800 >> 10 && end - s > 1 && s[0] == '\\' && s[1] == 'u' && hexes(s + 2, end, 4, &low) &&
        low >> 10 == 0xDC00 >> 10)
      u = 0x10000 + ((u & 0x3FF) << 10) + (low & 0x3FF), s += 6;
    put_code(&b, u);
  }
  return push_new(r, (json){.kind = JSON_STR, .str = sb_str(&b)});
}

// As Python writes a string in a program: 'it\'s'.
static bool quoted_line(reader *r, int arg) {
  (void)arg;
  size_t n;
  const char *s = line(r, &n);
  if (!s) return false;
  if (n < 2 || (*s != '\'' && *s != '"') || s[n - 1] != *s) return bad(r, E_PICKLE, "text without quotes");
  strbuf b = {.a = r->a};
  static const char from[] = "ntr\\'\"", to[] = "\n\t\r\\'\"";
  for (const char *p = s + 1, *end = s + n - 1; p < end; p++) {
    const char *f;
    u32 u;
    if (*p != '\\' || p + 1 == end) {
      sb_char(&b, *p);
    } else if (p[1] == 'x' && hexes(p + 2, end, 2, &u)) {
      put_code(&b, u);
      p += 3;
    } else if (p[1] && (f = strchr(from, p[1]))) {
      sb_char(&b, to[f - from]);
      p++;
    } else {
      return bad(r, E_PICKLE, "a wrong escape in text");
    }
  }
  return push_text(r, sb_str(&b), b.n);
}

static bool empty(reader *r, int kind) { return push_new(r, (json){.kind = (json_kind)kind}); }

// The top n values become one container.
static bool gather(reader *r, u32 n, int kind) {
  node x = {.v = {.kind = (json_kind)kind}, .size = 1};
  if (!room(r) || !move_to(r, &x, n)) return false;
  *node_new(r) = x;
  return push(r, r->n - 1);
}

static bool since_mark(reader *r, int kind) {
  u32 n;
  return marked(r, &n) && gather(r, n, kind);
}

static bool tuple(reader *r, int n) { return need(r, (u32)n) && gather(r, (u32)n, JSON_ARR); }

static bool add_one(reader *r, int kind) {
  const u32 n = kind == JSON_OBJ ? 2 : 1;
  node *x = below(r, n, (json_kind)kind);
  return x && move_to(r, x, n);
}

static bool add_marked(reader *r, int kind) {
  u32 n;
  if (!marked(r, &n)) return false;
  node *x = below(r, n, (json_kind)kind);
  return x && move_to(r, x, n);
}

static bool memo_index(reader *r, int bytes, u64 *k) {
  if (bytes) return number(r, bytes, k);
  size_t n;
  const char *s = line(r, &n);
  *k = 0;
  if (!s) return false;
  bool ok = n > 0 && n < 10;
  for (size_t i = 0; ok && i < n; i++) ok &= s[i] >= '0' && s[i] <= '9', *k = *k * 10 + (u64)(s[i] - '0');
  return ok || bad(r, E_PICKLE, "not a number of the memo");
}

// A memo has no more than one value for every byte.
static bool put_at(reader *r, u64 k) {
  if (!need(r, 1)) return false;
  if (k >= (u64)(r->end - r->start))
    return bad(r, E_PICKLE, "number %llu of the memo in a file of %llu bytes", (unsigned long long)k,
               (unsigned long long)(r->end - r->start));
  while (r->memo.n <= k) *vec_push(r->a, &r->memo) = NO_NODE;
  r->memo.v[k] = r->stack.v[r->stack.n - 1];
  return true;
}

static bool put(reader *r, int bytes) {
  u64 k;
  return memo_index(r, bytes, &k) && put_at(r, k);
}

static bool memoize(reader *r, int arg) {
  (void)arg;
  return put_at(r, r->memo.n);
}

static bool get(reader *r, int bytes) {
  u64 k;
  if (!memo_index(r, bytes, &k)) return false;
  if (k >= r->memo.n || r->memo.v[k] == NO_NODE)
    return bad(r, E_PICKLE, "the memo has no number %llu", (unsigned long long)k);
  return push(r, r->memo.v[k]);
}

// ---- the tree -----------------------------------------------------------------------------------------------------
static bool finish(reader *r, u32 n, u32 depth);

// Keys are text in the tree. NULL and a diagnostic: of a kind that has none.
static const char *key_text(reader *r, const node *k) {
  switch (k->v.kind) {
  case JSON_STR:
  case JSON_NUM: return k->v.str;
  case JSON_BOOL: return k->v.num != 0 ? "True" : "False";
  case JSON_NULL: return "None";
  default: bad(r, E_PICKLE, "a dictionary has a key that is neither text nor a number"); return NULL;
  }
}

// Where the key is among those of x so far, else how many these are. Few are compared one by one: dumps have very many
// small dictionaries.
static u32 key_at(reader *r, const node *x, const char *key, hmap *seen) {
  enum { FEW = 32 };
  if (x->of.n / 2 <= FEW) {
    for (u32 k = 0; k < x->v.n; k++)
      if (x->v.key[k] == key || !strcmp(x->v.key[k], key)) return k;
    return x->v.n;
  }
  const u64 h = hash_bytes(key, strlen(key), 0);
  for (u32 it = 0, k; hmap_next(seen, h, &it, &k);)
    if (!strcmp(x->v.key[k], key)) return k;
  hmap_add(r->a, seen, h, x->v.n);
  return x->v.n;
}

// Of equal keys the last one counts, at the place of the first.
static bool finish_dict(reader *r, node *x, u32 depth) {
  hmap seen = {0};
  const u32 pairs = x->of.n / 2;
  x->v.item = NEWN(r->a, json, pairs), x->v.key = NEWN(r->a, const char *, pairs);
  for (u32 k = 0; k < pairs; k++) {
    const u32 value = x->of.v[2 * k + 1];
    const char *key = key_text(r, node_at(r, x->of.v[2 * k]));
    if (!key || !finish(r, value, depth + 1)) return false;
    const u32 to = key_at(r, x, key, &seen);
    x->v.n = MAX(x->v.n, to + 1);
    x->v.key[to] = key, x->v.item[to] = node_at(r, value)->v;
    x->size += 1 + node_at(r, value)->size;
    x->deep = MAX(x->deep, node_at(r, value)->deep);
  }
  return true;
}

static bool finish_list(reader *r, node *x, u32 depth) {
  x->v.item = NEWN(r->a, json, x->of.n);
  for (; x->v.n < x->of.n; x->v.n++) {
    const u32 value = x->of.v[x->v.n];
    if (!finish(r, value, depth + 1)) return false;
    x->v.item[x->v.n] = node_at(r, value)->v;
    x->size += node_at(r, value)->size;
    x->deep = MAX(x->deep, node_at(r, value)->deep);
  }
  return true;
}

static bool finish(reader *r, u32 n, u32 depth) {
  node *x = node_at(r, n);
  if (x->made == DONE) return true;
  if (x->made == BUSY) return bad(r, E_PICKLE, "a container that contains itself");
  if (depth > DEPTH_MAX) return bad(r, E_LIMIT, "nested deeper than %d levels", DEPTH_MAX);
  x->made = BUSY;
  if (!(x->v.kind == JSON_OBJ ? finish_dict(r, x, depth) : finish_list(r, x, depth))) return false;
  x->made = DONE;
  if (++x->deep > DEPTH_MAX) return bad(r, E_LIMIT, "nested deeper than %d levels", DEPTH_MAX);
  return x->size <= TREE_MAX || bad(r, E_LIMIT, "values that are shared would be more than %d", TREE_MAX);
}

const json *pickle_parse(ctx *c, arena *a, sym file, const u8 *data, size_t n) {
  static const struct {
    const char *name;
    bool (*run)(reader *r, int arg);
    int arg;
  } op[256] = {
#define OP(byte, name, run, arg) [byte] = {#name, run, arg},
#include "diagnose/pickle.def"
#undef OP
  };
  reader r = {.c = c, .a = a, .file = file, .start = data, .p = data, .end = data + n, .at = data};
  while (!r.stopped) {
    r.at = r.p, r.op = NULL;
    if (r.p == r.end) {
      bad(&r, E_PICKLE, "the file ends before the pickle does");
      diag_hint(c, "copy the file again: it was cut off, or is not a pickle");
      return NULL;
    }
    const u8 byte = *r.p++;
    r.op = op[byte].name;
    if (!r.op) {
      bad(&r, E_PICKLE, "byte 0x%02x is no opcode", byte);
      return NULL;
    }
    if (!op[byte].run(&r, op[byte].arg)) return NULL;
  }
  const u32 root = r.stack.v[r.stack.n - 1];
  return finish(&r, root, 1) ? &node_at(&r, root)->v : NULL;
}
