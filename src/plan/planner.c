// planner.c - assign: cuts main into stretches that become functions, and keeps what does not depend on a
// plan (stage sources, gradients, update functions) for the next plan over the same program.
#include "plan/internal.h"

planner *planner_new(prog *src) {
  arena *a = arena_new();
  planner *pl = NEW(a, planner);
  pl->a = a;
  prog *p = pl->src = prog_clone(src, src->c);
  pass_count_labels(p);
  for (u32 f = 1; f < p->funcs.n; f++)
    for (u32 i = 0; i < p->funcs.v[f]->body.n; i++) {
      instr *in = &p->funcs.v[f]->body.v[i];
      if (!in->origin) in->origin = ++p->norigins;
    }
  pl->nfuncs = p->funcs.n;
  pass_batchnorm_of(p, &pl->batchnorm);
  const func_info *m = func_get(p, p->main);
  pl->cone = ZNEWN(a, bool, m->body.n + 1);
  pl->uses = func_uses(a, m);
  for (u32 i = 0; i < m->body.n; i++) {
    const instr *in = &m->body.v[i];
    bool cone = in->op != OP_call && !(op_row_of(in->op)->flags & OPF_RANDOM);
    for (u32 k = 0; k < in->nopd; k++) {
      value v = opd_of(m, in, k);
      u32 def = m->values.v[v].def;
      cone = cone && def && pl->cone[def - 1];
    }
    pl->cone[i] = cone;
  }
  for (u32 i = 0; i < m->nparams; i++)
    if (m->params.v[i].r == ROLE_INPUT || m->params.v[i].r == ROLE_LABEL) *vec_push(a, &pl->inputs) = i;
  return pl;
}

u32 planner_last_use(const planner *pl, value v) {
  const u32 end = pl->uses.begin[v + 1];
  if (end == pl->uses.begin[v]) return 0;
  const u32 use = pl->uses.use[end - 1]; // in the order of main, and its return behind all
  return use ? use : func_get(pl->src, pl->src->main)->body.n + 1;
}

const batchnorm_stats *planner_batchnorm(const planner *pl) { return &pl->batchnorm; }

u32 planner_inputs(const planner *pl, const u32 **param) {
  *param = pl->inputs.v;
  return pl->inputs.n;
}

void planner_free(planner *pl) {
  if (!pl) return;
  for (u32 i = 0; i < pl->forms.n; i++) planner_free(pl->forms.v[i]);
  prog_free(pl->src);
  arena_free(pl->a);
}

typedef struct {
  planner *pl;
  builder b;
  value *map; // value of main -> value of the stage source
  stage_source *c;
  u32 from, to;
  bool *copied; // per instruction of main
  bool whole;   // all of main: its names stay. A stretch may be shared with one that has others
} extraction;

static void copy_instr(extraction *x, u32 index) {
  prog *p = x->pl->src;
  const instr in = func_get(p, p->main)->body.v[index];
  const func_info *m = func_get(p, p->main);
  for (u32 k = 0; k < in.nopd; k++) {
    const value v = m->opds.v[in.opd + k] & OPD_VALUE;
    const u32 def = m->values.v[v].def;
    if (!x->map[v] && def && x->pl->cone[def - 1]) copy_instr(x, def - 1);
  }
  emit_copy(&x->b, m, &in, x->map);
  for (u32 k = 0; x->whole && k < in.nres; k++)
    value_name(p, x->b.f, x->map[in.res + k], m->values.v[in.res + k].name);
  x->copied[index] = true;
}

static void param_of(extraction *x, value v, role r) {
  prog *p = x->pl->src;
  const value_info *vi = &func_get(p, p->main)->values.v[v];
  x->map[v] = func_param(p, x->b.f, vi->ty, x->whole ? vi->name : (sym){0}, r);
}

// The values of main that instructions from..to read from outside, constants' dependants followed.
static void collect(extraction *x, u32 index, bool *seen, value **out, u32 *n) {
  prog *p = x->pl->src;
  const func_info *m = func_get(p, p->main);
  const instr *in = &m->body.v[index];
  for (u32 k = 0; k < in->nopd; k++) {
    value v = opd_of(m, in, k);
    u32 def = m->values.v[v].def;
    if (seen[v]) continue;
    seen[v] = true;
    if (def && x->pl->cone[def - 1]) {
      collect(x, def - 1, seen, out, n);
    } else if (!def || def < x->from || def > x->to) {
      (*out)[(*n)++] = v;
    }
  }
}

// ---- stages that do the same --------------------------------------------------------------------------
static u64 body_hash(const func_info *f) {
  u64 h = hash_bytes(f->opds.v, f->opds.n * sizeof *f->opds.v, f->nparams);
  for (u32 v = 1; v < f->values.n; v++) h = hash_u64(f->values.v[v].ty.i, h);
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k];
    h = hash_u64((u64)i->op << 48 | (u64)i->flags << 40 | (u64)i->strm << 32 | i->callee.i, h);
    h = hash_u64((u64)i->at.i << 32 | i->res, h);
  }
  return hash_bytes(f->rets.v, f->rets.n * sizeof *f->rets.v, h);
}

static bool same_words(const u32 *x, const u32 *y, u32 n) { return !n || !memcmp(x, y, n * sizeof *x); }

// But for names, locations and origins. Both were made by planner_stage: nothing has a group or a coordinate.
static bool same_body(const func_info *f, const func_info *g) {
  if (f->nparams != g->nparams || f->values.n != g->values.n || f->body.n != g->body.n ||
      f->opds.n != g->opds.n || f->rets.n != g->rets.n || !same_words(f->opds.v, g->opds.v, f->opds.n) ||
      !same_words(f->rets.v, g->rets.v, f->rets.n))
    return false;
  for (u32 v = 1; v < f->values.n; v++)
    if (f->values.v[v].ty.i != g->values.v[v].ty.i) return false;
  for (u32 k = 0; k < f->nparams; k++)
    if (f->params.v[k].r != g->params.v[k].r || f->params.v[k].data != g->params.v[k].data) return false;
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *i = &f->body.v[k], *j = &g->body.v[k];
    if (!instr_alike(f, i, g, j, 0) || i->opd != j->opd || i->res != j->res) return false;
  }
  return true;
}

static void find_like(planner *pl, stage_source *c) {
  func_info *f = func_get(pl->src, c->fwd);
  u64 h = body_hash(f);
  u32 *origin = NEWN(pl->a, u32, f->body.n);
  for (u32 k = 0; k < f->body.n; k++) origin[k] = f->body.v[k].origin;
  c->n = f->body.n;
  c->origin = origin;
  c->like = c;
  for (u32 it = 0, id; hmap_next(&pl->like_map, h, &it, &id);) {
    stage_source *d = pl->stage_sources.v[id - 1];
    if (!same_body(func_get(pl->src, d->fwd), f)) continue;
    c->like = d;
    return;
  }
  hmap_add(pl->a, &pl->like_map, h, pl->stage_sources.n);
}

stage_source *planner_stage(planner *pl, u32 from, u32 to) {
  u64 key = hash_u64(((u64)from << 32) | to, 7);
  u32 hit = hmap_get(&pl->source_map, key);
  if (hit) return pl->stage_sources.v[hit - 1];
  prog *p = pl->src;
  const func_info *m = func_get(p, p->main);
  u32 nv = m->values.n;
  stage_source *c = NEW(pl->a, stage_source);
  extraction x = {.pl = pl, .c = c, .from = from, .to = to, .map = ZNEWN(pl->a, value, nv)};
  x.copied = ZNEWN(pl->a, bool, m->body.n + 1);
  x.whole = from == 1 && to == m->body.n;
  x.b = builder_at(p, func_new(p, sym_of(p->c, "stage"), m->where));
  bool *seen = ZNEWN(pl->a, bool, nv);
  value *ext = NEWN(pl->a, value, nv);
  u32 n = 0;
  for (u32 i = from; i <= to; i++)
    if (!pl->cone[i - 1]) collect(&x, i - 1, seen, &ext, &n);
  c->weight = NEWN(pl->a, value, n + 1), c->input = NEWN(pl->a, value, n + 1);
  for (u32 i = 0; i < n; i++) {
    bool w = !m->values.v[ext[i]].def && m->params.v[ext[i] - 1].r == ROLE_WEIGHT;
    if (w)
      c->weight[c->nweights++] = ext[i];
    else
      c->input[c->ninputs++] = ext[i];
  }
  for (u32 i = 0; i < c->nweights; i++) param_of(&x, c->weight[i], ROLE_WEIGHT);
  for (u32 i = 0; i < c->ninputs; i++) param_of(&x, c->input[i], ROLE_INPUT);
  c->output = NEWN(pl->a, value, nv);
  for (u32 i = from; i <= to; i++) {
    m = func_get(p, p->main);
    bool returned_constant = false;
    const instr *in = &m->body.v[i - 1];
    for (u32 k = 0; k < in->nres; k++) returned_constant |= planner_last_use(pl, in->res + k) > m->body.n;
    if (pl->cone[i - 1] && !returned_constant) continue;
    if (!x.copied[i - 1]) copy_instr(&x, i - 1);
    m = func_get(p, p->main);
    in = &m->body.v[i - 1];
    for (u32 k = 0; k < in->nres; k++)
      if (planner_last_use(pl, in->res + k) > to) c->output[c->noutputs++] = in->res + k;
  }
  value *ret = NEWN(pl->a, value, c->noutputs + 1);
  for (u32 i = 0; i < c->noutputs; i++) ret[i] = x.map[c->output[i]];
  func_return(p, x.b.f, ret, c->noutputs);
  c->fwd = x.b.f;
  *vec_push(pl->a, &pl->stage_sources) = c;
  hmap_add(pl->a, &pl->source_map, key, pl->stage_sources.n);
  find_like(pl, c);
  return c;
}

const grad_pair *planner_grad(planner *pl, func f, const grad_opts *o) {
  const func_info *fi = func_get(pl->src, f);
  arena *tmp = arena_new();
  key_words key = {0};
  *vec_push(tmp, &key) = (u64)f.i << 1 | o->split;
  key_put_bytes(tmp, &key, o->mark, fi->nparams * sizeof *o->mark);
  key_put_bytes(tmp, &key, o->has_dy, fi->rets.n * sizeof *o->has_dy);
  const u32 hit = key_find(&pl->grad_keys, &key);
  grad_pair *g = hit ? pl->grads.v[hit - 1] : NEW(pl->a, grad_pair);
  if (!hit) {
    if (!pl->memo) pl->memo = grad_memo_new(pl->src);
    if (!pass_grad_shared(pl->memo, f, o, g)) {
      arena_free(tmp);
      return NULL;
    }
    *vec_push(pl->a, &pl->grads) = g;
    key_add(pl->a, &pl->grad_keys, &key);
  }
  arena_free(tmp);
  return g;
}

func planner_update(planner *pl, const value *weight, u32 n, const plan *pn) {
  prog *p = pl->src;
  const optim_opts *o = &pn->optim;
  const bool keep = pn->keep_gradients;
  // Of one microbatch they come as they are, and are summed over ranks in f32.
  const bool late = pn->wide_gradients && !plan_accumulates(pn);
  const grad_mark mark = pn->wide_gradients && !late ? GRAD_ACC_F32 : GRAD_ACC;
  optim_opts in_use = *o; // one function, whether masters are wanted or not, where no weight has one
  in_use.master = false;
  for (u32 i = 0; i < n; i++)
    in_use.master |= optim_has_master(o, val_type(p, func_get(p, p->main), weight[i])->s.t);
  key_words key = {0};
  arena *tmp = arena_new();
  *vec_push(tmp, &key) = (u64)keep | (u64)pn->wide_gradients << 1 | (u64)late << 2;
  const double rates[] = {in_use.lr,    in_use.momentum, in_use.beta1,
                          in_use.beta2, in_use.eps,      in_use.weight_decay};
  *vec_push(tmp, &key) = (u64)in_use.kind << 1 | in_use.master;
  key_put_bytes(tmp, &key, rates, sizeof rates);
  for (u32 i = 0; i < n; i++) *vec_push(tmp, &key) = func_get(p, p->main)->values.v[weight[i]].ty.i;
  u32 hit = key_find(&pl->update_keys, &key);
  if (!hit) hit = key_add(pl->a, &pl->update_keys, &key);
  arena_free(tmp);
  if (hit <= pl->updates.n) return pl->updates.v[hit - 1];
  func f = func_new(p, sym_of(p->c, "update"), func_get(p, p->main)->where);
  u32 most = n * (2 + OPTIM_STATES), nr = 0;
  value *v = ZNEWN(pl->a, value, most), *ret = NEWN(pl->a, value, most), *res = ZNEWN(pl->a, value, most);
  for (u32 j = 0; j < 2 + OPTIM_STATES; j++) // v[j n + i]: of weight i the value, its gradient, its states
    for (u32 i = 0; i < n; i++) {
      const type_info *t = val_type(p, func_get(p, p->main), weight[i]);
      optim_state st = {.s = t->s};
      if (j == 1) st.s.t = grad_acc_type(mark, t->s.t);
      if (j > 1 && !optim_state_find(o, &t->s, j - 2, &st)) continue;
      v[j * n + i] = func_param(p, f, type_tensor(p, &st.s, t->lay, t->g), (sym){0},
                                j == 0   ? ROLE_WEIGHT
                                : j == 1 ? ROLE_INPUT
                                         : ROLE_STATE);
    }
  builder b = builder_at(p, f);
  b.flags = INSTR_UPDATE, b.where = func_get(p, p->main)->where;
  for (u32 i = 0; i < n; i++) {
    value st[OPTIM_STATES] = {0};
    for (u32 j = 0; j < OPTIM_STATES; j++) st[j] = v[(2 + j) * n + i];
    const dtype own = val_type(p, func_get(p, f), v[n + i])->s.t;
    const attr to = attr_t(A_dtype, grad_acc_type(GRAD_ACC_F32, own));
    const value grad = late && to.u.t != own ? build(&b, OP_cast, &v[n + i], 1, &to, 1) : v[n + i];
    optim_emit(&b, o, v[i], grad, st, &res[i * (1 + OPTIM_STATES)]);
  }
  for (u32 j = 0; j < 1 + OPTIM_STATES; j++)
    for (u32 i = 0; i < n; i++)
      if (res[i * (1 + OPTIM_STATES) + j]) ret[nr++] = res[i * (1 + OPTIM_STATES) + j];
  for (u32 i = 0; i < n && keep; i++) ret[nr++] = v[n + i];
  func_return(p, f, ret, nr);
  *vec_push(pl->a, &pl->updates) = f;
  return f;
}

u32 planner_funcs(const planner *pl) { return pl->nfuncs; }

const law *plan_law(planner *pl, func f, u32 index) {
  prog *p = pl->src;
  while (pl->laws.n <= f.i) *vec_push(pl->a, &pl->laws) = NULL;
  const func_info *fi = func_get(p, f);
  if (!pl->laws.v[f.i]) pl->laws.v[f.i] = ZNEWN(pl->a, const law *, fi->body.n);
  const law **slot = &pl->laws.v[f.i][index];
  if (*slot) return *slot;
  const instr *in = &fi->body.v[index];
  u32 n = instr_nopd(fi, in), nres = in->nres;
  shape *os = NEWN(pl->a, shape, n + 1), rs[OP_RES_MAX];
  for (u32 k = 0; k < n; k++) os[k] = val_type(p, fi, opd_of(fi, in, k))->s;
  return *slot = op_law(p->c, pl->a, in->op, attrs_get(p, in->at), n, os, &nres, rs, in->where);
}

const classes *planner_classes(planner *pl) {
  if (!pl->classes) pl->classes = classes_of(pl->a, pl->src);
  return pl->classes;
}

const plan_trans *planner_kept(planner *pl, const key_words *key, u32 *n) {
  const u32 hit = key_find(&pl->kept_keys, key);
  if (!hit) return NULL;
  *n = pl->kept.v[hit - 1].n;
  return pl->kept.v[hit - 1].v;
}

void planner_keep(planner *pl, const key_words *key, const plan_trans *v, u32 n) {
  vec_push(pl->a, &pl->kept);
  pl->kept.v[pl->kept.n - 1].n = n;
  pl->kept.v[pl->kept.n - 1].v = arena_dup(pl->a, v, sizeof *v * n);
  key_add(pl->a, &pl->kept_keys, key);
}

// The diagnostic number `from`, with its hints. Its number from 1; 0: there is none.
static u32 keep_refusal(planner *pl, u32 from) {
  const ctx *c = pl->src->c;
  if (from >= diag_count(c)) return 0;
  const diag_item d = diag_get(c, from);
  refusal *x = vec_push(pl->a, &pl->refusals);
  *x = (refusal){.d = d};
  x->d.message = arena_strdup(pl->a, d.message);
  for (u32 k = 0; k < d.notes && k < COUNT_OF(x->hint); k++) {
    x->hint[k] = diag_part(c, from, k);
    x->hint[k].message = arena_strdup(pl->a, x->hint[k].message);
  }
  return pl->refusals.n;
}

static void refuse_again(planner *pl, u32 number) {
  const refusal *x = &pl->refusals.v[number - 1];
  diag(pl->src->c, x->d.id, x->d.at, "%s", x->d.message);
  for (u32 k = 0; k < COUNT_OF(x->hint) && x->hint[k].message; k++)
    diag_hint_number(pl->src->c, x->hint[k].number, "%s", x->hint[k].message);
}

void planner_keep_refusal(planner *pl, const key_words *key, u32 from) {
  const u32 number = keep_refusal(pl, from);
  if (!number) return;
  *vec_push(pl->a, &pl->refused) = number;
  key_add(pl->a, &pl->refusal_keys, key);
}

bool planner_refused(planner *pl, const key_words *key) {
  const u32 hit = key_find(&pl->refusal_keys, key);
  if (hit) refuse_again(pl, pl->refused.v[hit - 1]);
  return hit;
}

const u32 *planner_kept_ends(const planner *pl, const planner_ends *of) {
  for (u32 i = 0; i < pl->ends.n; i++) {
    const planner_ends *x = &pl->ends.v[i].of;
    if (x->stages == of->stages && x->again == of->again && x->interlaced == of->interlaced &&
        x->passes == of->passes && choice_same(x->layers, of->layers) &&
        !memcmp(x->place, of->place, of->stages * sizeof *of->place))
      return pl->ends.v[i].end;
  }
  return NULL;
}

void planner_keep_ends(planner *pl, const planner_ends *of, const u32 *end) {
  planner_ends own = *of;
  own.place = arena_dup(pl->a, of->place, of->stages * sizeof *of->place);
  if (of->layers.nparts)
    own.layers.part = arena_dup(pl->a, of->layers.part, of->layers.nparts * sizeof *of->layers.part);
  vec_push(pl->a, &pl->ends);
  pl->ends.v[pl->ends.n - 1].of = own;
  pl->ends.v[pl->ends.n - 1].end = arena_dup(pl->a, end, of->stages * sizeof *end);
}

static u64 times_hash(const planner_key *x) {
  const u64 h = hash_u64((u64)x->what << 32 | x->training, hash_u64(x->costs, strategy_hash(&x->s)));
  return hash_u64((u64)x->number[0], hash_u64((u64)x->number[1], h));
}

const double *planner_kept_times(const planner *pl, const planner_key *key) {
  for (u32 it = 0, i; hmap_next(&pl->times_map, times_hash(key), &it, &i);) {
    const planner_key *x = &pl->times.v[i].key;
    if (x->what == key->what && x->number[0] == key->number[0] && x->number[1] == key->number[1] &&
        x->training == key->training && x->costs == key->costs && !strategy_compare(&x->s, &key->s))
      return pl->times.v[i].v;
  }
  return NULL;
}

void planner_keep_times(planner *pl, const planner_key *key, const double *v, u32 n) {
  hmap_add(pl->a, &pl->times_map, times_hash(key), pl->times.n);
  vec_push(pl->a, &pl->times);
  pl->times.v[pl->times.n - 1].key = *key;
  pl->times.v[pl->times.n - 1].key.s = strategy_dup(pl->a, &key->s);
  pl->times.v[pl->times.n - 1].v = arena_dup(pl->a, v, n * sizeof *v);
}

typedef struct {
  u32 nstages, npasses, *live;
} alive;
static void count_alive(void *arg, const sched_seq *seq) {
  const alive *x = arg;
  plan_live_on(seq, x->nstages, x->npasses, x->live);
}

// What is known of the schedule: its key, that it has one, or why there is none.
static planned_schedule *schedule_of(planner *pl, const sched_row *row, const sched_shape *given) {
  sched_shape own = *given, *x = &own;
  if (row->group && own.group == own.places) own.group = 0; // which says the same
  const u64 hash = hash_bytes(row->name, strlen(row->name), sched_shape_hash(x));
  for (u32 it = 0, i; hmap_next(&pl->schedule_map, hash, &it, &i);)
    if (pl->schedules.v[i].row == row && sched_shape_same(&pl->schedules.v[i].shape, x))
      return &pl->schedules.v[i];
  hmap_add(pl->a, &pl->schedule_map, hash, pl->schedules.n);
  planned_schedule *k = vec_push(pl->a, &pl->schedules);
  *k = (planned_schedule){.row = row, .shape = own};
  return k;
}

static void make_key(planner *pl, planned_schedule *k, loc where) {
  const sched_row *row = k->row;
  // No more stages than there can be: else no sequence is told.
  const arena_mark_t mark = arena_mark(pl->a);
  const u64 most = sched_nstages(row, k->shape.places, k->shape.chunks);
  const u32 stages = (u32)MIN(most, UINT16_MAX);
  const alive of = {stages, sched_passes(row), ZNEWN(pl->a, u32, sched_replicas(row) * stages + 1)};
  k->key = sched_make_key(pl->src->c, row->name, &k->shape, where, count_alive, (void *)(uintptr_t)&of);
  k->live = k->key ? of.live : NULL, k->fits = k->key != 0;
  if (!k->key) arena_release(pl->a, mark);
}

u64 planner_schedule_key(planner *pl, const sched_row *row, const sched_shape *of, loc where,
                         const u32 **live) {
  planned_schedule *k = schedule_of(pl, row, of);
  const u32 said = diag_count(pl->src->c);
  if (k->refusal) refuse_again(pl, k->refusal);
  if (!k->key && !k->refusal) make_key(pl, k, where);
  if (!k->key && !k->refusal && !where.i)
    k->refusal = keep_refusal(pl, said); // else it has a place of its own
  if (live) *live = k->live;
  return k->key;
}

bool planner_schedule_fits(planner *pl, const sched_row *row, const sched_shape *of, loc where) {
  planned_schedule *k = schedule_of(pl, row, of);
  const u32 said = diag_count(pl->src->c);
  if (k->refusal) refuse_again(pl, k->refusal);
  if (k->fits || k->refusal) return k->fits;
  k->fits = sched_can_make(pl->src->c, row->name, &k->shape, where);
  if (!k->fits && !where.i) k->refusal = keep_refusal(pl, said);
  return k->fits;
}
