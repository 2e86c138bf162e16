// measured.c - times of layers that somebody measured, as prices of the instructions of a plan's program.
//
// Idea: a layer is measured as a whole, prices are of instructions. So every price of a layer is multiplied
// by what was measured over what the cost model says of all of the layer: its parts keep their proportions,
// and together they take what was measured. What the cost model says is asked of a plan of one stage in which
// the same tensor splits lie on devices of one kind, with as many samples, and is kept.
#include "plan/internal.h"
#include "machine/machine.h"

// Parts of a model, by origin: what main does before its first block, blocks by function, what follows the
// last one. What lies between two blocks counts to the one before.
enum { PARTS_MOST = 60 };
struct model_parts {
  u32 n;
  const char *name[PARTS_MOST + 1]; // from 1
  u32 count[PARTS_MOST + 1];
  u32 norigins;
  u8 *of; // by origin
};

typedef struct {
  planner *pl;
  const plan *pn;
  cost_model *k;
  const machine_profile *times;
  const struct model_parts *parts;
  arena *a;
  u64 data, tensor; // axes of the plan: bit x, from 1
  i64 batch;
} measuring;

// What a rank has to do, and with whom: its tensor group, and how that lies.
typedef struct {
  u32 mesh, kind;
  double samples;
  const u32 *group;
  u32 n;
  u64 lies;
} loaded;

// ---- parts of the model ---------------------------------------------------------------------------------
static u32 part_named(struct model_parts *x, const char *name) {
  for (u32 i = 1; i <= x->n; i++)
    if (!strcmp(x->name[i], name)) return i;
  if (x->n == PARTS_MOST) return 0;
  x->name[++x->n] = name;
  return x->n;
}

static void mark(const prog *p, struct model_parts *x, func f, u32 from, u32 to, u32 part) {
  const func_info *fi = func_get(p, f);
  for (u32 i = from; i < to; i++) {
    const instr *in = &fi->body.v[i];
    if (!x->of[in->origin]) x->of[in->origin] = (u8)part;
    if (in->op == OP_call) mark(p, x, in->callee, 0, func_get(p, in->callee)->body.n, part);
  }
}

// The parts of a program that a plan made: by origin, and by function where an operator became one of its
// own, whose instructions have no origin.
static measured_times parts_in(arena *a, const struct model_parts *x, const prog *p) {
  u8 *of = ZNEWN(a, u8, p->norigins + 1), *part = ZNEWN(a, u8, p->funcs.n + 1);
  const func_info **made = NEWN(a, const func_info *, p->funcs.n + 1);
  u32 n = 0;
  memcpy(of, x->of, MIN(p->norigins, x->norigins) + 1);
  for (u32 f = 1; f < p->funcs.n; f++)
    for (u32 i = 0; i < p->funcs.v[f]->body.n; i++) {
      const instr *in = &p->funcs.v[f]->body.v[i];
      if (in->op != OP_call || !of[in->origin]) continue;
      const func_info *callee = func_get(p, in->callee);
      u32 k = 0;
      while (k < n && made[k] != callee) k++;
      if (k == n && callee->body.n && !callee->body.v[0].origin) made[n] = callee, part[n++] = of[in->origin];
    }
  return (measured_times){.nparts = x->n, .part = of, .nfuncs = n, .func = made, .func_part = part};
}

static const struct model_parts *parts_of(planner *pl) {
  if (pl->parts) return pl->parts;
  const prog *p = pl->src;
  const func_info *m = func_get(p, p->main);
  struct model_parts *x = NEW(pl->a, struct model_parts);
  u32 first = 0, last = m->body.n, part;
  x->norigins = p->norigins, x->of = ZNEWN(pl->a, u8, p->norigins + 1);
  while (first < m->body.n && m->body.v[first].op != OP_call) first++;
  while (last > first && m->body.v[last - 1].op != OP_call) last--;
  if (first == last) {
    diag(p->c, E_PROFILE, m->where, "the model has no blocks whose times could have been measured");
    return NULL;
  }
  if (first) mark(p, x, p->main, 0, first, part = part_named(x, "first")), x->count[part] = 1;
  part = 0;
  for (u32 i = first; i < last; i++) {
    if (m->body.v[i].op == OP_call) {
      part = part_named(x, sym_str(p->c, func_get(p, m->body.v[i].callee)->name));
      x->count[part]++;
    }
    mark(p, x, p->main, i, i + 1, part);
  }
  if (last < m->body.n)
    mark(p, x, p->main, last, m->body.n, part = part_named(x, "last")), x->count[part] = 1;
  x->of[0] = 0; // instructions without an origin
  return pl->parts = x;
}

// ---- what was measured ----------------------------------------------------------------------------------
static bool no_row(const measuring *x, const char *layer, sym device, u32 tensor) {
  ctx *c = x->pl->src->c;
  const machine *m = cost_model_machine(x->k);
  strbuf has = {.a = x->a};
  bool of_layer = false;
  u32 before = 0;
  for (u32 i = 0; i < x->times->n; i++) {
    const profile_row *r = &x->times->row[i];
    if (r->device.i != device.i || strcmp(r->layer, layer)) continue;
    of_layer = true;
    if (r->tensor != before) sb_fmt(&has, "%s%u", before ? ", " : "", r->tensor);
    before = r->tensor;
  }
  const char *kind = sym_str(m->c, device);
  if (of_layer) {
    diag(c, E_PROFILE, (loc){0}, "%s has no times of layer '%s' on %u %s together", x->times->file, layer,
         tensor, kind);
    diag_hint(c, "column tensor has %s", sb_str(&has));
    return false;
  }
  for (u32 i = 1; i <= x->parts->n; i++) sb_fmt(&has, "%s%s", i > 1 ? ", " : "", x->parts->name[i]);
  diag(c, E_PROFILE, (loc){0}, "%s has no times of layer '%s' on %s", x->times->file, layer, kind);
  diag_hint(c, "the layers of this model are %s", sb_str(&has));
  return false;
}

// Further than by BEYOND outside of what was measured nothing is known.
enum { BEYOND = 2 };
static bool too_far(const measuring *x, const profile_row *row, u32 n, double samples) {
  const i64 least = row[0].samples, most = row[n - 1].samples;
  if (samples * BEYOND >= (double)least && samples <= (double)most * BEYOND) return false;
  ctx *c = x->pl->src->c;
  diag(c, E_PROFILE, (loc){0}, "%s has no times of layer '%s' near %.4g samples on %u %s", x->times->file,
       row->layer, samples, row->tensor, sym_str(cost_model_machine(x->k)->c, row->device));
  if (least < most)
    diag_hint(c, "column samples has %lld to %lld for it", (long long)least, (long long)most);
  else
    diag_hint(c, "column samples has %lld for it", (long long)least);
  return true;
}

// The time at so many samples: linear between those that were measured, and beyond them along the nearest
// two, but never below the first in proportion. Below 0: not said. Where one number of samples was measured,
// time_of asks the cost model in which proportion others take longer.
static double between(const profile_row *row, u32 n, double samples, profile_time of) {
  const double first = row[0].ps[of], at = (double)row[0].samples;
  if (first < 0 || of == PROFILE_UPDATE) return first;
  if (n == 1) return first;
  u32 i = 0;
  while (i + 2 < n && samples > (double)row[i + 1].samples) i++;
  const double s0 = (double)row[i].samples, s1 = (double)row[i + 1].samples, t0 = row[i].ps[of],
               t1 = row[i + 1].ps[of];
  const double t = t0 + (t1 - t0) * (samples - s0) / (s1 - s0);
  return samples < at ? MAX(t, first * samples / at) : MAX(t, 0);
}

// ---- what the cost model says ---------------------------------------------------------------------------
// The tensor group, if all are of the kind; else devices of the kind first. The machine has as many, for the
// plan's mesh is at least as large.
static const u32 *devices_for(const measuring *x, const loaded *l, u32 n) {
  const machine *m = cost_model_machine(x->k);
  bool same = n == l->n;
  for (u32 i = 0; i < n && same; i++) same = m->dev[l->group[i]].kind == l->kind;
  if (same) return l->group;
  u32 *out = NEWN(x->a, u32, n + 1), k = 0;
  for (u32 other = 0; other < 2; other++)
    for (u32 r = 0; r < m->nranks && k < n; r++)
      if ((m->dev[r].kind != l->kind) == other) out[k++] = r;
  assert(k == n);
  return out;
}

// The plan's tensor splits of one mesh over devices of one kind, in one stage, with so many microbatches.
static const plan *alone(const measuring *x, const loaded *l, u32 micro) {
  const plan *pn = x->pn;
  plan *of = plan_single(x->a, x->pl->src, pn->train, &pn->optim);
  const plan_mesh *m = &pn->meshes[l->mesh];
  u64 mine = 0;
  of->axes = NEWN(x->a, plan_axis, pn->naxes + 1), of->naxes = pn->naxes;
  memcpy(of->axes, pn->axes, sizeof *of->axes * pn->naxes);
  for (u32 i = 0; i < m->naxes; i++) mine |= 1ull << m->axis[i] & x->tensor;
  u32 n = 1;
  for (u32 i = 0; i < pn->naxes; i++)
    if (mine >> (i + 1) & 1)
      n *= pn->axes[i].size;
    else
      of->axes[i].size = 1, of->axes[i].shares = NULL;
  if (micro > 1 && !pn->time)
    of->axes[of->naxes++] =
        (plan_axis){.name = sym_of(x->pl->src->c, "microbatch of a layer"), .temporal = true};
  of->time = micro == 1 ? 0 : pn->time ? pn->time : (u8)of->naxes;
  if (of->time) of->axes[of->time - 1].size = micro;
  of->meshes[0] = *m, of->meshes[0].first = 0, of->meshes[0].nranks = n;
  of->meshes[0].ranks = devices_for(x, l, n);
  if (of->time && !policy_batch(x->pl, x->a, of, of->time)) return NULL;
  plan_trans *all = NEWN(x->a, plan_trans, of->ntrans + pn->ntrans + 1);
  if (of->ntrans) memcpy(all, of->trans, sizeof *all * of->ntrans);
  of->trans = all;
  for (u32 i = 0; i < pn->ntrans; i++)
    if (mine >> pn->trans[i].axis & 1) of->trans[of->ntrans++] = pn->trans[i];
  if (pn->batchnorm_groups) of->batchnorm_groups = micro;
  of->wide_gradients = pn->wide_gradients, of->materialise = pn->materialise;
  return of;
}

typedef struct {
  const prog *p;
  cost_model *k;
  i64 *ps; // room
  double *sum;
  bool accumulates; // the plan adds up gradients of microbatches, as what is asked does
} adding;

// Does it add the gradient of one microbatch to those of the ones before?
static bool accumulates(const func_info *f, const instr *i) {
  return (i->op == OP_add || i->op == OP_accumulate) && i->flags & INSTR_BACKWARD && opd_donated(f, i, 0);
}

static bool add(const adding *x, const func_info *f, group g, u32 from, u32 end) {
  for (u32 i = from; i < end; i++) {
    const instr *in = &f->body.v[i];
    const group on = group_bind(in->g, g);
    if (in->op == OP_call) {
      const func_info *callee = func_get(x->p, in->callee);
      if (!add(x, callee, on, 0, callee->body.n)) return false;
      continue;
    }
    const u32 of = cost_measured(x->p, f, in);
    if (!of || in->op == OP_send || in->op == OP_copy || (!x->accumulates && accumulates(f, in))) continue;
    const u32 n = cost_instr(x->k, x->p, f, in, on, x->ps);
    double sum = 0;
    if (!n) return false;
    for (u32 m = 0; m < n; m++) sum += (double)x->ps[m];
    x->sum[of - 1] += sum / n;
  }
  return true;
}

// ps by (part, what it is of), for a microbatch; the update once. NULL and a diagnostic: there is no such
// plan.
static double *asked(const measuring *x, const loaded *l, u32 micro) {
  const machine *m = cost_model_machine(x->k);
  machine plain = *m;
  plain.profile = NULL;
  const plan *of = alone(x, l, micro);
  plan_probed about;
  if (!of) return NULL;
  cost_model *k = cost_model_new(x->pl->src->c, x->a, &plain, cost_model_opts(x->k));
  prog *p = plan_probe(x->pl, of, k, x->a, true, &about);
  if (!p) return NULL;
  const u32 n = x->parts->n + 1;
  double *one = NEWN(x->a, double, n *MEASURED_OF);
  for (u32 i = 0; i < n * MEASURED_OF; i++) one[i] = 1;
  measured_times same = parts_in(x->a, x->parts, p);
  same.row = ZNEWN(x->a, u16, m->nranks), same.axes = ~0ull, same.factor = one;
  const adding s = {p, k, NEWN(x->a, i64, m->nranks + 1), ZNEWN(x->a, double, n *MEASURED_OF),
                    x->pn->time != 0};
  const func_info *main = func_get(p, p->main);
  const sim_pipeline *pl = &about.pipeline;
  p->measured = &same;
  bool ok = true;
  for (u32 q = 0; q < pl->npieces && ok; q++) {
    const sim_piece *piece = &pl->piece[q];
    if (piece->kind == PIECE_AFTER ||
        (piece->kind == PIECE_TASK && piece->mb == (sim_micro(pl, piece->stage) > 1)))
      ok = add(&s, main, (group){0}, piece->first, piece->end);
  }
  p->measured = NULL;
  prog_free(p);
  return ok ? s.sum : NULL;
}

static u64 splits_hash(const measuring *x, u32 of_mesh) {
  const plan *pn = x->pn;
  const plan_mesh *m = &pn->meshes[of_mesh];
  u64 h = hash_u64(pn->wide_gradients,
                   (u64)pn->materialise << 2 | (u64)(pn->batchnorm_groups != 0) << 1 | (pn->time != 0)),
      mine = 0;
  for (u32 i = 0; i < m->naxes; i++)
    if (x->tensor >> m->axis[i] & 1)
      mine |= 1ull << m->axis[i], h = plan_axis_hash(h, &pn->axes[m->axis[i] - 1]);
  for (u32 i = 0; i < pn->ntrans; i++) {
    const plan_trans *t = &pn->trans[i];
    if (!(mine >> t->axis & 1)) continue;
    h = hash_u64((u64)t->fn.i << 32 | t->instr, h);
    h = hash_u64((u64)t->index << 24 | (u64)t->dim << 16 | (u64)t->axis << 8 | (u64)t->result << 2 |
                     (u64)t->weak << 1 | t->uneven,
                 hash_u64((u64)t->stride, h));
  }
  return h;
}

// Kept.
static const double *modelled(const measuring *x, const loaded *l, u32 micro) {
  const planner_key key = {KEPT_MODELLED,
                           strategy_default(),
                           {(i64)hash_u64(splits_hash(x, l->mesh), l->lies), (i64)l->kind << 32 | micro},
                           planner_training(x->pn->train, &x->pn->optim, x->pn->keep_gradients),
                           cost_model_serial(x->k)};
  const double *known = planner_kept_times(x->pl, &key);
  if (known) return known;
  const double *sum = asked(x, l, micro);
  if (!sum) return NULL;
  planner_keep_times(x->pl, &key, sum, (x->parts->n + 1) * MEASURED_OF);
  return planner_kept_times(x->pl, &key);
}

// At any number of samples: linear between numbers that divide the batch.
static bool modelled_at(const measuring *x, const loaded *l, double samples, double *out) {
  const u32 n = (x->parts->n + 1) * MEASURED_OF;
  const i64 less = divisor_below(x->batch, (i64)samples),
            more = divisor_above(x->batch, MAX(less, (i64)samples + ((double)(i64)samples < samples)));
  const double *a = modelled(x, l, (u32)(x->batch / less)),
               *b = a && more > less ? modelled(x, l, (u32)(x->batch / more)) : a;
  if (!a || !b) return false;
  const double at = more > less ? (samples - (double)less) / (double)(more - less) : 0;
  for (u32 i = 0; i < n; i++) out[i] = a[i] + (b[i] - a[i]) * at;
  return true;
}

// ---- factors --------------------------------------------------------------------------------------------
static double over(double measured, double modelled) {
  return measured >= 0 && modelled > 0 ? measured / modelled : 1;
}

// Of one layer; below 0: not said. model: what the cost model says of all layers at `samples`.
static bool time_of(const measuring *x, const loaded *l, u32 part, u32 tensor, double samples,
                    const double *model, double out[PROFILE_TIMES]) {
  const machine_profile *p = x->times;
  const char *layer = x->parts->name[part];
  const sym device = cost_model_machine(x->k)->kind[l->kind].name;
  u32 i = 0, n = 0;
  while (i < p->n &&
         (p->row[i].device.i != device.i || strcmp(p->row[i].layer, layer) || p->row[i].tensor != tensor))
    i++;
  while (i + n < p->n && p->row[i + n].device.i == device.i && !strcmp(p->row[i + n].layer, layer) &&
         p->row[i + n].tensor == tensor)
    n++;
  if (!n) return no_row(x, layer, device, tensor);
  const profile_row *row = p->row + i;
  const double at = (double)row->samples;
  if (n > 1 && too_far(x, row, n, samples)) return false;
  for (u32 k = 0; k < PROFILE_TIMES; k++) out[k] = between(row, n, samples, (profile_time)k);
  if (n > 1 || samples == at) return true;
  double *there = NEWN(x->a, double, (x->parts->n + 1) * MEASURED_OF);
  if (!modelled_at(x, l, at, there)) return false;
  for (u32 k = 0; k < PROFILE_UPDATE; k++) {
    const double here = model[part * MEASURED_OF + k], then = there[part * MEASURED_OF + k];
    if (row->ps[k] >= 0 && then > 0) out[k] = row->ps[k] * here / then;
  }
  return true;
}

static bool factors(const measuring *x, const loaded *l, double *out) {
  const plan_mesh *on = &x->pn->meshes[l->mesh];
  const u32 n = x->parts->n;
  double *model = NEWN(x->a, double, (n + 1) * MEASURED_OF), update = -1, updates = 0;
  u32 tensor = 1;
  for (u32 i = 0; i < on->naxes; i++)
    if (x->tensor >> on->axis[i] & 1) tensor *= x->pn->axes[on->axis[i] - 1].size;
  if (!modelled_at(x, l, l->samples, model)) return false;
  for (u32 i = 0; i <= n; i++) {
    double t[PROFILE_TIMES] = {-1, -1, -1};
    if (i && !time_of(x, l, i, tensor, l->samples, model, t)) return false;
    for (u32 d = 0; d < 2; d++)
      out[i * MEASURED_OF + d] = over(t[d] * x->parts->count[i], model[i * MEASURED_OF + d]);
    out[i * MEASURED_OF + PROFILE_UPDATE] = 1;
    if (t[PROFILE_UPDATE] >= 0) update = MAX(update, 0) + t[PROFILE_UPDATE] * x->parts->count[i];
    updates += model[i * MEASURED_OF + PROFILE_UPDATE];
  }
  out[PROFILE_UPDATE] = over(update, updates);
  return true;
}

// Data axes deal out inputs, tensor axes split instructions.
static void find_axes(measuring *x) {
  const plan *pn = x->pn;
  for (u32 i = 0; i < pn->ntrans; i++)
    *(pn->trans[i].instr ? &x->tensor : &x->data) |= 1ull << pn->trans[i].axis;
  x->tensor &= ~x->data;
}

// The ranks of the mesh that differ from the one at `index` along tensor axes only, row-major over these.
static void find_group(const measuring *x, u32 index, loaded *l) {
  const plan_mesh *on = &x->pn->meshes[l->mesh];
  const machine *m = cost_model_machine(x->k);
  u32 stride[MESH_AXES], n = 1, all = 1;
  for (u32 i = on->naxes; i-- > 0;) {
    const u32 size = x->pn->axes[on->axis[i] - 1].size;
    stride[i] = all, all *= size;
    if (!(x->tensor >> on->axis[i] & 1)) continue;
    index -= index / stride[i] % size * stride[i], n *= size;
  }
  u32 *v = NEWN(x->a, u32, n), have = 1;
  v[0] = index;
  for (u32 i = 0; i < on->naxes; i++) {
    const u32 size = x->pn->axes[on->axis[i] - 1].size;
    if (!(x->tensor >> on->axis[i] & 1)) continue;
    for (u32 k = have; k-- > 0;)
      for (u32 d = size; d-- > 0;) v[k * size + d] = v[k] + d * stride[i];
    have *= size;
  }
  for (u32 k = 0; k < n; k++) v[k] = on->ranks ? on->ranks[v[k]] : on->first + v[k];
  l->group = v, l->n = n;
  for (u32 k = 0; k < n && n > 1 && v[k] < m->nranks; k++) {
    const machine_dev *d = &m->dev[v[k]];
    const node_kind *nk = &m->node_kind[m->node[d->node]];
    l->lies = hash_u64((u64)m->node[d->node] << 32 | (d->node - m->dev[v[0]].node), l->lies + 1);
    if (nk->inside.shape != LINK_SWITCH) l->lies = hash_u64(d->index, l->lies); // who is whose neighbour
  }
}

static loaded load_of(const measuring *x, u32 of_mesh, u32 index, u32 rank) {
  const plan *pn = x->pn;
  const plan_mesh *m = &pn->meshes[of_mesh];
  loaded l = {.mesh = of_mesh, .kind = cost_model_machine(x->k)->dev[rank].kind, .samples = (double)x->batch};
  find_group(x, index, &l);
  for (u32 i = m->naxes; i-- > 0;) {
    const plan_axis *axis = &pn->axes[m->axis[i] - 1];
    const u32 at = index % axis->size;
    index /= axis->size;
    if (x->data >> m->axis[i] & 1)
      l.samples *= (double)(axis->shares ? axis->shares[at] : 1) / plan_parts(axis);
  }
  if (pn->time) l.samples /= pn->axes[pn->time - 1].size;
  return l;
}

// Every line of the file is of a layer of the model: else it would be left out without a word.
static bool all_known(const measuring *x) {
  ctx *c = x->pl->src->c;
  strbuf has = {.a = x->a};
  for (u32 i = 1; i <= x->parts->n; i++) sb_fmt(&has, "%s%s", i > 1 ? ", " : "", x->parts->name[i]);
  for (u32 i = 0; i < x->times->n; i++) {
    bool known = false;
    for (u32 k = 1; k <= x->parts->n; k++) known |= !strcmp(x->parts->name[k], x->times->row[i].layer);
    if (known) continue;
    const profile_row *row = &x->times->row[i];
    near_name near = near_to(row->layer, strlen(row->layer));
    for (u32 k = 1; k <= x->parts->n; k++) near_try(&near, x->parts->name[k]);
    // A search repeats the message alone.
    diag(c, E_PROFILE, (loc){0}, "%s:%u has times of '%s', which the model has not%s%s%s", x->times->file,
         row->line, row->layer, near.name ? "; did you mean '" : "", near.name ? near.name : "",
         near.name ? "'?" : "");
    diag_hint(c, "the layers of this model are %s", sb_str(&has));
    return false;
  }
  return true;
}

// What was measured is a whole layer, with the attention that the plan has. Splits of parts of one (plan.coshard) are of the
// rewritten layer only.
static planner *whole_layers(planner *pl, const plan *pn) {
  bool splits = false;
  for (u32 i = 0; i < pn->ntrans; i++) splits |= pn->trans[i].instr != 0;
  plan whole = *pn;
  if (!splits) whole.coshard = 0;
  return whole.coshard > 1 || whole.fused_attention ? planner_formed(pl, &whole) : pl;
}

bool plan_measured(planner *pl, const plan *pn, cost_model *k, prog *p) {
  const machine *m = k ? cost_model_machine(k) : NULL;
  if (!m || !m->profile) return true;
  if (plan_lies_wide(pn)) { // another number of ranks shares what lies on all places than shares a layer
    diag(pl->src->c, E_PROFILE, (loc){0},
         "%s has times of layers on one place; this schedule has some on all places", m->profile->file);
    diag_hint(pl->src->c, "a schedule of stages on one place each, such as schedule=1f1b");
    return false;
  }
  if (!(pl = whole_layers(pl, pn))) return false;
  measuring x = {.pl = pl,
                 .pn = pn,
                 .k = k,
                 .times = m->profile,
                 .parts = parts_of(pl),
                 .batch = MAX(policy_batch_extent(pl), 1)};
  if (!x.parts) return false;
  x.a = arena_new();
  if (!all_known(&x)) {
    arena_free(x.a);
    return false;
  }
  find_axes(&x);
  const u32 n = (x.parts->n + 1) * MEASURED_OF;
  measured_times *out = NEW(p->a, measured_times);
  *out = parts_in(p->a, x.parts, p);
  u16 *row = ZNEWN(p->a, u16, m->nranks);
  VEC(loaded) seen = {0};
  VEC(double) factor = {0};
  bool ok = true;
  for (u32 q = 0; q < pn->nmeshes && ok; q++) {
    const plan_mesh *on = &pn->meshes[q];
    u32 size = 1;
    for (u32 i = 0; i < on->naxes; i++) size *= pn->axes[on->axis[i] - 1].size;
    for (u32 i = 0; i < size && ok; i++) {
      const u32 rank = on->ranks ? on->ranks[i] : on->first + i;
      if (rank >= m->nranks) continue; // told by who prices it
      const loaded l = load_of(&x, q, i, rank);
      u32 r = 0;
      while (r < seen.n && (seen.v[r].mesh != l.mesh || seen.v[r].kind != l.kind ||
                            seen.v[r].samples != l.samples || seen.v[r].lies != l.lies))
        r++;
      if (r == seen.n) {
        *vec_push(x.a, &seen) = l;
        double *of = vec_push_n(x.a, &factor, n);
        assert(of);
        ok = factors(&x, &l, of);
      }
      row[rank] = (u16)r;
    }
  }
  for (u32 i = 0; i < pn->naxes; i++)
    if (x.tensor >> (i + 1) & 1) out->axes |= 1ull << axis_find(p->sp, pn->axes[i].name);
  out->row = row;
  out->factor = arena_dup(p->a, factor.v, sizeof *factor.v * factor.n);
  p->measured = ok ? out : NULL;
  arena_free(x.a);
  return ok;
}
