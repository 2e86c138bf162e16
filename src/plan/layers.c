// layers.c - the same plan over fewer layers. Layers of main that are alike, and that a plan treats alike, do
// the same in every stage: a probe (probe.c) has four of a stage's, and one of these stands for the others.
//
// Idea: a *run* is a stretch of main in periods, mostly calls of one function, each of which takes what the
// one before it made, and weights of its own. A period in the middle of a stage can be left out, and the next
// one then takes what the one before it made: a shorter main, of which every number of periods in every run
// is made once.
#include "plan/internal.h"

enum { PERIOD_MOST = 64, KEPT = 4, RUN_LEAST = KEPT + 2 };

// ---- runs -----------------------------------------------------------------------------------------------
typedef struct {
  const planner *pl;
  const func_info *m;
} finder;

static bool own_weight(const finder *x, value v, u32 from, u32 end) {
  const uses *u = &x->pl->uses;
  if (x->m->params.v[v - 1].r != ROLE_WEIGHT) return false;
  return u->begin[v] == u->begin[v + 1] || (u->use[u->begin[v]] > from && planner_last_use(x->pl, v) <= end);
}

// Does operand w of instruction j + len stand to it as v does to instruction j of the period that begins at
// `from`?
static bool same_operand(const finder *x, value v, value w, u32 from, u32 len) {
  const func_info *m = x->m;
  const u32 dv = m->values.v[v].def, dw = m->values.v[w].def;
  if (v == w) return dv ? dv - 1 < from : m->params.v[v - 1].r != ROLE_WEIGHT;
  if (m->values.v[v].ty.i != m->values.v[w].ty.i || !dv != !dw) return false;
  if (!dv) return own_weight(x, v, from, from + len) && own_weight(x, w, from + len, from + 2 * len);
  return dw == dv + len && w - m->body.v[dw - 1].res == v - m->body.v[dv - 1].res;
}

static bool same_instr(const finder *x, u32 j, u32 from, u32 len) {
  const func_info *m = x->m;
  const instr *i = &m->body.v[j], *k = &m->body.v[j + len];
  if (!instr_alike(m, i, m, k, INSTR_RECOMPUTE)) return false;
  for (u32 o = 0; o < i->nopd; o++) {
    const u32 a = m->opds.v[i->opd + o], b = m->opds.v[k->opd + o];
    if ((a & ~(u32)OPD_VALUE) != (b & ~(u32)OPD_VALUE) ||
        !same_operand(x, a & OPD_VALUE, b & OPD_VALUE, from, len))
      return false;
  }
  return true;
}

// What a period makes is used by it and the next one only.
static bool stays(const finder *x, u32 from, u32 len) {
  for (u32 j = from; j < from + len; j++)
    for (u32 r = 0; r < x->m->body.v[j].nres; r++)
      if (planner_last_use(x->pl, x->m->body.v[j].res + r) > from + 2 * len) return false;
  return true;
}

static u32 periods(const finder *x, u32 from, u32 len) {
  u32 n = 1;
  for (u32 at = from; at + 2 * len <= x->m->body.n; at += len, n++) {
    u32 j = at;
    while (j < at + len && same_instr(x, j, at, len)) j++;
    if (j < at + len || !stays(x, at, len)) break;
  }
  return n;
}

static void find_runs(planner *pl) {
  const func_info *m = func_get(pl->src, pl->src->main);
  finder x = {pl, m};
  for (u32 i = 0, n, len; i < m->body.n; i += MAX(n * len, 1u)) {
    for (n = 0, len = 1; len <= PERIOD_MOST && i + RUN_LEAST * len <= m->body.n; len++)
      if ((n = periods(&x, i, len)) >= RUN_LEAST) break;
    if (n >= RUN_LEAST && i + RUN_LEAST * len <= m->body.n)
      *vec_push(pl->a, &pl->runs) = (layer_run){i, len, n};
    else
      n = 0;
  }
}

// ---- which periods a plan can do without ----------------------------------------------------------------
typedef struct {
  planner *pl;
  const plan *pn;
  arena *a;
  bool *drop;  // per instruction of main: it is in a period that is left out
  u64 *choice; // ... what the plan chooses for it
  u32 *kept;   // per run: periods
  fewer_layers *out;
} thinning;

static void hash_choices(thinning *x) {
  const plan *pn = x->pn;
  const func main = x->pl->src->main;
  for (u32 i = 0; i < pn->ntrans; i++) {
    const plan_trans *t = &pn->trans[i];
    if (t->fn.i != main.i || !t->instr) continue;
    u64 *h = &x->choice[t->instr - 1];
    *h = hash_u64((u64)t->index << 32 | (u64)t->dim << 16 | (u64)t->axis << 8 | (u64)t->result << 2 |
                      (u64)t->weak << 1 | t->uneven,
                  *h + 1);
    *h = hash_u64((u64)t->stride, *h);
  }
  for (u32 i = 0; i < pn->nrecompute; i++)
    if (pn->recompute[i].fn.i == main.i) {
      u64 *h = &x->choice[pn->recompute[i].instr - 1];
      *h = hash_u64(1, *h + 2);
    }
}

// Does the plan choose the same for all periods [first, end) of the run?
static bool chosen_alike(const thinning *x, const layer_run *r, u32 first, u32 end) {
  for (u32 p = first + 1; p < end; p++)
    for (u32 j = 0; j < r->len; j++)
      if (x->choice[r->from + p * r->len + j] != x->choice[r->from + first * r->len + j]) return false;
  return true;
}

// A weight that the plan splits by itself is one of its own.
static bool splits_weights(const planner *pl, const plan *pn) {
  const func_info *m = func_get(pl->src, pl->src->main);
  for (u32 i = 0; i < pn->ntrans; i++)
    if (!pn->trans[i].instr && pn->trans[i].fn.i == pl->src->main.i &&
        m->params.v[pn->trans[i].index].r == ROLE_WEIGHT)
      return true;
  return false;
}

// Of every stage's periods the first three and the last stay; the third stands for those between.
static bool choose(thinning *x) {
  const planner *pl = x->pl;
  bool any = false;
  for (u32 q = 0; q < pl->runs.n; q++) {
    const layer_run *r = &pl->runs.v[q];
    x->kept[q] = r->times;
    for (u32 s = 0; s < x->pn->nsegments; s++) {
      const u32 from = x->pn->segments[s].from - 1, to = x->pn->segments[s].to; // of main: [from, to)
      if (from >= to || to <= r->from || from >= r->from + r->times * r->len) continue;
      const u32 lo = from <= r->from ? 0 : (u32)ceil_div(from - r->from, r->len),
                hi = MIN((to - r->from) / r->len, r->times);
      if (hi < lo + KEPT + 1 || !chosen_alike(x, r, lo + 1, hi - 1)) continue;
      const u32 more = hi - lo - KEPT;
      for (u32 j = r->from + (lo + 3) * r->len; j < r->from + (hi - 1) * r->len; j++) x->drop[j] = true;
      x->kept[q] -= more;
      *vec_push(x->a, &x->out->span) = (layer_span){s, r->from + (lo + 2) * r->len, r->len, more};
      any = true;
    }
  }
  return any;
}

// ---- the shorter main -----------------------------------------------------------------------------------
typedef struct {
  prog *p;
  const func_info *m; // as it was
  builder b;
  value *map;
  const u32 *opd;
} shortening;

static void copy(shortening *x, const instr *i) {
  emit_copy(&x->b, x->m, i, x->map);
  for (u32 k = 0; k < i->nres; k++)
    value_name(x->p, x->b.f, x->map[i->res + k], x->m->values.v[i->res + k].name);
}

// Is the parameter a weight of periods that are left out?
static bool *dropped_params(const shortening *x, const bool *drop) {
  bool *gone = ZNEWN(x->p->a, bool, x->m->nparams + 1);
  for (u32 i = 0; i < x->m->body.n; i++)
    for (u32 k = 0; drop[i] && k < x->m->body.v[i].nopd; k++) {
      const value v = opd_of(x->m, &x->m->body.v[i], k);
      if (v <= x->m->nparams && x->m->params.v[v - 1].r == ROLE_WEIGHT) gone[v] = true;
    }
  return gone;
}

// Of every run so many periods: all but the last from the beginning.
static prog *shorten(const planner *pl, const u32 *kept) {
  prog *p = planner_program(pl);
  shortening x = {.p = p, .m = func_get(p, p->main)};
  bool *drop = ZNEWN(p->a, bool, x.m->body.n + 1);
  for (u32 q = 0; q < pl->runs.n; q++) {
    const layer_run *r = &pl->runs.v[q];
    for (u32 t = kept[q] - 1; t + 1 < r->times; t++)
      memset(drop + r->from + t * r->len, true, r->len * sizeof *drop);
  }
  const bool *gone = dropped_params(&x, drop);
  x.map = ZNEWN(p->a, value, x.m->values.n);
  x.b = builder_at(p, func_new(p, x.m->name, x.m->where));
  x.m = func_get(p, p->main);
  for (u32 v = 1; v <= x.m->nparams; v++) {
    if (gone[v]) continue;
    const param_info *pi = &x.m->params.v[v - 1];
    x.map[v] = func_param(p, x.b.f, x.m->values.v[v].ty, x.m->values.v[v].name, pi->r);
    func_get(p, x.b.f)->params.v[x.map[v] - 1].data = pi->data;
  }
  for (u32 q = 0, i = 0; i < x.m->body.n; i++) {
    while (q < pl->runs.n && pl->runs.v[q].from + pl->runs.v[q].times * pl->runs.v[q].len <= i) q++;
    if (!drop[i]) {
      copy(&x, &x.m->body.v[i]);
      continue;
    }
    // what this period would have made is what the latest one that stays made
    const u32 len = pl->runs.v[q].len;
    const instr *gone_i = &x.m->body.v[i], *like = &x.m->body.v[i - len];
    for (u32 k = 0; k < gone_i->nres; k++) x.map[gone_i->res + k] = x.map[like->res + k];
  }
  value *ret = NEWN(p->a, value, x.m->rets.n + 1);
  for (u32 k = 0; k < x.m->rets.n; k++) ret[k] = x.map[x.m->rets.v[k]];
  func_return(p, x.b.f, ret, x.m->rets.n);
  p->main = x.b.f;
  return p;
}

static planner *shorter(planner *pl, const u32 *kept) {
  const size_t n = pl->runs.n * sizeof *kept;
  for (u32 i = 0; i < pl->forms.n; i++)
    if (pl->forms.v[i]->periods && !memcmp(pl->forms.v[i]->periods, kept, n)) return pl->forms.v[i];
  planner *made = planner_form(pl, shorten(pl, kept));
  made->periods = arena_dup(made->a, kept, n);
  return made;
}

// ---- the plan on it -------------------------------------------------------------------------------------
// Numbers of instructions and parameters of main in the shorter one. A period that stays is the next of its
// run there, so the same weights have other names.
static u32 *renumbered(const thinning *x) {
  const func_info *m = func_get(x->pl->src, x->pl->src->main);
  u32 *now = NEWN(x->a, u32, m->body.n + 1), n = 0;
  for (u32 i = 0; i <= m->body.n; i++) {
    now[i] = n;
    n += i < m->body.n && !x->drop[i];
  }
  return now;
}

static plan *thinned(const thinning *x, const planner *to) {
  const plan *pn = x->pn;
  const func_info *m = func_get(x->pl->src, x->pl->src->main);
  const func was = x->pl->src->main, is = to->src->main;
  const u32 *now = renumbered(x);
  plan *out = arena_dup(x->a, pn, sizeof *pn);
  u32 *param = NEWN(x->a, u32, m->nparams + 1);
  const func_info *f = func_get(to->src, is);
  for (u32 v = 1, n = 0; v <= m->nparams; v++) { // weights, of which some are gone, are not named by trans
    const bool weight = m->params.v[v - 1].r == ROLE_WEIGHT;
    while (!weight && f->params.v[n].r == ROLE_WEIGHT) n++;
    param[v] = weight ? 0 : ++n;
  }
  out->trans = NEWN(x->a, plan_trans, pn->ntrans + 1);
  out->ntrans = 0;
  for (u32 i = 0; i < pn->ntrans; i++) {
    plan_trans t = pn->trans[i];
    if (t.fn.i == was.i) {
      if (t.instr && x->drop[t.instr - 1]) continue;
      t.fn = is;
      if (t.instr)
        t.instr = now[t.instr - 1] + 1;
      else
        t.index = param[t.index + 1] - 1;
    }
    out->trans[out->ntrans++] = t;
  }
  out->recompute = arena_alloc(x->a, sizeof *pn->recompute * (pn->nrecompute + 1));
  out->nrecompute = 0;
  for (u32 i = 0; i < pn->nrecompute; i++) {
    const u32 at = pn->recompute[i].instr;
    const bool here = pn->recompute[i].fn.i == was.i;
    if (here && x->drop[at - 1]) continue;
    out->recompute[out->nrecompute].fn = here ? is : pn->recompute[i].fn;
    out->recompute[out->nrecompute++].instr = here ? now[at - 1] + 1 : at;
  }
  out->segments = arena_dup(x->a, pn->segments, pn->nsegments * sizeof *pn->segments);
  for (u32 s = 0; s < pn->nsegments; s++) {
    out->segments[s].from = now[pn->segments[s].from - 1] + 1;
    out->segments[s].to = now[pn->segments[s].to];
  }
  for (u32 k = 0; k < x->out->span.n; k++) x->out->span.v[k].from = now[x->out->span.v[k].from];
  return out;
}

static bool covers_main(const planner *pl, const plan *pn) {
  u32 at = 0;
  for (u32 s = 0; s < pn->nsegments; s++) {
    if (pn->segments[s].from != at + 1 || pn->segments[s].to <= at) return false;
    at = pn->segments[s].to;
  }
  return at == func_get(pl->src, pl->src->main)->body.n;
}

bool plan_fewer_layers(planner *pl, const plan *pn, arena *a, fewer_layers *out) {
  *out = (fewer_layers){0};
  pl = planner_formed(pl, pn); // the plan's numbers of functions are of that form
  if (!pl) return false;
  if (!pl->runs_known) find_runs(pl);
  pl->runs_known = true;
  if (!pl->runs.n || pn->batchnorm_groups || !covers_main(pl, pn) || splits_weights(pl, pn)) return false;
  const u32 n = func_get(pl->src, pl->src->main)->body.n;
  thinning x = {pl, pn, a, ZNEWN(a, bool, n + 1), ZNEWN(a, u64, n + 1), NEWN(a, u32, pl->runs.n + 1), out};
  hash_choices(&x);
  if (!choose(&x)) return false;
  out->pl = shorter(pl, x.kept);
  out->pn = thinned(&x, out->pl);
  return true;
}
