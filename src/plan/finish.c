// finish.c - what follows the tasks of a distributed main: results joined over the microbatches, gradients of
// parameters that several stages use brought together, the update of the weights.
#include "plan/main.h"

static type type_of(const main_build *mb, value v) { return func_get(mb->p, mb->b.f)->values.v[v].ty; }

// ---- the update -------------------------------------------------------------------------------------------
// Two gradients of one weight on one group.
static value combine(main_build *mb, value a, value b) {
  prog *p = mb->p;
  type ta = func_get(p, mb->b.f)->values.v[a].ty;
  type_info t = *type_get(p, ta);
  mb->b.coord = 0, mb->b.g = t.g;
  b = shard_convert(mb->x, &mb->b, b, t.lay, t.g);
  u32 opd[2] = {a | OPD_DONATED, b};
  return mb->b.failed ? 0 : emit_res(p, mb->b.f, emit(&mb->b, OP_add, (attrset){0}, opd, 2, &ta, 1));
}

static void name_of(main_build *mb, value v, value w, const char *suffix) {
  value_name(mb->p, mb->b.f, v, sym_with(mb->s->c, mb->m->values.v[w].name, suffix));
}

// Gradients on the groups at all coordinates of one axis, in any order, that make up `all`: the axis, and
// each one put at its coordinate; else 0.
static u8 joined_axis(main_build *mb, group all, value *v, u32 n) {
  const space *sp = mb->p->sp;
  const func_info *f = func_get(mb->p, mb->b.f);
  const group_info *x = group_get(sp, all);
  for (u32 i = 0; i < x->naxes; i++) {
    const group_axis *ax = &x->axis[i];
    if (ax->at >= 0 || group_axis_size(sp, all, ax->axis) != n) continue;
    value *at = ZNEWN(mb->x->a, value, n);
    u32 found = 0;
    for (u32 c = 0; c < n; c++) {
      group g = group_fix(mb->p->sp, all, ax->axis, ax->nonly ? ax->only[c] : c);
      for (u32 k = 0; k < n && !at[c]; k++)
        if (val_type(mb->p, f, v[k])->g.i == g.i) at[c] = v[k], found++;
    }
    if (found < n) continue;
    memcpy(v, at, sizeof *v * n);
    return ax->axis;
  }
  return 0;
}

// Values on several groups in one layout: the first one's, without partial sums that not all of them hold.
static bool same_layout(main_build *mb, value *v, u32 n) {
  prog *p = mb->p;
  layout to = type_get(p, func_get(p, mb->b.f)->values.v[v[0]].ty)->lay;
  layout_info li = *layout_get(p->sp, to);
  for (u32 i = 0; i < li.npart; i++)
    for (u32 k = 1; k < n; k++)
      if (layout_part_of(p->sp, type_get(p, func_get(p, mb->b.f)->values.v[v[k]].ty)->lay, li.part[i].axis) ==
          RED_NONE)
        to = layout_without(p->sp, to, li.part[i].axis);
  for (u32 k = 0; k < n; k++) {
    mb->b.g = type_get(p, func_get(p, mb->b.f)->values.v[v[k]].ty)->g, mb->b.coord = 0;
    v[k] = shard_convert(mb->x, &mb->b, v[k], to, mb->b.g);
  }
  return !mb->b.failed;
}

// Gradients of one weight on several groups of one mesh: one value on the group of all of them. Groups that are the
// coordinates of an axis become a sum over that axis; what lies in any other way is sent there and added.
static value join_groups(main_build *mb, value w, group all, value *v, u32 n) {
  prog *p = mb->p;
  if (n == 1 && type_get(p, type_of(mb, v[0]))->g.i == all.i) return v[0];
  u8 ax = joined_axis(mb, all, v, n);
  mb->b.coord = 0;
  for (u32 k = 0; !ax && k < n; k++) {
    v[k] = main_move(mb, v[k], all, main_filter(mb, type_get(p, type_of(mb, v[k]))->lay, all));
    if (mb->b.failed) return 0;
    if (k) v[0] = combine(mb, v[0], v[k]);
  }
  if (!ax) return v[0];
  if (!same_layout(mb, v, n)) {
    diag_note(p->c, (loc){0}, "these are gradients of %s, which several stages read",
              sym_str(mb->s->c, mb->m->values.v[w].name));
    return 0;
  }
  const type_info *t = type_get(p, type_of(mb, v[0]));
  attr over = attr_x(A_over, &ax, 1);
  shape sh = t->s;
  type rt = type_tensor(p, &sh, layout_with_part(p->sp, t->lay, ax, RED_SUM), all);
  mb->b.g = all, mb->b.coord = 0;
  return emit_res(p, mb->b.f, emit(&mb->b, OP_join, attrs_of(p, &over, 1), v, n, &rt, 1));
}

// The layout in which a copy's gradient goes home: as the weight lies there, without sums over space, and a sum over
// time if it is one.
static layout homeward(main_build *mb, value w, value v) {
  space *sp = mb->p->sp;
  const mesh_param *home = &mb->home[w - 1];
  const layout own = type_get(mb->p, type_of(mb, v))->lay, l = main_filter(mb, home->lay, home->g);
  return mb->time && layout_part_of(sp, own, mb->time) != RED_NONE
             ? layout_with_part(sp, l, mb->time, RED_SUM)
             : l;
}

// Gradients of one weight, one on each group: one value at home. Those of every mesh are joined there first.
static value bring_home(main_build *mb, value w, value *v, u32 n) {
  value *own = NEWN(mb->x->a, value, n + 1), sum = 0;
  bool *done = ZNEWN(mb->x->a, bool, n + 1);
  const mesh_param *home = &mb->home[w - 1];
  for (u32 turn = 0; turn < 2; turn++) // at home, then the copies
    for (u32 k = 0; k < n && !mb->b.failed; k++) {
      const mesh_param *at = main_param(mb, w, type_get(mb->p, type_of(mb, v[k]))->g);
      u32 m = 0;
      if (done[k] || (at == home) == (turn > 0)) continue;
      for (u32 j = k; j < n; j++)
        if (main_param(mb, w, type_get(mb->p, type_of(mb, v[j]))->g) == at) own[m++] = v[j], done[j] = true;
      value x = join_groups(mb, w, at->g, own, m);
      if (!mb->b.failed && at != home) x = main_move(mb, x, home->g, homeward(mb, w, x));
      if (!mb->b.failed) sum = sum ? combine(mb, sum, x) : x;
    }
  return mb->b.failed ? 0 : sum;
}

static value zero_grad(main_build *mb, value w) { // of a weight that the loss does not depend on
  prog *p = mb->p;
  const type_info *t = type_get(p, func_get(p, mb->b.f)->values.v[mb->home[w - 1].v].ty);
  const shape s = main_gradient_shape(mb, w);
  attr at[2] = {attr_t(A_dtype, s.t), attr_v(A_shape, s.dim, s.nd)};
  mb->b.g = t->g, mb->b.coord = 0;
  const type ty = type_tensor(p, &s, t->lay, t->g);
  const value zero = emit_res(p, mb->b.f, emit(&mb->b, OP_full, attrs_of(p, at, 2), NULL, 0, &ty, 1));
  emit_one_a_layer(mb, w);
  return zero;
}

// Gradients of one weight that are added or move elsewhere are fetched from host memory first.
static void fetch_to_join(main_build *mb, value w, value *v, u32 n) {
  const group home = mb->home[w - 1].g;
  if (!main_on_host(mb, OFFLOAD_GRADS) || !n) return;
  mb->grad_on_host[w - 1] = n == 1 && type_get(mb->p, type_of(mb, v[0]))->g.i == home.i;
  for (u32 k = 0; k < n && !mb->grad_on_host[w - 1]; k++) {
    u32 opd = v[k] | OPD_DONATED;
    main_fetch(mb, &opd, 1);
    v[k] = opd;
  }
}

value main_joined_gradient(main_build *mb, value w, value *grad, u32 n) {
  u32 groups = 0; // one value for each distinct group
  for (u32 k = 0; k < n; k++) {
    const group g = type_get(mb->p, type_of(mb, grad[k]))->g;
    u32 j = 0;
    while (j < groups && type_get(mb->p, type_of(mb, grad[j]))->g.i != g.i) j++;
    if (j == groups)
      grad[groups++] = grad[k];
    else
      grad[j] = combine(mb, grad[j], grad[k]);
  }
  return bring_home(mb, w, grad, groups);
}

// Per weight the gradient on the weight's own group, from the packed gradients of all stages; 0: not a
// weight.
static bool gather_grads(main_build *mb, value *out) {
  prog *p = mb->p;
  arena *a = mb->x->a;
  typedef VEC(value) values;
  values *per = ZNEWN(a, values, mb->m->nparams + 1);
  for (u32 i = 0; i < mb->nstages; i++) {
    stage_build *s = &mb->stage[i];
    if (mb->now || !s->gp || !s->gp->nacc || !s->grads || (mb->active && !mb->active[i])) continue;
    const type_info *t = type_get(p, func_get(p, mb->b.f)->values.v[s->grads].ty);
    u32 n = t->n;
    type *ty = arena_dup(a, t->elem, sizeof *t->elem * n);
    mb->b.g = s->g, mb->b.coord = 0;
    value r = emit_res(p, mb->b.f, emit(&mb->b, OP_unpack, (attrset){0}, &s->grads, 1, ty, n));
    for (u32 k = 0; k < n; k++) *vec_push(a, &per[s->src->weight[s->gp->acc[k]] - 1]) = r + k;
  }
  for (u32 i = 0; i < mb->m->nparams; i++) {
    fetch_to_join(mb, i + 1, per[i].v, per[i].n);
    out[i] = per[i].n ? main_joined_gradient(mb, i + 1, per[i].v, per[i].n)
             : main_trains(mb, i + 1) && !mb->skip[i] && !(mb->now && mb->now[i] != mb->home[i].v)
                 ? zero_grad(mb, i + 1)
                 : 0;
    if (mb->b.failed) return false;
  }
  return true;
}

// Weights that live on one group and are updated in one call: what the call reads, in its order, and what it makes.
typedef struct {
  const value *w;
  u32 n, nopd;
  u32 *opd;    // weights, gradients, states
  layout *in;  // theirs
  bool *host;  // which of them lie in host memory
  value first; // result
} update_batch;

// What an update call reads that lies in host memory.
typedef struct {
  u32 n, *opd, *at; // at: their operands in the call
} host_operands;

static void put_operand(main_build *mb, update_batch *u, value v, bool host, host_operands *h) {
  u->in[u->nopd] = type_get(mb->p, type_of(mb, v))->lay, u->host[u->nopd] = host;
  if (host) h->at[h->n] = u->nopd, h->opd[h->n++] = v | OPD_DONATED;
  u->opd[u->nopd++] = v | OPD_DONATED;
}

// The weight where it is updated, as the latest update has left it.
static value weight_now(main_build *mb, value w) {
  return mb->now ? mb->now[w - 1] : main_on_group(mb, mb->home[w - 1].v, main_update_group(mb, w));
}

static void read_operands(main_build *mb, update_batch *u, const value *grad) {
  const u32 most = u->n * (2 + OPTIM_STATES);
  host_operands h = {0, NEWN(mb->x->a, u32, most), NEWN(mb->x->a, u32, most)};
  u->in = NEWN(mb->x->a, layout, most), u->opd = NEWN(mb->x->a, u32, most);
  u->host = NEWN(mb->x->a, bool, most);
  for (u32 i = 0; i < u->n; i++)
    put_operand(mb, u, weight_now(mb, u->w[i]), main_weight_on_host(mb, u->w[i]), &h);
  for (u32 i = 0; i < u->n; i++)
    put_operand(mb, u, grad[u->w[i] - 1], mb->grad_on_host && mb->grad_on_host[u->w[i] - 1], &h);
  for (u32 j = 0; j < OPTIM_STATES; j++)
    for (u32 i = 0; i < u->n; i++)
      if (mb->state[j][u->w[i] - 1])
        put_operand(mb, u, mb->state[j][u->w[i] - 1], main_on_host(mb, OFFLOAD_STATES), &h);
  if (mb->host_update) return;
  mb->b.flags = INSTR_UPDATE;
  main_fetch(mb, h.opd, h.n);
  mb->b.flags = 0;
  for (u32 k = 0; k < h.n; k++) u->opd[h.at[k]] = h.opd[k] | OPD_DONATED;
}

// Which instruction of its stage's function has made a gradient that main takes out of what that returns: its number + 1.
// Numbers of one update are made to begin with 1, so that equal layers share a function. 0: it is made otherwise.
static u32 maker_of(const main_build *mb, value v) {
  const func_info *f = func_get(mb->p, mb->b.f);
  u32 def = f->values.v[v].def;
  const instr *out = def ? &f->body.v[def - 1] : NULL;
  if (!out || out->op != OP_unpack || !(def = f->values.v[opd_of(f, out, 0)].def)) return 0;
  const instr *call = &f->body.v[def - 1];
  if (call->op != OP_call) return 0;
  const func_info *g = func_get(mb->p, call->callee);
  const u32 packed = g->values.v[g->rets.v[opd_of(f, out, 0) - call->res]].def;
  const instr *pack = packed ? &g->body.v[packed - 1] : NULL;
  return pack && pack->op == OP_pack ? g->values.v[opd_of(g, pack, v - out->res)].def : 0;
}

static u32 *makers_of(const main_build *mb, const update_batch *u) {
  u32 *maker = ZNEWN(mb->x->a, u32, u->nopd + 1), *known = NEWN(mb->x->a, u32, u->nopd + 1), n = 0;
  for (u32 i = u->n; i < 2 * u->n; i++) {
    const u32 own = maker_of(mb, u->opd[i] & OPD_VALUE);
    u32 k = 0;
    while (k < n && known[k] != own) k++;
    if (own && k == n) known[n++] = own;
    maker[i] = own ? k + 1 : 0;
  }
  return maker;
}

// The same on the host: weights come to the device unless they lie there too; states stay.
static func on_host(main_build *mb, const update_batch *u, func f, u32 nres) {
  bool *ret = ZNEWN(mb->x->a, bool, nres + 1);
  const u32 states = u->nopd - 2 * u->n;
  for (u32 k = 0; k < u->n + states; k++) ret[k] = k >= u->n || main_on_host(mb, OFFLOAD_PARAMS);
  return main_host_update(mb, f, u->host, ret, makers_of(mb, u));
}

// Updates of all weights of a batch, as one call.
static bool update_group(main_build *mb, update_batch *u) {
  apply *x = mb->x;
  prog *p = mb->p;
  const plan *pn = x->pn;
  const u32 n = u->n;
  const group g = main_update_group(mb, u->w[0]);
  func f = planner_update(x->pl, u->w, n, pn);
  u32 nr = 0;
  layout *demand = NEWN(x->a, layout, n * (2 + OPTIM_STATES));
  for (u32 i = 0; i < u->nopd; i++)
    if (i < n || i >= 2 * n) demand[nr++] = u->in[i];
  for (u32 i = 0; i < n && pn->keep_gradients; i++) demand[nr++] = u->in[i];
  sharded sh;
  x->update = true;
  shard_call_of call = {.f = f, .in = u->in, .demand = demand, .g = g};
  bool ok = shard_function(x, &call, &sh);
  x->update = false;
  if (!ok) return false;
  type *res = NEWN(x->a, type, nr);
  for (u32 k = 0; k < nr; k++) res[k] = type_bind(p, func_result(p, sh.dst, k), g);
  mb->b.g = g, mb->b.coord = 0, mb->b.flags = INSTR_UPDATE;
  u32 at = emit(&mb->b, OP_call, main_update_number(mb, u->w[0]), u->opd, u->nopd, res, nr);
  mb->b.flags = 0;
  func_get(p, mb->b.f)->body.v[at - 1].callee = mb->host_update ? on_host(mb, u, sh.dst, nr) : sh.dst;
  emit_one_a_layer(mb, u->w[0]);
  u->first = emit_res(p, mb->b.f, at);
  return true;
}

// What the update of a batch has made that lies in host memory is stored.
static void store_results(main_build *mb, const update_batch *u, value *made) {
  const u32 n = u->n, states = u->nopd - 2 * n;
  const bool params = main_on_host(mb, OFFLOAD_PARAMS), held = main_on_host(mb, OFFLOAD_STATES);
  if (mb->host_update) return;
  mb->b.flags = INSTR_UPDATE; // weights of a batch are all in one of the two, and so are states
  main_store(mb, params ? made : made + n, (params ? n : 0) + (held ? states : 0));
  mb->b.flags = 0;
}

// Weights, states and gradients that the update of a batch has made.
static void take_results(main_build *mb, const update_batch *u, value *neww, value **news, value *gradout) {
  prog *p = mb->p;
  value *made = NEWN(mb->x->a, value, u->nopd), *r = made;
  for (u32 k = 0; k < u->nopd; k++) made[k] = u->first + k;
  store_results(mb, u, made);
  for (u32 i = 0; i < u->n; i++) neww[u->w[i] - 1] = *r++;
  for (u32 j = 0; j < OPTIM_STATES; j++)
    for (u32 i = 0; i < u->n; i++) {
      const value s = mb->state[j][u->w[i] - 1];
      if (!s) continue;
      news[j][u->w[i] - 1] = *r;
      value_name(p, mb->b.f, *r++, sym_with(p->c, val(func_get(p, mb->b.f), s)->name, IR_NEW));
    }
  for (u32 i = 0; i < u->n && mb->x->pn->keep_gradients; i++) {
    gradout[u->w[i] - 1] = *r;
    name_of(mb, *r++, u->w[i], ".grad");
  }
}

bool main_update(main_build *mb, const value *w, u32 n, const value *grad, value *neww, value **news,
                 value *gradout) {
  update_batch u = {.w = w, .n = n};
  read_operands(mb, &u, grad);
  if (!update_group(mb, &u)) return false;
  take_results(mb, &u, neww, news, gradout);
  return true;
}

// ---- equal layers ---------------------------------------------------------------------------------------
// Weights i and j are updated alike: equal types, layouts, gradients.
static bool alike(const main_build *mb, const value *grad, value i, value j) {
  const func_info *f = func_get(mb->p, mb->b.f);
  return mb->m->values.v[i].ty.i == mb->m->values.v[j].ty.i &&
         mb->home[i - 1].lay.i == mb->home[j - 1].lay.i &&
         f->values.v[grad[i - 1]].ty.i == f->values.v[grad[j - 1]].ty.i;
}

static bool all_alike(const main_build *mb, const value *grad, const value *x, const value *y, u32 n) {
  for (u32 k = 0; k < n; k++)
    if (!alike(mb, grad, x[k], y[k])) return false;
  return true;
}

// How many of the weights w[0..n) one call updates: those of a layer where layers repeat, so that equal
// layers share a function; `last` were updated by the call before.
static u32 layer_of(const main_build *mb, const value *grad, const value *w, u32 n, u32 last) {
  enum { MOST = 64 };
  if (last && n >= last && all_alike(mb, grad, w - last, w, last)) return last;
  for (u32 from = 0; from < n; from++)
    for (u32 k = 2; k <= MOST && from + 2 * k <= n; k++)
      if (all_alike(mb, grad, w + from, w + from + k, k)) return from ? from : k;
  return n;
}

// Those that were updated between tasks.
static void take_latest(main_build *mb, value *neww, value **news, value *gradout) {
  for (u32 i = 0; i < mb->m->nparams; i++) {
    if (mb->now[i] == mb->home[i].v) continue;
    neww[i] = mb->now[i], gradout[i] = mb->last_grad[i];
    name_of(mb, neww[i], i + 1, IR_NEW);
    if (gradout[i]) name_of(mb, gradout[i], i + 1, ".grad");
    for (u32 j = 0; j < OPTIM_STATES; j++)
      if (mb->state[j][i]) {
        optim_state st;
        news[j][i] = mb->state[j][i];
        if (optim_state_find(&mb->x->pn->optim, &val_type(mb->s, mb->m, i + 1)->s, j, &st))
          value_name(mb->p, mb->b.f, news[j][i],
                     sym_with(mb->s->c, mb->m->values.v[i + 1].name,
                              arena_printf(mb->x->a, "%s" IR_NEW, st.suffix)));
      }
  }
}

static bool update_weights(main_build *mb, value *neww, value **news, value *gradout) {
  arena *a = mb->x->a;
  u32 np = mb->m->nparams;
  value *grad = ZNEWN(a, value, np + 1), *w = NEWN(a, value, np + 1);
  u32 *first = NEWN(a, u32, np + 2); // of w, by batch
  bool *done = ZNEWN(a, bool, np + 1);
  if (mb->now) take_latest(mb, neww, news, gradout);
  if (main_on_host(mb, OFFLOAD_GRADS)) mb->grad_on_host = ZNEWN(a, bool, np + 1);
  if (!gather_grads(mb, grad)) return false;
  for (u32 i = 0; i < np; i++)
    if (grad[i]) grad[i] = main_push(mb, i + 1, grad[i]);
  for (u32 i = 0; i < np; i++) {
    if (done[i] || !grad[i]) continue;
    const group g = main_update_group(mb, i + 1);
    u32 n = 0, batches = 0;
    for (u32 j = i; j < np; j++)
      if (grad[j] && !done[j] && main_update_group(mb, j + 1).i == g.i) w[n++] = j + 1, done[j] = true;
    for (u32 at = 0, k = 0; at < n; at += k) first[batches++] = at, k = layer_of(mb, grad, w + at, n - at, k);
    first[batches] = n;
    // Where something works beside the backward, the gradients of the last layers are there first.
    const bool back = mb->host_update || mb->x->pn->sum_stream.i;
    for (u32 b = 0; b < batches; b++) {
      const u32 own = back ? batches - 1 - b : b;
      if (!main_update(mb, w + first[own], first[own + 1] - first[own], grad, neww, news, gradout))
        return false;
    }
  }
  for (u32 i = 0; i < np; i++) {
    if (!neww[i] || !grad[i]) continue;
    neww[i] = main_pull(mb, i + 1, neww[i]);
    name_of(mb, neww[i], i + 1, IR_NEW);
  }
  return !mb->b.failed;
}

// ---- results ----------------------------------------------------------------------------------------------
static u32 first_of(const main_build *mb, u32 replica) { // microbatch
  u32 n = 0;
  for (u32 r = 0; r < replica; r++) n += main_micro(mb, r);
  return n;
}

// Is it a sum over time in every replica?
static bool is_sum_over_time(const main_build *mb, const stage_build *s, value v) {
  for (u32 r = 0; r < mb->nreplicas; r++) {
    const stage_build *at = &mb->stage[r * mb->nsegments + s->segment];
    const value x = at->res[(size_t)mb->out_of[v] * mb->nmb + first_of(mb, r)];
    if (layout_part_of(mb->p->sp, type_get(mb->p, type_of(mb, x))->lay, mb->time) != RED_SUM) return false;
  }
  return true;
}

// What the microbatches of a replica have together.
static value sum_of_replica(main_build *mb, const stage_build *at, value v) {
  const u32 r = at->replica;
  const value *per = &at->res[(size_t)mb->out_of[v] * mb->nmb + first_of(mb, r)];
  const attr over = attr_x(A_over, &mb->time, 1);
  const type ty = type_of(mb, per[0]);
  mb->b.g = at->g, mb->b.coord = 0;
  if (main_micro(mb, r) == 1) return per[0];
  return emit_res(mb->p, mb->b.f,
                  emit(&mb->b, OP_join, attrs_of(mb->p, &over, 1), per, main_micro(mb, r), &ty, 1));
}

// Sums of replicas that lie in any way, where the first one's is.
static value added_replicas(main_build *mb, const stage_build *s, value *own) {
  space *sp = mb->p->sp;
  const layout first = type_get(mb->p, type_of(mb, own[0]))->lay,
               to = layout_with_part(sp, main_filter(mb, first, s->g), mb->time, RED_SUM);
  value sum = 0;
  for (u32 r = 0; r < mb->nreplicas && !mb->b.failed; r++) {
    const value x = main_move(mb, own[r], s->g, to);
    if (!mb->b.failed) sum = sum ? combine(mb, sum, x) : x;
  }
  return sum;
}

// A sum over time: what the microbatches of each replica have together, and these joined as gradients are where they
// lie along an axis, else sent to the first and added.
static value joined_replicas(main_build *mb, const stage_build *s, value v) {
  const space *sp = mb->p->sp;
  group all = s->g;
  value *own = NEWN(mb->x->a, value, mb->nreplicas);
  bool along = true;
  for (u32 r = 0; r < mb->nreplicas; r++) {
    const stage_build *at = &mb->stage[r * mb->nsegments + s->segment];
    own[r] = sum_of_replica(mb, at, v);
    along = along && group_get(sp, at->g)->m.i == group_get(sp, s->g)->m.i;
    if (along) all = main_union(mb, all, at->g);
  }
  along = along && joined_axis(mb, all, arena_dup(mb->x->a, own, mb->nreplicas * sizeof *own), mb->nreplicas);
  const value sum = along ? join_groups(mb, v, all, own, mb->nreplicas) : added_replicas(mb, s, own);
  if (mb->b.failed) return 0;
  mb->b.g = along ? all : s->g, mb->b.coord = 0;
  return shard_complete(mb->x, &mb->b, sum);
}

// One microbatch's part of a value that main returns, on the group of the replica that the value is returned from.
static value part_at(main_build *mb, const stage_build *s, value v, u32 m) {
  u32 r = 0, last = 0;
  while (m >= (last += main_micro(mb, r))) r++;
  const stage_build *from = &mb->stage[r * mb->nsegments + s->segment];
  const value x = from->res[(size_t)mb->out_of[v] * mb->nmb + m];
  if (from == s) return x;
  mb->b.coord = mb->point[m];
  return main_move(mb, x, s->g, s->out[mb->out_of[v]]);
}

// The microbatches of a value that varies in time as one.
static value joined(main_build *mb, const stage_build *s, value v) {
  prog *p = mb->p;
  value *per = &s->res[(size_t)mb->out_of[v] * mb->nmb], sum = 0;
  if (mb->nreplicas > 1 && is_sum_over_time(mb, s, v)) sum = joined_replicas(mb, s, v);
  if (sum || mb->b.failed) return sum;
  for (u32 m = 0; m < mb->nmb && mb->nreplicas > 1 && !mb->b.failed; m++) per[m] = part_at(mb, s, v, m);
  if (mb->b.failed) return 0;
  const type_info t = *type_get(p, type_of(mb, per[0]));
  const attr over = attr_x(A_over, &mb->time, 1);
  const type rt = type_tensor(p, &t.s, layout_without(p->sp, t.lay, mb->time), t.g);
  mb->b.g = s->g, mb->b.coord = 0;
  return emit_res(p, mb->b.f, emit(&mb->b, OP_join, attrs_of(p, &over, 1), per, mb->nmb, &rt, 1));
}

// A value that main returns: the microbatches joined, sums over space done.
static value returned(main_build *mb, value v) {
  prog *p = mb->p;
  const stage_build *s = main_maker(mb, &mb->stage[0], v);
  if (!s) return mb->home[v - 1].v;
  value r = s->res[(size_t)mb->out_of[v] * mb->nmb];
  const layout own = type_get(p, type_of(mb, r))->lay;
  if (mb->time && (layout_split_of(p->sp, own, mb->time) || layout_part_of(p->sp, own, mb->time) != RED_NONE))
    r = joined(mb, s, v);
  if (mb->b.failed) return 0;
  const type_info t = *type_get(p, type_of(mb, r));
  mb->b.g = t.g, mb->b.coord = 0;
  r = shard_convert(mb->x, &mb->b, r, main_filter(mb, t.lay, t.g), t.g);
  value_name(p, mb->b.f, r, mb->m->values.v[v].name);
  return r;
}

bool main_finish(main_build *mb) {
  arena *a = mb->x->a;
  const plan *pn = mb->x->pn;
  u32 np = mb->m->nparams, n = 0;
  value *ret = NEWN(a, value, mb->m->rets.n + np * (2 + OPTIM_STATES) + 1), *neww = ZNEWN(a, value, np + 1),
        *grad = ZNEWN(a, value, np + 1), *news[OPTIM_STATES];
  for (u32 j = 0; j < OPTIM_STATES; j++) news[j] = ZNEWN(a, value, np + 1);
  for (u32 i = 0; i < mb->m->rets.n; i++) {
    value v = mb->m->rets.v[i];
    u32 from = mb->stage_of[v];
    if (from ? !mb->active || mb->active[from - 1] : !mb->skip[v - 1]) ret[n++] = returned(mb, v);
  }
  if (mb->b.failed || (pn->train && !update_weights(mb, neww, news, grad))) return false;
  for (u32 i = 0; i < np; i++)
    if (grad[i]) ret[n++] = grad[i];
  for (u32 i = 0; i < np; i++)
    if (neww[i]) ret[n++] = neww[i];
  for (u32 j = 0; j < OPTIM_STATES; j++)
    for (u32 i = 0; i < np; i++)
      if (news[j][i]) ret[n++] = news[j][i];
  func_return(mb->p, mb->b.f, ret, n);
  mb->p->main = mb->b.f;
  mb->p->tasks_of = func_get(mb->p, mb->b.f)->body.n;
  return !mb->b.failed;
}
