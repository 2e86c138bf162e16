// events.c - from an instruction on one rank to its event: what the rank holds, how much of the work it does,
// the words that identify it. Events are known by content, for all programs of the cost model.
#include "cost/internal.h"

void cost_extrapolates(cost_model *k, const cost_event *e, const eff_curve *curve, double size) {
  enum { FAR = 1000 };
  if (curve->n < 2 || size <= 0) return;
  const double first = curve->size[0], last = curve->size[curve->n - 1];
  const double factor = size < first ? first / size : size / last;
  if (factor <= FAR) return;
  if (k->opts.extrapolated) {
    k->opts.extrapolated(k->opts.arg, e, factor);
    return;
  }
  const u64 bit = 1ull << ((u32)(e->dev - k->m->kind) & 63);
  const eff_kind of = (eff_kind)(curve - e->dev->eff);
  if (k->warned[of] & bit) return;
  k->warned[of] |= bit;
  diag(k->c, W_EXTRAPOLATED, (loc){0},
       "%s on %s: its size is %.0f times %s the sizes that its %s efficiency was measured for",
       op_row_of(e->op)->name, sym_str(k->m->c, e->dev->name), factor, size < first ? "below" : "above",
       eff_name(of));
}

// What somebody has measured, else what the user's program says, else a fit through what was measured.
static predicted_how measured(cost_model *k, const cost_event *e, cost_info *out) {
  static const cost_source of[] = {COST_EVENT, COST_SCALED, COST_FITTED};
  if (!machine_is_measured(k->m) || (e->where && e->where->n < 2)) return PREDICTION_NONE;
  const arena_mark_t mark = arena_mark(k->a);
  strbuf key = {.a = k->a};
  cost_event_print(k->c, k->m, e, &key);
  const measured_event *x = k->m->events ? machine_events_find(k->m->events, sb_str(&key)) : NULL;
  predicted_how r = PREDICTION_NONE;
  if (x)
    *out = (cost_info){.ps = x->ps, .source = of[x->source], .spread = x->spread}, r = PREDICTION_KNOWN;
  else if (k->m->predictor && (r = machine_predict(k->m, k->c, sb_str(&key), &out->ps)) == PREDICTION_KNOWN)
    out->source = COST_PREDICTED;
  arena_release(k->a, mark);
  return r == PREDICTION_NONE && cost_fitted(k->m, k->c, k->a, e, out) ? PREDICTION_KNOWN : r;
}

// e NULL: only looks. measured_too: in what was measured, before the formulas.
static bool known(cost_model *k, bool measured_too, const cost_event *e, const u64 *key, u32 n, loc at,
                  cost_info *out) {
  const u64 h = hash_bytes(key, sizeof *key * n, 2);
  for (u32 it = 0, i; hmap_next(&k->event_map, h, &it, &i);) {
    const seen_event *s = &k->events.v[i];
    if (s->key.n != n || memcmp(k->event_words.v + s->key.at, key, sizeof *key * n)) continue;
    *out = s->cost;
    return true;
  }
  if (!e) return false;
  *out = (cost_info){.spread = -1};
  predicted_how how = PREDICTION_NONE;
  if (k->opts.predict && k->opts.predict(k->opts.arg, e, out))
    out->source = COST_PREDICTED, how = PREDICTION_KNOWN;
  else if (measured_too)
    how = measured(k, e, out);
  if (how == PREDICTION_FAILED ||
      (how == PREDICTION_NONE && !(e->where ? k->formulas->comm : k->formulas->compute)(k, e, at, out)))
    return false;
  assert(out->ps >= 0);
  const key_ref r = {k->event_words.n, n};
  memcpy(vec_push_n(k->a, &k->event_words, n), key, sizeof *key * n);
  hmap_add(k->a, &k->event_map, h, k->events.n);
  *vec_push(k->a, &k->events) = (seen_event){r, *out};
  return true;
}

bool comm_event(cost_model *k, comm_asked by, opcode op, dtype t, i64 size, u32 placement, loc at,
                cost_info *out, cost_event *made_of) {
  const u64 key[3] = {1ull << 63 | (u64)by << 62 | (u64)op << 32 | (u64)t, (u64)size, placement};
  const cost_event e = {.op = op, .t = t, .size = size, .where = &k->placements.v[placement]};
  if (made_of) *made_of = e;
  return known(k, by == ASKED_BY_PLAN, &e, key, 3, at, out);
}

// ---- words of a computation --------------------------------------------------------------------------

enum { LIST_WORDS = 64 }; // longer lists are told apart by their hash

static void put_word(cost_model *k, u64 w) { *vec_push(k->a, &k->key) = w; }

static void put_attr(cost_model *k, const attr *x) {
  put_word(k, (u64)x->key << 48 | (u64)x->kind << 40 | x->n);
  if (x->kind != AK_INTS && x->kind != AK_FLOATS && x->kind != AK_AXES) {
    u64 w;
    memcpy(&w, &x->u, sizeof w);
    put_word(k, w);
    return;
  }
  const void *data = x->kind == AK_AXES ? (const void *)x->u.axes : (const void *)x->u.ints;
  const size_t bytes = x->kind == AK_AXES ? x->n : 8 * (size_t)x->n, words = (bytes + 7) / 8;
  if (words > LIST_WORDS) {
    put_word(k, hash_bytes(data, bytes, 3));
    return;
  }
  u64 w[LIST_WORDS] = {0};
  if (bytes) memcpy(w, data, bytes);
  for (size_t i = 0; i < words; i++) put_word(k, w[i]);
}

shape site_local(const site *s, const type_info *t, const coords *c) {
  shape out = t->s;
  assert(!t->tuple);
  layout_local_dims(s->p->sp, t->lay, t->s.nd, t->s.dim, c, out.dim);
  return out;
}

// Fills k->key and k->shapes.
static void identify(cost_model *k, const site *s, const coords *c, u16 kind, u32 nopd, u32 nres) {
  const attrs at = attrs_get(s->p, s->i->at);
  vec_reserve(k->a, &k->shapes, nopd + nres + 1);
  k->shapes.v[0] = (shape){0};
  k->key.n = 0;
  put_word(k, (u64)s->i->op << 32 | kind);
  put_word(k, (u64)nopd << 32 | nres);
  for (u32 j = 0; j < nopd + nres; j++) {
    shape *sh = &k->shapes.v[j];
    *sh = site_local(s, j < nopd ? site_operand(s, j) : site_result(s, j - nopd), c);
    put_word(k, (u64)sh->t << 32 | sh->nd);
    for (u32 d = 0; d < sh->nd; d++) put_word(k, (u64)sh->dim[d]);
  }
  for (u32 j = 0; j < at.n; j++) put_attr(k, &at.v[j]);
}

// ---- work of a computation ---------------------------------------------------------------------------

static double piece_share(const space *sp, const lay_split *x, const coords *c) {
  if (!x->table) return 1.0 / axis_size(sp, x->axis);
  const pieces_info *pi = pieces_get(sp, (pieces){x->table});
  i64 own = 0;
  for (u32 b = pi->begin[c->at[x->axis]]; b < pi->begin[c->at[x->axis] + 1]; b++)
    own += pi->bound[2 * b + 1] - pi->bound[2 * b];
  return (double)own / (double)pi->extent;
}

static bool iterated(const law *l, const law_dim *d) {
  for (u32 i = 0; i < d->n; i++)
    if (l->letter[d->f[i]].flags & LAW_ADDRESSED) return false;
  return true;
}

// The part of the law's points that one rank computes: every axis that splits a letter iterated over counts
// once, whichever operand or result shows it.
static double share_of(const site *s, const law *l, const coords *c) {
  u64 seen = 0;
  double share = 1;
  for (u32 j = 0; j < l->nopd + l->nres; j++) {
    const law_term *t = j < l->nopd ? &l->opd[j] : &l->res[j - l->nopd];
    const type_info *ty = j < l->nopd ? site_operand(s, j) : site_result(s, j - l->nopd);
    const layout_info *li = layout_get(s->p->sp, ty->lay);
    for (u32 i = 0; i < li->nsplit; i++) {
      const lay_split *x = &li->split[i];
      if (seen >> x->axis & 1 || !iterated(l, &t->dim[x->dim])) continue;
      seen |= 1ull << x->axis;
      share *= piece_share(s->p->sp, x, c);
    }
  }
  return share;
}

// What a function of an operator from outside says may be anything.
static bool sane_work(cost_model *k, const site *s, const cost_event *e) {
  const double most = 1e30;
  if (e->flops >= 0 && e->flops < most && e->bytes >= 0 && e->bytes < most) return true;
  diag(k->c, E_VALUE, s->i->where, "%s: its cost is %g floating-point operations and %g bytes",
       op_row_of(e->op)->name, e->flops, e->bytes);
  return false;
}

static bool fill_work(cost_model *k, const site *s, const coords *c, cost_event *e) {
  if (op_row_of(e->op)->flags & OPF_COMM) { // a copy on the device itself: shard, partial
    e->work = EFF_MOVE;
    e->bytes = 2 * (double)shape_bytes(&e->res[0]);
    return true;
  }
  if (e->op == OP_opaque) {
    event_work(e, NULL, 1);
    return true;
  }
  arena_mark_t mark = arena_mark(k->a);
  shape *opd = NEWN(k->a, shape, e->nopd + 1), *res = NEWN(k->a, shape, MAX(e->nres, (u32)OP_RES_MAX));
  for (u32 j = 0; j < e->nopd; j++) opd[j] = site_operand(s, j)->s;
  u32 nres = e->nres;
  const law *l = op_law(k->c, k->a, e->op, e->at, e->nopd, opd, &nres, res, s->i->where);
  if (l) event_work(e, l, share_of(s, l, c));
  arena_release(k->a, mark);
  return l && sane_work(k, s, e);
}

bool compute_event(cost_model *k, const site *s, const coords *c, u16 kind, cost_info *out,
                   cost_event *made_of) {
  const u32 nopd = instr_nopd(s->f, s->i), nres = s->i->nres;
  identify(k, s, c, kind, nopd, nres);
  if (!made_of && known(k, true, NULL, k->key.v, k->key.n, s->i->where, out)) return true;
  cost_event e = {
      .op = s->i->op, .at = attrs_get(s->p, s->i->at), .t = k->shapes.v[0].t, .nopd = nopd, .nres = nres};
  e.opd = k->shapes.v;
  e.res = e.opd + nopd;
  e.dev = &k->m->kind[kind];
  const bool ok = fill_work(k, s, c, &e) && known(k, true, &e, k->key.v, k->key.n, s->i->where, out);
  if (made_of) *made_of = e;
  return ok;
}
