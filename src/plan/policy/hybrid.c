// hybrid.c - the plan of a strategy: the batch over data ranks and microbatches, then the other policies,
// each of which adds its part.
#include "plan/plan.h"

// ---- the batch over an axis -------------------------------------------------------------------------------
// Shares of every microbatch that differ by one sample at most. NULL: there is none for every rank.
static const char *nearly_equal(arena *a, const plan *pn, i64 batch, u32 n) {
  const u32 K = pn->time ? pn->axes[pn->time - 1].size : 1;
  const i64 micro = batch / K;
  if (batch % K || micro < n || micro > UINT32_MAX || n > UINT16_MAX || pn->batchnorm_groups) return NULL;
  u32 *part = NEWN(a, u32, n);
  for (u32 j = 0; j < n; j++) part[j] = (u32)(micro / n + (j < micro % n));
  strbuf out = {.a = a};
  choice_say(CHOICE_dp_shares, (choice_value){.nparts = n, .part = part}, &out);
  return sb_str(&out);
}

static bool indivisible(prog *p, const plan *pn, i64 batch, i64 left, const plan_axis *over) {
  const loc at = func_get(p, p->main)->where;
  const char *axis = sym_str(p->c, over->name);
  const u32 n = plan_parts(over);
  const bool row = !strcmp(axis, "dp"); // else an axis of places of one degree, or of annotations
  const char *dealt =
      row && !over->shares && left == batch ? nearly_equal(ctx_arena(p->c), pn, batch, n) : NULL;
  strbuf by = {.a = ctx_arena(p->c)};
  sb_fmt(&by,
         !over->shares ? "%1$s=%2$u"
         : row         ? "%2$u, the sum of %1$s.shares"
                       : "%2$u, the sum of the shares of axis %1$s",
         axis, n);
  if (left == batch)
    diag(p->c, E_DIVIDE, at, "batch %lld is not divisible by %s", (long long)batch, sb_str(&by));
  else
    diag(p->c, E_DIVIDE, at, "batch %lld / %s %lld = %lld is not divisible by %s", (long long)batch,
         over->temporal ? "dp" : "mb", (long long)(batch / left), (long long)left, sb_str(&by));
  if (over->shares)
    diag_hint(p->c, "use shares whose sum divides %lld%s, or a batch that is a multiple of %lld",
              (long long)left, row ? ", dp.shares=auto" : "", (long long)(batch / left * n));
  else
    diag_hint(p->c, "choose a batch that is a multiple of %lld%s%s", (long long)(batch / left * n),
              dealt ? ", or " : "", dealt ? dealt : "");
  return false;
}

// Are both axes in time or in one mesh? Else no rank is split over both.
static bool meet(const plan *pn, u8 x, u8 y) {
  bool both = pn->axes[x - 1].temporal || pn->axes[y - 1].temporal;
  for (u32 k = 0; k < pn->nmeshes && !both; k++) {
    u32 has = 0;
    for (u32 j = 0; j < pn->meshes[k].naxes; j++)
      has += pn->meshes[k].axis[j] == x || pn->meshes[k].axis[j] == y;
    both = has > 1;
  }
  return both;
}

// The batch is the index of atom `which` of the first input's first dimension; every input is split wherever that
// index occurs.
bool policy_batch_part(planner *pl, arena *a, plan *pn, u8 axis, u32 which) {
  prog *p = planner_source(pl);
  const func_info *m = func_get(p, p->main);
  const classes *k = planner_classes(pl);
  u32 batch = 0, n = plan_parts(&pn->axes[axis - 1]), first = 0;
  const u32 *input, ninputs = planner_inputs(pl, &input);
  plan_trans *more = NEWN(a, plan_trans, pn->ntrans + ninputs + 1);
  if (pn->ntrans) memcpy(more, pn->trans, sizeof *more * pn->ntrans);
  pn->trans = more;
  bool ok = true;
  for (u32 q = 0; q < ninputs && ok; q++) {
    const u32 i = input[q];
    const shape *s = &val_type(p, m, i + 1)->s;
    bool split = false; // the batch may be in two dimensions, but an axis splits one
    for (u32 d = 0; d < s->nd && !split; d++) {
      u32 id[16], na = classes_dim(k, p->main, i + 1, d, id, 16);
      if (!first) first = i + 1, batch = which < na ? id[which] : 0;
      i64 inner = s->dim[d];
      for (u32 j = 0; j < na && !split; j++) {
        i64 e = classes_get(k, id[j])->extent;
        inner /= e;
        if (id[j] != batch) continue;
        i64 left = e; // of the batch after the axes that split it already
        for (u32 t = 0; t < pn->ntrans; t++)
          if (pn->trans[t].fn.i == p->main.i && !pn->trans[t].instr && pn->trans[t].index == i &&
              meet(pn, pn->trans[t].axis, axis) && pn->trans[t].dim == d && pn->trans[t].stride >= inner &&
              pn->trans[t].stride < inner * e)
            left /= plan_parts(&pn->axes[pn->trans[t].axis - 1]);
        if (left % n) {
          ok = indivisible(p, pn, e, left, &pn->axes[axis - 1]);
          break;
        }
        pn->trans[pn->ntrans++] =
            (plan_trans){.fn = p->main, .index = i, .dim = (u8)d, .axis = axis, .stride = inner * (left / n)};
        split = true;
      }
    }
  }
  if (!ok || batch) return ok;
  const char *name = first ? sym_str(p->c, val(m, first)->name) : "";
  if (!first)
    diag(p->c, E_PLAN, m->where, "the model has no input with a batch to split");
  else
    diag(p->c, E_DIVIDE, m->where,
         "the batch (the first extent of input %s) is 1: it cannot be split %u ways over %s", name, n,
         sym_str(p->c, pn->axes[axis - 1].name));
  if (first) diag_hint(p->c, "a larger --batch, or tp instead");
  return false;
}

bool policy_batch(planner *pl, arena *a, plan *pn, u8 axis) { return policy_batch_part(pl, a, pn, axis, 0); }

// Over data ranks and microbatches. Where batch norm is synchronised its groups are microbatches, and unequal
// shares are of a microbatch: time is the major part of the batch then, and every rank has a piece of each.
static bool deal_out(planner *pl, arena *a, plan *pn, u8 dp, const strategy *s) {
  const bool sync = pn->batchnorm_groups && pn->time && choice_is(CHOICE_bn, s->bn, "sync"),
             by_time = sync || (pn->time && pn->axes[dp - 1].shares);
  if (by_time && !policy_batch(pl, a, pn, pn->time)) return false;
  if (s->dp.n > 1 && !policy_batch_part(pl, a, pn, dp, sync)) return false; // sync: inside a group
  return by_time || s->mb.n <= 1 || policy_batch(pl, a, pn, pn->time);
}

i64 policy_batch_extent(planner *pl) {
  prog *p = planner_source(pl);
  const classes *k = planner_classes(pl);
  const u32 *input;
  u32 id[16];
  if (!planner_inputs(pl, &input)) return 0;
  return classes_dim(k, p->main, input[0] + 1, 0, id, COUNT_OF(id)) ? classes_get(k, id[0])->extent : 0;
}

// ---- memory -----------------------------------------------------------------------------------------------
void policy_zero(plan *pn, u8 axis, u32 level) { // 1: optimizer states, 2: gradients too, 3: weights too
  static const storage_kind what[] = {STORAGE_STATE, STORAGE_GRAD, STORAGE_WEIGHT};
  for (u32 i = 0; i < level && i < 3; i++) pn->storage[what[i]][pn->nstorage[what[i]]++] = axis;
}

// Full: every call of a function of main keeps its inputs only. Selective: products of activations with
// activations and what lies between them (attention scores, softmax) are computed again.
bool policy_recompute(planner *pl, arena *a, plan *pn, choice_value what) {
  prog *p = planner_source(pl);
  const bool full = choice_is(CHOICE_recompute, what, "full");
  if (choice_is(CHOICE_recompute, what, "none")) {
    policy_coshard_again(pl, a, pn);
    return true;
  }
  u32 total = 0;
  for (u32 f = 1; f < planner_funcs(pl); f++) total += p->funcs.v[f]->body.n;
  pn->recompute = arena_alloc(a, sizeof *pn->recompute * (total + 1));
  const func_info *m = func_get(p, p->main);
  for (u32 i = 0; full && i < m->body.n; i++)
    if (m->body.v[i].op == OP_call)
      pn->recompute[pn->nrecompute].fn = p->main, pn->recompute[pn->nrecompute++].instr = i + 1;
  for (u32 f = 1; !full && f < planner_funcs(pl); f++) {
    const func_info *fi = p->funcs.v[f];
    bool *scores =
        ZNEWN(a, bool, fi->values.n); // depends on a product of activations, by cheap instructions only
    for (u32 i = 0; i < fi->body.n; i++) {
      const instr *in = &fi->body.v[i];
      bool gemm = op_row_of(in->op)->flags & OPF_GEMM, from = false, weight = false;
      for (u32 k = 0; k < instr_nopd(fi, in); k++) {
        value v = opd_of(fi, in, k);
        from |= scores[v];
        weight |= !fi->values.v[v].def && fi->params.v[v - 1].r == ROLE_WEIGHT;
      }
      bool again = in->op != OP_call && in->op != OP_attention && ((gemm && !weight) || (!gemm && from));
      for (u32 k = 0; k < in->nres; k++) scores[in->res + k] = again && !(gemm && from);
      if (again && in->nres)
        pn->recompute[pn->nrecompute].fn = (func){f}, pn->recompute[pn->nrecompute++].instr = i + 1;
    }
  }
  policy_coshard_again(pl, a, pn);
  plan_drop_marks(pl, pn);
  return true;
}

// ---- all together -----------------------------------------------------------------------------------------
u8 plan_add_axis(ctx *c, plan *pn, const char *name, u32 size, bool temporal) {
  pn->axes[pn->naxes++] = (plan_axis){.name = sym_of(c, name), .size = size, .temporal = temporal};
  return (u8)pn->naxes;
}

static loc said_at(const hybrid_opts *o, choice_id id) { return o->said ? o->said->of[id].at : (loc){0}; }

static bool has_half(const prog *p) { // weights in f16 or bf16
  const func_info *m = func_get(p, p->main);
  for (u32 k = 0; k < m->nparams; k++) {
    const dtype t = val_type(p, m, k + 1)->s.t;
    if (m->params.v[k].r == ROLE_WEIGHT && dtype_kind_of(t) == DK_FLOAT && dtype_bytes(t) < 4) return true;
  }
  return false;
}

bool policy_wide_gradients(const prog *src, const strategy *s) {
  return choice_is(CHOICE_grads, s->grads, "f32") && has_half(src);
}

void policy_sends(ctx *c, plan *pn, const strategy *s) {
  static const u8 channels[] = {4, 2, 1};
  const bool beside = s->overlap.n & OVERLAP_PP;
  pn->send_stream = beside ? sym_of(c, "pp") : (sym){0};
  pn->send_channels = beside ? channels[s->channels.n] : 0;
}

void policy_sums(ctx *c, plan *pn, const strategy *s) {
  pn->sum_stream = s->overlap.n & OVERLAP_DP ? sym_of(c, "dp") : (sym){0};
}

static plan *frame(arena *a, const prog *src, const hybrid_opts *o) {
  plan *pn = NEW(a, plan);
  pn->train = o->train, pn->optim = o->optim, pn->keep_gradients = o->keep_gradients;
  pn->wide_gradients = policy_wide_gradients(src, &o->s);
  pn->materialise = (materialise_way)o->s.materialise.n;
  pn->axes = NEWN(a, plan_axis, 8);
  pn->meshes = ZNEWN(a, plan_mesh, 1);
  pn->nmeshes = 1;
  return pn;
}

enum { AXIS_pp = 1, AXIS_dp, AXIS_tp }; // in the order in which they are added

bool policy_split_tensors(planner *pl, arena *a, plan *pn, u8 axis, const strategy *s) {
  if (pn->axes[axis - 1].size == 1) return true;
  if (s->axial.n) return policy_axial(pl, a, pn, axis);
  if (!policy_tensor(pl, a, pn, axis, choice_is(CHOICE_tables, s->tables, "whole"))) return false;
  policy_coshard_tensor(pl, a, pn, axis);
  return !s->sp.n || policy_sequence(pl, a, pn, axis);
}

// Splits that were found before, over the axis.
static void add_splits(arena *a, plan *pn, u8 axis, const plan_splits *s) {
  plan_trans *v = NEWN(a, plan_trans, pn->ntrans + s->n + 1);
  if (pn->ntrans) memcpy(v, pn->trans, sizeof *v * pn->ntrans);
  pn->trans = v;
  for (u32 k = 0; k < s->n && pn->axes[axis - 1].size > 1; k++) {
    v[pn->ntrans] = s->v[k];
    v[pn->ntrans++].axis = axis;
  }
}

static void add_again(planner *pl, arena *a, plan *pn, const plan_splits *s) {
  const u32 n = pn->nrecompute;
  void *v = arena_alloc(a, sizeof *pn->recompute * (n + s->nagain + 1));
  if (n) memcpy(v, pn->recompute, sizeof *pn->recompute * n);
  pn->recompute = v;
  for (u32 k = 0; k < s->nagain; k++) {
    u32 j = 0;
    while (j < n &&
           (pn->recompute[j].fn.i != s->again[k].fn.i || pn->recompute[j].instr != s->again[k].instr))
      j++;
    if (j < n) continue;
    pn->recompute[pn->nrecompute].fn = s->again[k].fn,
    pn->recompute[pn->nrecompute++].instr = s->again[k].instr;
  }
  plan_drop_marks(pl, pn);
}

// Places with another tensor degree are on another mesh, of axes of its own: pp4, dp4 and tp4 for degree 4.
typedef struct {
  u32 n, degree[64], places[64]; // places: how many have it
  u32 first[64];                 // the first place that has it
  u32 *of, *at;                  // by place: number of its degree; how many places before it have that
} degrees;

static degrees degrees_of(arena *a, const strategy *s) {
  degrees d = {.of = NEWN(a, u32, s->pp.n), .at = NEWN(a, u32, s->pp.n)};
  for (u32 q = 0; q < s->tp_stages.nparts; q++) {
    u32 k = 0;
    while (k < d.n && d.degree[k] != s->tp_stages.part[q]) k++;
    if (k == COUNT_OF(d.degree)) return (degrees){0};
    if (k == d.n) d.first[k] = q, d.degree[d.n++] = s->tp_stages.part[q];
    d.of[q] = k, d.at[q] = d.places[k]++;
  }
  return d;
}

enum { AXES_A_DEGREE = AXIS_PLACE, DEGREES_MOST = 20 };
static bool unordered_by_degree(planner *pl, arena *a, plan *pn, const strategy *s) {
  ctx *c = planner_source(pl)->c;
  const u32 ranks = s->dp.n * s->tp.n;
  const degrees d = degrees_of(a, s);
  if (!d.n || d.n > DEGREES_MOST || pn->batchnorm_groups) {
    diag(c, E_STRATEGY, (loc){0},
         pn->batchnorm_groups ? "tp.stages: batch norm needs the same data ranks in all stages"
                              : "tp.stages has more than %u different degrees",
         DEGREES_MOST);
    return false;
  }
  pn->axes = NEWN(a, plan_axis, AXES_A_DEGREE * d.n + 1);
  pn->meshes = ZNEWN(a, plan_mesh, d.n), pn->nmeshes = d.n;
  for (u32 k = 0; k < d.n; k++) {
    u32 *rank = NEWN(a, u32, d.places[k] * ranks), n = 0;
    plan_mesh *m = &pn->meshes[k];
    for (u32 q = 0; q < s->pp.n; q++)
      for (u32 r = 0; d.of[q] == k && r < ranks; r++)
        rank[n++] = s->skip.n + strategy_block(s, q) * ranks + r;
    *m = (plan_mesh){.name = sym_of(c, arena_printf(a, "m%u", d.degree[k])), .ranks = rank, .nranks = n};
    m->axis[m->naxes++] = plan_add_axis(c, pn, arena_printf(a, "pp%u", d.degree[k]), d.places[k], false);
    m->axis[m->naxes++] =
        plan_add_axis(c, pn, arena_printf(a, "dp%u", d.degree[k]), ranks / d.degree[k], false);
    m->axis[m->naxes++] = plan_add_axis(c, pn, arena_printf(a, "tp%u", d.degree[k]), d.degree[k], false);
    pn->axes[mesh_axis(m, AXIS_DATA) - 1].shares = strategy_shares_at(a, s, CHOICE_dp_shares, d.first[k]);
    pn->axes[mesh_axis(m, AXIS_TENSOR) - 1].shares = strategy_shares_at(a, s, CHOICE_tp_shares, d.first[k]);
  }
  if (s->mb.n > 1) pn->time = plan_add_axis(c, pn, "mb", s->mb.n, true);
  if (pn->time && !policy_batch(pl, a, pn, pn->time)) return false;
  for (u32 k = 0; k < d.n; k++) {
    const u8 axis = mesh_axis(&pn->meshes[k], AXIS_DATA);
    if (pn->axes[axis - 1].size > 1 && !policy_batch(pl, a, pn, axis)) return false;
    policy_zero(pn, axis, s->zero.n), policy_sync(pn, axis, s);
  }
  for (u32 k = 0; k < d.n; k++)
    if (!policy_split_tensors(pl, a, pn, mesh_axis(&pn->meshes[k], AXIS_TENSOR), s)) return false;
  return policy_recompute(pl, a, pn, s->recompute);
}

// From a coordinate of the one mesh to that of the meshes of degrees.
static plan_submesh of_degree(const plan *pn, const degrees *d, plan_submesh on) {
  const u32 q = on.fix[0].at;
  on.mesh = d->of[q];
  on.fix[0] = (plan_fix){mesh_axis(&pn->meshes[on.mesh], AXIS_PLACE), d->at[q]};
  return on;
}

// Every data rank has as many samples of its own, or statistics are over all of them.
static bool batchnorm_is_shared_out(const planner *pl, prog *src, const hybrid_opts *o) {
  const choice_value x = o->s.dp_shares;
  bool equal = true;
  for (u32 k = 1; k < x.nparts; k++) equal = equal && x.part[k] == x.part[0];
  if (equal || !planner_batchnorm(pl)->groups || choice_is(CHOICE_bn, o->s.bn, "sync")) return true;
  diag(src->c, E_STRATEGY, said_at(o, CHOICE_dp_shares),
       "dp.shares: batch norm would take its statistics over unequal parts of the batch");
  diag_hint(src->c, "bn=sync takes them over all data ranks");
  return false;
}

plan *policy_unordered(planner *pl, arena *a, const hybrid_opts *o) {
  ctx *c = planner_source(pl)->c;
  const strategy *s = &o->s;
  plan *pn = frame(a, planner_source(pl), o);
  pn->batchnorm_groups = policy_batchnorm(planner_batchnorm(pl), s);
  pn->coshard = policy_coshard_parts(s), pn->coshard_at = said_at(o, CHOICE_coshard);
  pn->fused_attention = choice_is(CHOICE_attention, s->attention, "fused");
  pn->attention_at = said_at(o, CHOICE_attention);
  if (!policy_coshard_fits(pl, s, pn->coshard_at)) return NULL;
  if (!policy_offload(planner_source(pl), pn, o)) return NULL;
  if (s->replicas.nparts) return policy_make_up(pl, a, pn, o) ? pn : NULL;
  pl = planner_formed(pl, pn);
  if (!pl) return NULL;
  if (!batchnorm_is_shared_out(pl, planner_source(pl), o)) return NULL;
  if (s->tp_stages.nparts) return unordered_by_degree(pl, a, pn, s) ? pn : NULL;
  plan_add_axis(c, pn, "pp", s->pp.n, false);
  plan_add_axis(c, pn, "dp", s->dp.n, false);
  plan_add_axis(c, pn, "tp", s->tp.n, false);
  pn->axes[AXIS_dp - 1].shares = strategy_shares_at(a, s, CHOICE_dp_shares, 0);
  pn->axes[AXIS_tp - 1].shares = strategy_shares_at(a, s, CHOICE_tp_shares, 0);
  pn->meshes[0] = (plan_mesh){
      .name = sym_of(c, "m"), .naxes = 3, .axis = {AXIS_pp, AXIS_dp, AXIS_tp}, .first = s->skip.n};
  bool inorder = true;
  for (u32 q = 0; q < s->places.nparts; q++) inorder = inorder && strategy_block(s, q) == q;
  if (!inorder) {
    const u32 block = s->dp.n * s->tp.n, n = s->pp.n * block;
    u32 *rank = NEWN(a, u32, n);
    for (u32 r = 0; r < n; r++) rank[r] = s->skip.n + strategy_block(s, r / block) * block + r % block;
    pn->meshes[0].ranks = rank, pn->meshes[0].nranks = n;
  }
  if (s->mb.n > 1) pn->time = plan_add_axis(c, pn, "mb", s->mb.n, true);
  if (!deal_out(pl, a, pn, AXIS_dp, s)) return NULL;
  if (o->splits)
    add_splits(a, pn, AXIS_tp, o->splits);
  else if (!policy_split_tensors(pl, a, pn, AXIS_tp, s))
    return NULL;
  if (policy_is_interlaced(s) && !policy_split_wide(pl, a, pn, AXIS_pp, s, said_at(o, CHOICE_schedule)))
    return NULL;
  policy_zero(pn, AXIS_dp, s->zero.n), policy_sync(pn, AXIS_dp, s);
  if (!policy_recompute(pl, a, pn, s->recompute)) return NULL;
  if (o->splits && o->splits->nagain) add_again(pl, a, pn, o->splits);
  return pn;
}

bool policy_ordered(planner *pl, arena *a, plan *pn, const hybrid_opts *o, const sched **file) {
  const strategy *s = &o->s;
  if (s->pp.n > 1) policy_sends(planner_source(pl)->c, pn, s);
  policy_sums(planner_source(pl)->c, pn, s);
  pn->rendezvous = choice_is(CHOICE_buffers, s->buffers, "rendezvous");
  const loc at = said_at(o, s->v.n > 1 && !s->schedule.path ? CHOICE_v : CHOICE_schedule);
  return policy_schedule(pl, a, pn, s, o, at, file);
}

bool policy_staged(planner *pl, arena *a, plan *pn, const hybrid_opts *o, const sched *file) {
  pl = planner_formed(pl, pn);
  if (!pl || !policy_stages(pl, a, pn, AXIS_pp, &o->s, file, said_at(o, CHOICE_layers))) return false;
  const degrees d = degrees_of(a, &o->s);
  for (u32 k = 0; d.n && k < pn->nsegments; k++) pn->segments[k].on = of_degree(pn, &d, pn->segments[k].on);
  return true;
}

void policy_replicas(arena *a, plan *pn, const strategy *s, const sched *file) {
  const u32 n = file ? file->nreplicas : sched_replicas(pn->made.row);
  if (n < 2) return;
  const degrees d = degrees_of(a, s);
  pn->nreplicas = n;
  pn->replicas = ZNEWN(a, plan_replica, n);
  for (u32 r = 0; r < n; r++) {
    pn->replicas[r].micro = file ? sched_micro(file, r) : s->mb.n / n;
    plan_submesh *on = NEWN(a, plan_submesh, pn->nsegments);
    for (u32 k = 0; r && k < pn->nsegments; k++) {
      const u32 q = file ? file->at[r * pn->nsegments + k].v[0] : sched_place(pn->made.row, s->pp.n, r, k);
      on[k] = (plan_submesh){.nfix = 1, .fix = {{AXIS_pp, q}}};
      if (d.n) on[k] = of_degree(pn, &d, on[k]);
    }
    if (r) pn->replicas[r].on = on;
  }
}

plan *policy_hybrid(planner *pl, arena *a, const hybrid_opts *o) {
  ctx *c = planner_source(pl)->c;
  hybrid_opts own = *o;
  if (!policy_schedule_read(c, a, &own) || !strategy_settle(c, o->said, 0, o->train, &own.s)) return NULL;
  if (!policy_balance(pl, a, &own, &own.s)) return NULL;
  const sched *file = NULL;
  plan *pn = policy_unordered(pl, a, &own);
  const bool made_up = own.s.replicas.nparts; // with stages and order of their own
  if (!pn) return NULL;
  if (!made_up && (!policy_ordered(pl, a, pn, &own, &file) || !policy_staged(pl, a, pn, &own, file)))
    return NULL;
  if (!made_up) policy_replicas(a, pn, &own.s, file);
  if (!made_up && !policy_unrolled(c, a, pn, &own)) return NULL;
  plan_drop_ways(pl, pn);
  strategy said = o->s; // with the numbers that `auto` stands for
  said.layers = own.s.layers, said.dp_shares = own.s.dp_shares, said.tp_shares = own.s.tp_shares;
  said.places = own.s.places, said.v = own.s.v;
  pn->name = sym_of(c, strategy_str(a, &said));
  return pn;
}
