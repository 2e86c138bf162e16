// given.c - what a plan gives to every device, of the work, the batch and the layers, and what the devices of each kind
// make of it in a simulation. For reports: nothing is decided by it.
//
// Idea: a rank has of every stretch of main on its place what the place's axes leave of it: its share of an axis that
// the plan splits something over, all of one that it does not.
#include "plan/internal.h"

double *plan_products(planner *pl, arena *a) {
  prog *p = pl->src;
  const func_info *m = func_get(p, p->main);
  double *of = ZNEWN(a, double, pl->nfuncs + 1), *out = ZNEWN(a, double, m->body.n + 1);
  bool *known = ZNEWN(a, bool, pl->nfuncs + 1);
  VEC(u32) todo = {0}; // functions, each after what it calls
  *vec_push(a, &todo) = p->main.i;
  while (todo.n) {
    const u32 f = todo.v[todo.n - 1];
    const func_info *fi = func_get(p, (func){f});
    const u32 before = todo.n;
    double sum = 0;
    for (u32 i = 0; i < fi->body.n; i++) {
      const instr *in = &fi->body.v[i];
      double here = 0;
      if (in->op == OP_call && !known[in->callee.i])
        *vec_push(a, &todo) = in->callee.i;
      else if (in->op == OP_call)
        here = of[in->callee.i];
      else if (op_row_of(in->op)->flags & OPF_GEMM)
        here = op_flops(in->op, attrs_get(p, in->at), plan_law(pl, (func){f}, i));
      if (f == p->main.i) out[i] = here;
      sum += here;
    }
    if (todo.n > before) continue;
    of[f] = sum, known[f] = true, todo.n--;
  }
  return out;
}

// ---- by rank --------------------------------------------------------------------------------------------
typedef enum {
  AXIS_IDLE,
  AXIS_WORK,
  AXIS_BATCH
} axis_use; // what the plan splits over it: nothing, work, samples

static void find_uses(const plan *pn, const prog *src, axis_use *use) {
  for (u32 i = 0; i < pn->ntrans; i++) {
    const plan_trans *t = &pn->trans[i];
    const bool batch = !t->instr && t->fn.i == src->main.i;
    if (batch || use[t->axis] == AXIS_IDLE) use[t->axis] = batch ? AXIS_BATCH : AXIS_WORK;
  }
}

static u32 rank_of(const plan_mesh *m, u32 member) { return m->ranks ? m->ranks[member] : m->first + member; }

static u32 members_of_mesh(const plan *pn, const plan_mesh *m) {
  u32 n = 1;
  for (u32 k = 0; k < m->naxes; k++) n *= pn->axes[m->axis[k] - 1].size;
  return n;
}

// Of a segment with so much work and so many layers, what member `at` of its mesh has; nothing if the segment is on other
// members.
static void give(const plan *pn, const plan_submesh *on, u32 at, const axis_use *use, i64 batch, double work,
                 u32 layers, rank_given *to) {
  const plan_mesh *m = &pn->meshes[on->mesh];
  i64 samples = batch;
  u32 left = at;
  for (u32 k = m->naxes; k-- > 0;) {
    const plan_axis *x = &pn->axes[m->axis[k] - 1];
    const u32 here = left % x->size, share = x->shares ? x->shares[here] : 1, parts = plan_parts(x);
    bool fixed = false;
    left /= x->size;
    for (u32 j = 0; j < on->nfix; j++) {
      if (on->fix[j].axis != m->axis[k]) continue;
      fixed = true;
      if (on->fix[j].at != here) return;
    }
    if (fixed || use[m->axis[k]] == AXIS_IDLE) continue;
    work *= (double)share / parts;
    if (use[m->axis[k]] == AXIS_BATCH) samples = samples * share / parts;
  }
  if (!to->any) to->samples[0] = to->samples[1] = samples;
  to->any = true;
  to->samples[0] = MIN(to->samples[0], samples), to->samples[1] = MAX(to->samples[1], samples);
  to->work += work, to->layers += layers;
}

plan_given plan_given_of(planner *pl, const plan *pn, i64 batch, arena *a) {
  const prog *src = pl->src;
  const func_info *m = func_get(src, src->main);
  const double *flops = plan_products(pl, a);
  axis_use *use = ZNEWN(a, axis_use, pn->naxes + 1);
  double all = 0;
  u32 n = 0, nlayers = 0;
  find_uses(pn, src, use);
  for (u32 k = 0; k < pn->nmeshes; k++)
    for (u32 i = members_of_mesh(pn, &pn->meshes[k]); i-- > 0;) n = MAX(n, rank_of(&pn->meshes[k], i) + 1);
  rank_given *v = ZNEWN(a, rank_given, n + 1);
  for (u32 k = 0; k < pn->nsegments; k++) {
    const plan_segment *s = &pn->segments[k];
    double work = 0;
    u32 layers = 0;
    for (u32 i = s->from - 1; i < s->to; i++) work += flops[i], layers += m->body.v[i].op == OP_call;
    nlayers += layers;
    for (u32 r = 0; r < MAX(pn->nreplicas, 1); r++) {
      const plan_submesh *on = r ? &pn->replicas[r].on[k] : &s->on;
      const plan_mesh *m_of = &pn->meshes[on->mesh];
      const u32 K = pn->nreplicas && pn->time ? pn->axes[pn->time - 1].size : 1,
                own = pn->nreplicas ? pn->replicas[r].micro : 1;
      for (u32 i = members_of_mesh(pn, m_of); i-- > 0;)
        give(pn, on, i, use, batch * own / K, work * own / K, layers, &v[rank_of(m_of, i)]);
    }
  }
  plan_given out = {.nranks = n, .rank = v};
  for (u32 r = 0; r < n; r++) all += v[r].work, out.cut |= v[r].any && v[r].layers < nlayers;
  for (u32 r = 0; r < n && all > 0; r++) v[r].work /= all;
  return out;
}

// ---- by kind --------------------------------------------------------------------------------------------
static void say_range(strbuf *b, i64 least, i64 most, const char *what) {
  sb_fmt(b, "%s%lld", b->n ? ", " : "", (long long)least);
  if (most > least) sb_fmt(b, " to %lld", (long long)most);
  sb_fmt(b, " %s%s", what, most == 1 ? "" : "s");
}

// "5 to 6 samples, 7 layers": what the ranks of one kind get, of which there are so many.
static const char *say_given(arena *a, const machine *m, u32 kind, u32 ranks, const plan_given *of) {
  rank_given x = {0};
  u32 most = 0, work = 0;
  for (u32 r = 0; r < of->nranks && r < m->nranks; r++) {
    const rank_given *y = &of->rank[r];
    if (m->dev[r].kind != kind || !y->any) continue;
    work++;
    if (!x.any) x = *y, most = x.layers;
    x.samples[0] = MIN(x.samples[0], y->samples[0]), x.samples[1] = MAX(x.samples[1], y->samples[1]);
    x.layers = MIN(x.layers, y->layers), most = MAX(most, y->layers);
  }
  strbuf b = {.a = a};
  if (!x.any) return "nothing";
  if (x.samples[1]) say_range(&b, x.samples[0], x.samples[1], "sample");
  if (of->cut) say_range(&b, x.layers, most, "layer");
  if (work < ranks) sb_fmt(&b, "; %u nothing", ranks - work);
  return sb_str(&b);
}

static plan_kind kind_of(arena *a, const plan_kinds_opts *o, const sim_result *r, u32 kind, double all) {
  sim_sum busy = 0, comm = 0;
  bool all_run = true;
  plan_kind x = {.name = sym_str(o->m->c, o->m->kind[kind].name),
                 .apart = machine_apart(o->m, kind),
                 .work = o->given ? 0 : -1,
                 .usable_bytes = o->memory_bytes > 0 ? o->memory_bytes : o->m->kind[kind].usable_bytes};
  for (u32 k = o->first; k < o->first + o->ranks; k++) {
    const bool ran = k < r->nranks && r->used[k];
    if (o->m->dev[k].kind != kind || (!ran && !o->unused)) continue;
    x.ranks++;
    if (o->given && k < o->given->nranks) x.work += o->given->rank[k].work;
    all_run &= ran;
    if (!ran) continue;
    const u32 at = r->class_of_rank[k] * r->nstreams;
    busy += r->busy_ps[at] - r->comm_ps[at], comm += r->comm_ps[at];
    x.peak_bytes = MAX(x.peak_bytes, r->cls[r->class_of_rank[k]].peak_bytes);
  }
  if (!x.ranks) return x;
  x.computes = sim_mean_share(busy, r->makespan_ps, x.ranks);
  x.communicates = sim_mean_share(comm, r->makespan_ps, x.ranks);
  if (o->given) x.gets = say_given(a, o->m, kind, x.ranks, o->given);
  if (o->speed && o->speed[kind] > 0 && all_run && !x.apart) x.one_more = all / (all + o->speed[kind]);
  return x;
}

double plan_speed_of(const plan_kinds_opts *o, const sim_result *r) {
  double all = 0;
  for (u32 k = o->first; o->speed && k < o->first + o->ranks; k++)
    if (o->unused || (k < r->nranks && r->used[k])) all += o->speed[o->m->dev[k].kind];
  return all;
}

u32 plan_kinds_of(arena *a, const plan_kinds_opts *o, const sim_result *r, const plan_kind **out) {
  plan_kind *v = NEWN(a, plan_kind, o->m->nkinds);
  u32 n = 0;
  const double all = plan_speed_of(o, r);
  for (u32 k = 0; k < o->m->nkinds; k++) {
    const plan_kind x = kind_of(a, o, r, k, all);
    if (x.ranks) v[n++] = x;
  }
  return *out = v, n;
}
