// peak.c - memory of the whole: the peak of every rank class, and what it is made of. How a function is
// walked is in bytes.c.
//
// Idea: one walk over main finds where every rank class has its peak. A second walk stops there and counts
// what is alive; if it is in a call, that function is walked again down to its own peak, and so on.
#include "sim/heap.h"

typedef struct tally { // of one rank class
  arena *a;
  i64 kind[MEM_KINDS];
  VEC(mem_item) item;
  hmap map; // (function, value, kind) -> item + 1
  sim_class *cls;
} tally;

// n buffers of the same kind.
static void count(tally *t, origin from, i64 bytes, u32 n) {
  if (!bytes) return;
  u64 h = hash_u64((u64)from.f.i << 32 | from.v, from.kind);
  u32 id = hmap_get(&t->map, h);
  t->kind[from.kind] += bytes;
  if (!id) {
    *vec_push(t->a, &t->item) = (mem_item){from.f, from.v, from.kind, 0, 0};
    hmap_add(t->a, &t->map, h, id = t->item.n);
  }
  t->item.v[id - 1].bytes += bytes;
  t->item.v[id - 1].count += n;
}

// Of a leaf that joins groups, the buffer that a rank class has.
static u32 buffer_on(const heap *h, u32 leaf, u32 cls) {
  const span l = h->leaf.v[leaf];
  for (u32 j = 0; j < l.n; j++)
    if (size_on(heap_at(h, h->pool.v[l.begin + j])->size, cls)) return h->pool.v[l.begin + j];
  return h->pool.v[l.begin];
}

// Where the leaves come from that are given to the call at hand.
static void origins_given(walk *w, u32 cls, const instr *i, const mbody *callee, origin *param) {
  heap *h = &w->h;
  const param_leaves *sp = &w->m->params[i->callee.i];
  for (u32 k = 0; k < sp->nparam; k++) {
    u32 q = sp->begin[k], n = sp->begin[k + 1], b = heap_whole(h, opd_of(w->f, i, k));
    for (u32 j = q; j < n; j++) {
      if (!callee->die[j]) continue;
      param[j] = b != NO_BUFFER ? heap_part_origin(heap_at(h, b), j - q)
                                : heap_at(h, buffer_on(h, walk_passed(w, i, j), cls))->from;
    }
  }
}

// Everything alive on a rank class: here, and in the call at hand down to where its peak is.
static void count_class(walk *w, u32 cls, const mbody *callee, const instr *i) {
  mem *m = w->m;
  sim *s = m->s;
  heap *h = &w->h;
  for (u32 k = 0; k < h->live.n; k++) {
    const buffer *b = heap_at(h, h->live.v[k]);
    if (b->given) continue;
    for (u32 j = 0; j < heap_parts(b); j++)
      count(m->tally, heap_part_origin(b, j), size_on(heap_part_size(b, j), cls) * (1 + heap_part_more(b, j)),
            1 + heap_part_more(b, j));
  }
  if (!callee) return;
  arena_mark_t mark = arena_mark(s->tmp);
  u32 pos = callee->cs->pos[cls];
  origin *param = ZNEWN(s->tmp, origin, m->params[i->callee.i].nleaf);
  mem_kind *ret = NEWN(s->tmp, mem_kind, i->nres);
  for (u32 r = 0; r < i->nres; r++) ret[r] = walk_kind(w, i->res + r, true);
  origins_given(w, cls, i, callee, param);
  context cx = {param, ret};
  u32 *ask = ZNEWN(s->tmp, u32, func_get(s->p, i->callee)->body.n + 1),
      *next = ZNEWN(s->tmp, u32, s->nclasses + 1);
  walk sub;
  walk_init(&sub, m, callee->row, callee->used, &cx);
  sub.until = pos ? callee->at[pos - 1] : 0;
  ask[sub.until] = cls + 1;
  sub.ask = ask;
  sub.ask_next = next;
  walk_run(&sub, callee->die, false);
  arena_release(s->tmp, mark);
}

// Does x come before y in the list?
static bool comes_first(const mem_item *x, const mem_item *y) {
  if (x->bytes != y->bytes) return x->bytes > y->bytes;
  if (x->f.i != y->f.i) return x->f.i < y->f.i;
  if (x->v != y->v) return x->v < y->v;
  return x->kind < y->kind;
}

// The first `most` of n items in order: there are thousands of them, and ten are asked for.
static u32 take_first(mem_item *top, u32 most, const mem_item *item, u32 n) {
  u32 ntop = 0;
  for (u32 k = 0; k < n; k++) {
    u32 at = ntop;
    if (ntop < most)
      ntop++;
    else if (!comes_first(&item[k], &top[--at]))
      continue;
    for (; at && comes_first(&item[k], &top[at - 1]); at--) top[at] = top[at - 1];
    top[at] = item[k];
  }
  return ntop;
}

static void count_all(walk *w, u32 cls, const mbody *callee, const instr *i) {
  tally *t = w->m->tally;
  sim_class *out = &t->cls[cls];
  u32 most = w->m->s->o->top ? w->m->s->o->top : 10;
  arena_mark_t mark = arena_mark(t->a);
  *t = (tally){.a = t->a, .cls = t->cls};
  count_class(w, cls, callee, i);
  i64 sum = 0;
  for (u32 k = 0; k < MEM_KINDS; k++) sum += t->kind[k];
  // distir never frees what a call made and nobody used: of no value any more once the call is over.
  if (w->m->distir && sum < out->peak_bytes)
    t->kind[MEM_TEMP] += out->peak_bytes - sum, sum = out->peak_bytes;
  assert(sum == out->peak_bytes);
  memcpy(out->peak_kind, t->kind, sizeof t->kind);
  most = MIN(t->item.n, most);
  out->top = NEWN(w->m->s->a, mem_item, most);
  out->ntop = take_first(out->top, most, t->item.v, t->item.n);
  arena_release(t->a, mark);
}

void walk_tell(walk *w, u32 num, const mbody *callee, const instr *i) {
  for (u32 u = w->ask[num]; u; u = w->ask_next[u])
    if (w->cx)
      count_class(w, u - 1, callee, i); // inside a call: part of a rank class's count
    else
      count_all(w, u - 1, callee, i);
}

// A result that lies where a parameter of main lay is that parameter in the next step.
static void find_carried(walk *w, sim *s) {
  const param_leaves *sp = &w->m->params[w->fn.i];
  for (u32 r = 0; r < w->f->rets.n; r++) {
    value v = w->f->rets.v[r];
    span x = heap_leaves(&w->h, v);
    u32 b = x.n == 1 ? heap_only(&w->h, x.begin) : NO_BUFFER;
    if (b >= sp->nleaf) continue;
    u32 p = sp->param[b];
    if (v != p + 1 && w->f->values.v[p + 1].ty.i == w->f->values.v[v].ty.i)
      *vec_push(s->a, &s->carry) = (sim_carry){r, p};
  }
}

// Where every rank class has its peak, and what it has before and after. ask, next: rank classes to ask for
// at an instruction.
static void find_peaks(mem *m, sim_result *r, u32 *ask, u32 *next) {
  sim *s = m->s;
  walk w;
  walk_init(&w, m, 1, NULL, NULL);
  walk_run(&w, NULL, true);
  for (u32 u = 0; u < s->nclasses; u++) {
    r->cls[u].peak_bytes = w.h.peak[u];
    r->cls[u].peak_at = w.h.at[u];
    r->cls[u].start_bytes = w.start[u];
    r->cls[u].end_bytes = w.h.cur[u];
    next[u + 1] = ask[w.h.at[u]];
    ask[w.h.at[u]] = u + 1;
  }
  if (s->o->steady && !s->o->ncarry) find_carried(&w, s);
}

static void count_at_peaks(mem *m, sim_result *r, const u32 *ask, const u32 *next) {
  tally t = {.a = arena_new(), .cls = r->cls};
  walk w;
  m->tally = &t;
  walk_init(&w, m, 1, NULL, NULL);
  w.ask = ask;
  w.ask_next = next;
  for (u32 k = 0; k <= w.f->body.n; k++)
    if (ask[k]) w.until = k;
  walk_run(&w, NULL, true);
  arena_free(t.a);
}

static void find_host_peaks(sim *s, sim_result *r) {
  mem m;
  walk w;
  const arena_mark_t mark = arena_mark(s->tmp);
  mem_init(&m, s), m.host = true;
  walk_init(&w, &m, 1, NULL, NULL);
  walk_run(&w, NULL, true);
  for (u32 u = 0; u < s->nclasses; u++) r->cls[u].host_peak_bytes = w.h.peak[u];
  arena_release(s->tmp, mark);
}

// The most that every rank class holds with every instruction of main.
static void note_held(mem *m) {
  sim *s = m->s;
  const size_t all = s->nclasses * sizeof *s->held;
  walk w;
  walk_init(&w, m, 1, NULL, NULL);
  walk_open_main(&w);
  s->held = NEWN(s->a, i64, (size_t)s->main->body.n * s->nclasses + 1);
  for (u32 k = 0; k < s->main->body.n; k++) {
    memcpy(w.h.peak, w.h.cur, all);
    walk_step(&w, k);
    memcpy(s->held + (size_t)k * s->nclasses, w.h.peak, all);
  }
}

void bytes_run(sim *s, sim_result *r) {
  mem m;
  mem_init(&m, s);
  arena_mark_t mark = arena_mark(s->tmp), walks;
  u32 *ask = ZNEWN(s->tmp, u32, s->main->body.n + 1), *next = ZNEWN(s->tmp, u32, s->nclasses + 1);
  walks = arena_mark(s->tmp);
  find_peaks(&m, r, ask, next);
  arena_release(s->tmp, walks);
  if (s->o->timeline) note_held(&m);
  arena_release(s->tmp, walks);
  if (!s->o->peak_only) count_at_peaks(&m, r, ask, next);
  arena_release(s->tmp, mark);
  if (!m.distir && mem_uses_host(s)) find_host_peaks(s, r);
}

// ---- what devices have ------------------------------------------------------------------------------
static bool host_fits(const prog *p, const machine *m, const sim_result *r) {
  const sim_host h = sim_host_memory(r, m);
  arena *a = ctx_arena(p->c);
  if (h.bytes <= h.usable_bytes) return true;
  diag(p->c, E_MEMORY, func_get(p, p->main)->where, "node %u needs %s of host memory for %u ranks; it has %s",
       h.node, text_bytes(a, (double)h.bytes), h.ranks,
       h.usable_bytes ? text_bytes(a, (double)h.usable_bytes) : "none that the machine says");
  diag_hint(p->c, h.usable_bytes
                      ? "offload less, or more of the storage sharded: zero=3 with dp > 1"
                      : "add `host: {memory: 512 GiB}` to its nodes, or `hostmem=512GiB` to --machine");
  return false;
}

// What of it could lie in host memory, where nothing does.
static const char *offload_of(const prog *p, const machine *m, const sim_result *r) {
  const func_info *main = func_get(p, p->main);
  bool states = false;
  if (!machine_has_host(m) || sim_host_memory(r, m).bytes) return "";
  for (u32 k = 0; k < main->nparams; k++) states = states || main->params.v[k].r == ROLE_STATE;
  return states ? "; the machine has host memory: offload" : "; the machine has host memory: offload=params";
}

bool sim_fits(const prog *p, const machine *m, const sim_result *r, sim_said (*said)(void *arg, u32 rank),
              void *arg) {
  if (sim_over_bytes(r, m) <= 0) return true;
  if (!host_fits(p, m, r)) return false;
  const u32 worst = sim_tightest(r, m);
  arena *a = ctx_arena(p->c);
  const sim_class *u = &r->cls[r->class_of_rank[worst]];
  const func_info *main = func_get(p, p->main);
  i64 usable = machine_kind_of(m, worst)->usable_bytes;
  const char *needs = text_bytes(a, (double)u->peak_bytes), *has = text_bytes(a, (double)usable);
  if (!strcmp(needs, has)) // by so little that it does not show
    needs = arena_printf(a, "%lld bytes", (long long)u->peak_bytes),
    has = arena_printf(a, "%lld", (long long)usable);
  diag(p->c, E_MEMORY, main->where, "rank %u needs %s; its device has %s", worst, needs, has);
  for (u32 k = 0; k < MIN(u->ntop, 3u); k++) {
    const mem_item *t = &u->top[k];
    const func_info *f = t->f.i ? func_get(p, t->f) : main;
    u32 def = t->v ? val(f, t->v)->def : 0;
    sym name = t->v ? val(f, t->v)->name : (sym){0};
    diag_note(p->c, def ? f->body.v[def - 1].where : f->where, "%u values of %s in @%s: %s of %s", t->count,
              name.i ? sym_str(p->c, name)
              : def  ? op_row_of(f->body.v[def - 1].op)->name
                     : "a parameter",
              sym_str(p->c, f->name), text_bytes(a, (double)t->bytes), mem_kind_name(t->kind));
  }
  const sim_said by = said ? said(arg, worst) : (sim_said){0};
  if (by.what) diag_note(p->c, by.at, "%s", by.what);
  diag_hint(p->c, "%s%s",
            by.hint
                ? by.hint
                : "a larger pp, tp or mb; in training recompute=full, or zero=3 with dp > 1; `heddle plan` "
                  "finds what fits",
            offload_of(p, m, r));
  return false;
}
