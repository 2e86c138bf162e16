// compare.c - verification: the distributed program's numbers against the single-device program's. Not the
// proof that nothing is missing without numbers (validate.c).
//
// Idea: both programs are made by the same mechanism from the same source, one with the trivial plan, and run
// on the same random inputs in f64. There what is left of a difference is the order of additions, some 1e-15
// of what was added up; a forgotten or misdirected communication is off by as much as the value itself. So
// 1e-9 tells the two apart.
//
// Elements smaller than what was added up to get them are nothing but rounding: the gradient of an
// attention's key bias is zero in exact arithmetic. So a difference counts relative to the larger of both
// elements, but at least to FLOOR_OWN of the tensor's own root mean square and FLOOR_ALL of that of all
// results of its kind.
#include "plan/internal.h"
#include <math.h>
#include <stdlib.h>

static const double FLOOR_OWN = 1e-3, FLOOR_ALL = 1e-5;
static const double EXECUTIONS = 5e7; // some minutes
static const double ALIVE = 0.7;      // so much of all values is alive at the peak of a step
enum { OTHER_INPUTS = 2 };

static const char *result_name(const prog *p, arena *a, u32 k) {
  const func_info *f = func_get(p, p->main);
  sym s = f->values.v[f->rets.v[k]].name;
  return s.i ? sym_str(p->c, s) : arena_printf(a, "result %u", k);
}

bool plan_evaluate(const prog *src, const prog *p, u64 seed, arena *a, plan_numbers *out) {
  u32 np = func_get(p, p->main)->nparams, ns = func_get(src, src->main)->nparams,
      n = func_get(p, p->main)->rets.n;
  bool many = mesh_count(p->sp) && mesh_get(p->sp, (mesh){1})->nranks > 1;
  assert(np >= ns);
  arena *tmp = arena_new();
  eval_array *in = NEWN(tmp, eval_array, np + 1);
  *out = (plan_numbers){n, NEWN(a, const char *, n + 1), NEWN(a, eval_array, n + 1)};
  for (u32 k = 0; k < n; k++) out->name[k] = result_name(p, a, k);
  // Uses tell what an input must be like, and the source shows them plainest; states come from the program
  // itself.
  bool ok = eval_telling(p, seed, in, np, tmp) && eval_telling(src, seed, in, ns, tmp);
  if (ok) eval_masters(p, in);
  ok = ok && eval_run(p,
                      &(eval_opts){.as_f64 = true,
                                   .threads = cpu_count(),
                                   .title = many ? "running the plan" : "running the model"},
                      in, np, out->v, n, a);
  arena_free(tmp);
  return ok;
}

// ---- comparison ----------------------------------------------------------------------------------------
double plan_element(const eval_array *x, i64 k) {
  switch (x->s.t) {
  case DT_F64: return ((const double *)x->data)[k];
  case DT_I64: return (double)((const i64 *)x->data)[k];
  case DT_I32: return ((const int32_t *)x->data)[k];
  default: return ((const u8 *)x->data)[k]; // bool, u8: compared for equality
  }
}

static double sum_of_squares(const eval_array *x) {
  double sum = 0;
  for (i64 k = 0, n = shape_elems(&x->s); k < n; k++) {
    double e = plan_element(x, k);
    if (isfinite(e)) sum += e * e;
  }
  return sum;
}

static void compare_one(const eval_array *x, const eval_array *y, double least, verify_row *r) {
  r->elems = shape_elems(&y->s);
  for (i64 k = 0; k < r->elems; k++) {
    double a = plan_element(x, k), b = plan_element(y, k), d = fabs(a - b);
    if (a == b || (a != a && b != b)) continue;
    double rel = isfinite(d) ? d / fmax(fmax(fabs(a), fabs(b)), least) : INFINITY;
    if (d > r->max_abs || d != d) r->max_abs = d;
    if (rel > r->max_rel) r->max_rel = rel, r->at = k;
  }
}

result_kind plan_result_kind(const char *name) {
  static const char *const suffix[RESULT_KINDS] = {"",       ".grad",  ".m.new",      ".v.new",
                                                   ".r.new", ".c.new", ".master.new", ".new"};
  size_t n = strlen(name);
  for (u32 k = 1; k < RESULT_KINDS; k++) {
    size_t m = strlen(suffix[k]);
    if (n > m && !strcmp(name + n - m, suffix[k])) return (result_kind)k;
  }
  return RESULT_PLAIN;
}

const double *plan_scales(const plan_numbers *x, arena *a) {
  double *scale = NEWN(a, double, x->n + 1), sq[RESULT_KINDS] = {0};
  i64 count[RESULT_KINDS] = {0};
  for (u32 k = 0; k < x->n; k++) {
    result_kind kind = plan_result_kind(x->name[k]);
    scale[k] = sum_of_squares(&x->v[k]);
    sq[kind] += scale[k];
    count[kind] += shape_elems(&x->v[k].s);
  }
  for (u32 k = 0; k < x->n; k++) {
    result_kind kind = plan_result_kind(x->name[k]);
    double own = FLOOR_OWN * sqrt(scale[k] / (double)MAX(shape_elems(&x->v[k].s), 1)),
           all = FLOOR_ALL * sqrt(sq[kind] / (double)MAX(count[kind], 1));
    scale[k] = fmax(own, all);
  }
  return scale;
}

static int by_difference(const void *x, const void *y) {
  const verify_row *a = x, *b = y;
  return a->max_rel > b->max_rel ? -1 : a->max_rel < b->max_rel ? 1 : strcmp(a->name, b->name);
}

static void say_worst(ctx *c, const verify_report *r) {
  const verify_row *w = &r->row[0];
  if (r->passed) return;
  diag(c, E_DIFFERS, (loc){0},
       "%s differs by %.3g (relative %.3g) at element %lld of %lld; the tolerance is %.3g", w->name,
       w->max_abs, w->max_rel, (long long)w->at, (long long)w->elems, r->tolerance);
}

bool plan_compare(ctx *c, const plan_numbers *want, const plan_numbers *got, double tolerance, arena *a,
                  verify_report *r) {
  *r = (verify_report){.told = true,
                       .tolerance = tolerance > 0 ? tolerance : 1e-9,
                       .nrows = want->n,
                       .row = ZNEWN(a, verify_row, want->n + 1),
                       .shrunk = ""};
  for (u32 k = 0; k < want->n; k++) {
    if (k >= got->n || strcmp(want->name[k], got->name[k]) || !shape_same(&want->v[k].s, &got->v[k].s)) {
      diag(c, E_DIFFERS, (loc){0},
           "result %u of the distributed program is %s, of the single-device program %s", k,
           k < got->n ? got->name[k] : "missing", want->name[k]);
      return false;
    }
  }
  const double *scale = plan_scales(want, a);
  for (u32 k = 0; k < want->n; k++) {
    r->row[k].name = want->name[k], r->row[k].result = k;
    compare_one(&got->v[k], &want->v[k], scale[k], &r->row[k]);
  }
  qsort(r->row, r->nrows, sizeof *r->row, by_difference);
  r->worst = r->nrows ? r->row[0].max_rel : 0;
  r->passed = r->worst <= r->tolerance;
  say_worst(c, r);
  return true;
}

// ---- both programs -----------------------------------------------------------------------------------
static bool is_feasible(const prog *p) {
  double n = eval_executions(p);
  if (n <= EXECUTIONS) return true;
  diag(p->c, E_LIMIT, func_get(p, p->main)->where,
       "the plan runs %.3g instructions on all its ranks; %.3g are evaluated at most", n, EXECUTIONS);
  diag_hint(p->c,
            "use fewer layers, microbatches or ranks: a wrong plan is usually wrong on a small model too");
  return false;
}

// Laws of Heddle's own operators are tested; those from outside are what somebody has written. Each may be the wrong one,
// so all are named, at the first place of each.
static void doubt_own(const prog *src) {
  enum { NAMED = 8 };
  const op_row *told[NAMED];
  u32 n = 0;
  for (u32 f = 1; f < src->funcs.n; f++)
    for (u32 i = 0; i < src->funcs.v[f]->body.n && n < NAMED; i++) {
      const op_row *row = op_row_of((opcode)src->funcs.v[f]->body.v[i].op);
      u32 k = 0;
      while (k < n && told[k] != row) k++;
      if (!row->own || k < n) continue;
      told[n++] = row;
      const char *how = row->red == RED_NONE ? "" : ", and do parts combine by ";
      diag_note(src->c, src->funcs.v[f]->body.v[i].where,
                "%s is not of Heddle's table: is its kernel split by its law, %s%s%s?", row->name, row->law,
                how, row->red == RED_NONE ? "" : red_name(row->red));
    }
}

// Do the results depend on the inputs? Some do so on few inputs only: comparisons, say. What does not, and
// differs by no more than on other inputs, differs by rounding. from: diagnostics of the comparison.
static bool tell(const prog *src, const prog *ref, u64 seed, const plan_numbers *want, u32 from, arena *a,
                 verify_report *r) {
  const double *scale = plan_scales(want, a);
  const bool differs = !r->passed;
  for (u32 k = 1; k <= OTHER_INPUTS && (differs || !plan_all_told(r)); k++) {
    plan_numbers other;
    arena *tmp = arena_new();
    bool ok = plan_evaluate(src, ref, hash_u64(k, seed), tmp, &other);
    if (ok) plan_tell(want, scale, &other, r);
    arena_free(tmp);
    if (!ok) return false;
  }
  if (differs) {
    diag_truncate(src->c, from);
    plan_rounding(r);
    say_worst(src->c, r);
    if (!r->passed) doubt_own(src);
  }
  if (r->passed) plan_judge(src->c, func_get(src, src->main)->where, want, r);
  return true;
}

// What cannot be evaluated is told with the plan's place beside the model's.
static bool evaluate_plan(const prog *src, const plan *pn, const prog *dist, const verify_opts *o, arena *a,
                          plan_numbers *out) {
  const u32 before = diag_count(src->c);
  const bool ok = plan_evaluate(src, dist, o->seed, a, out);
  if (!ok) plan_point(src, pn, before);
  return ok;
}

// ---- the same staleness on one device --------------------------------------------------------------------
// The dimension that a trans splits, as the classes of its atoms, and which of them it splits where.
typedef struct {
  u32 n, id[16], at; // at: the atom that is split
  i64 stride;        // within it
} split_of;
static bool find_split(const plan *pn, u32 number, const prog *p, const classes *k, split_of *out);

// Where updates are between tasks, the plan computes something else than a step of the model: one device, with the plan's
// stages, microbatch after microbatch of the same samples, each stage reading the version that the schedule says.
static plan *single_stale(planner *pl, const plan *pn, arena *a) {
  plan *one = plan_single(a, pl->src, pn->train, &pn->optim);
  const u32 K = pn->axes[pn->time - 1].size, n = pn->nsegments;
  const plan_axis axes[2] = {one->axes[0], pn->axes[pn->time - 1]};
  one->naxes = 2, one->axes = arena_dup(a, axes, sizeof axes), one->time = 2;
  one->trans = NEWN(a, plan_trans, pn->ntrans + 1);
  for (u32 i = 0; i < pn->ntrans; i++) {
    if (pn->trans[i].axis != pn->time) continue;
    plan_trans t = pn->trans[i];
    split_of s;
    if (!t.stride && find_split(pn, i, pl->src, planner_classes(pl), &s) && s.stride) {
      t.stride = s.stride;
      for (u32 j = s.at + 1; j < s.n; j++) t.stride *= classes_get(planner_classes(pl), s.id[j])->extent;
    }
    t.axis = one->time;
    one->trans[one->ntrans++] = t;
  }
  one->segments = arena_dup(a, pn->segments, n * sizeof *pn->segments), one->nsegments = n;
  for (u32 k = 0; k < n; k++) one->segments[k].on = (plan_submesh){0};
  sched_task *t = NEWN(a, sched_task, 2 * (size_t)n * K);
  u32 nt = 0;
  for (u32 m = 0; m < K; m++) {
    for (u32 k = 0; k < n; k++) t[nt++] = (sched_task){.stage = (u16)k, .kind = TASK_F, .mb = m};
    for (u32 k = n; k-- > 0;) t[nt++] = (sched_task){.stage = (u16)k, .kind = TASK_B, .mb = m};
  }
  one->seqs[0] = (sched_seq){nt, t};
  one->made.row = pn->made.row, one->made.shape = pn->made.shape;
  return one;
}

plan *plan_reference(planner *pl, const plan *pn, arena *a) {
  plan *one = pn->time && plan_update_group(pn) ? single_stale(pl, pn, a)
                                                : plan_single(a, pl->src, pn->train, &pn->optim);
  one->batchnorm_groups = pn->batchnorm_groups; // of one device too
  one->keep_gradients = pn->train;
  return one;
}

// Each update of a weight counts one more than the one whose result it reads: what updates.c has written plays no part.
static void count_updates(prog *p) {
  const func_info *m = func_get(p, p->main);
  arena *a = arena_new();
  u32 *had = ZNEWN(a, u32, m->values.n + 1); // by value: updates that it has had
  for (u32 k = 0; k < m->body.n; k++) {
    instr *i = &m->body.v[k];
    const u32 before = instr_nopd(m, i) ? had[opd_of(m, i, 0)] : 0;
    const bool updates = i->op == OP_call && i->flags & INSTR_UPDATE;
    for (u32 r = 0; r < i->nres; r++) had[i->res + r] = updates ? before + 1 : i->nres == 1 ? before : 0;
    if (!updates || !before) continue;
    const attr number = attr_i(A_update, before + 1);
    i->at = attrs_of(p, &number, 1);
  }
  arena_free(a);
}

// from: of the program that the plan is held against: that of pl, or the same as the model writes it, without parts of heads and hidden units.
static bool compare_plans(planner *from, planner *pl, const plan *pn, cost_model *k, const verify_opts *o,
                          arena *a, verify_report *r) {
  if (plan_update_group(pn)) from = pl; // on one device its stages run, too
  plan keep = *pn, *one = plan_reference(from, pn, a);
  keep.keep_gradients = pn->train;
  prog *dist = plan_apply(pl, &keep, k);
  prog *ref = dist && is_feasible(dist) ? plan_apply(from, one, k) : NULL;
  plan_numbers want, got;
  if (ref && plan_update_group(pn)) count_updates(ref);
  const u32 before = diag_count(pl->src->c);
  arena *own = arena_new();
  bool ok = ref && plan_evaluate(pl->src, ref, o->seed, a, &want) &&
            evaluate_plan(pl->src, pn, dist, o, own, &got) &&
            plan_compare(pl->src->c, &want, &got, o->tolerance, a, r);
  arena_free(own);
  ok = ok && tell(pl->src, ref, o->seed, &want, before, a, r);
  r->stale = plan_update_group(pn) > 0;
  if (dist) prog_free(dist);
  if (ref) prog_free(ref);
  return ok;
}

// ---- the same plan on a smaller model ------------------------------------------------------------------
static i64 dim_of(const prog *p, const plan_trans *t, value *v) {
  const func_info *f = func_get(p, t->fn);
  const instr *in = t->instr ? &f->body.v[t->instr - 1] : NULL;
  *v = !in ? t->index + 1 : t->result ? in->res + t->index : opd_of(f, in, t->index);
  return val_type(p, f, *v)->s.dim[t->dim];
}

static bool find_split(const plan *pn, u32 number, const prog *p, const classes *k, split_of *out) {
  const plan_trans *t = &pn->trans[number];
  value v;
  if (!trans_splits(t->dim)) { // of any extent
    out->n = 0, out->stride = 0;
    return true;
  }
  i64 extent = dim_of(p, t, &v), inner = 1, ways = plan_parts(&pn->axes[t->axis - 1]), stride = t->stride;
  out->n = classes_dim(k, t->fn, v, t->dim, out->id, COUNT_OF(out->id));
  if (!stride) { // as major as those before it on this dimension leave
    stride = extent / ways;
    for (u32 i = 0; i < number; i++)
      if (pn->trans[i].fn.i == t->fn.i && pn->trans[i].instr == t->instr &&
          pn->trans[i].result == t->result && pn->trans[i].index == t->index && pn->trans[i].dim == t->dim)
        stride /= plan_parts(&pn->axes[pn->trans[i].axis - 1]);
  }
  for (out->at = out->n; out->at-- > 0;) {
    i64 e = classes_get(k, out->id[out->at])->extent;
    if (t->uneven && out->n == 1) { // of any extent
      out->stride = 0;
      return true;
    }
    if (stride < inner * e) {
      out->stride = stride / inner;
      return stride % inner == 0 && out->stride > 0 && e % (out->stride * ways) == 0;
    }
    inner *= e;
  }
  return false;
}

static i64 lcm(i64 x, i64 y) { return x / gcd_i64(x, y) * y; }

// What any extent should go on being divisible by: all axes, as far as possible; at least those of what lies
// sharded in storage, which take any dimension; or nothing.
static i64 common_divisor(const plan *pn, u32 stage) {
  i64 keep = stage == 0 ? MAX(pn->coshard, 1u) : 1;
  for (u32 i = 0; i < pn->naxes && stage == 0; i++) keep = lcm(keep, plan_parts(&pn->axes[i]));
  for (u32 w = 0; w < STORAGE_KINDS && stage < 2; w++) {
    i64 rest = 1;
    for (u32 i = 0; i < pn->nstorage[w]; i++) rest *= pn->axes[pn->storage[w][i] - 1].size;
    keep = lcm(keep, rest);
  }
  return keep;
}

// Ranks that stored elements are sharded over: what has enough for them shall go on having enough.
static i64 most_ranks(const plan *pn, u32 stage) {
  i64 most = 1;
  for (u32 w = 0; w < STORAGE_KINDS && stage < 2; w++)
    for (u32 i = 0; i < pn->nstorage[w]; i++) most = MAX(most, pn->axes[pn->storage[w][i] - 1].size);
  return most;
}

// Copies of the model's parameters at once: those that go in with their states, and what comes out of them, of the
// reference and once more; and what ranks have of each other's.
static double copies_of(const prog *src, const plan *pn, const prog *dist) {
  const func_info *f = func_get(src, src->main), *g = func_get(dist, dist->main);
  double elems = 1, states = 0, whole = 1, local = 1;
  for (u32 k = 0; k < f->nparams; k++) {
    const shape *s = &val_type(src, f, k + 1)->s;
    optim_state st;
    elems += (double)shape_elems(s);
    for (u32 i = 0; pn->train && f->params.v[k].r == ROLE_WEIGHT && optim_state_find(&pn->optim, s, i, &st);
         i++)
      states += (double)shape_elems(&st.s);
  }
  for (u32 k = 0; k < g->nparams; k++) {
    const type_info *t = val_type(dist, g, k + 1);
    const layout_info *l = layout_get(dist->sp, t->lay);
    double ways = 1;
    for (u32 i = 0; i < l->nsplit; i++) ways *= axis_size(dist->sp, l->split[i].axis);
    whole += (double)shape_elems(&t->s);
    local += (double)shape_elems(&t->s) / ways * group_get(dist->sp, t->g)->nranks;
  }
  const double in = 1 + states / elems, out = pn->train ? in + 1 : 0;
  return 2 * (in + out) + local / whole - 1;
}

static shrinking *shrink_under(planner *pl, const plan *pn, arena *a, const classes *k, u32 stage,
                               double copies) {
  class_cut *cuts = NEWN(a, class_cut, pn->ntrans + 1);
  split_of *s = NEWN(a, split_of, pn->ntrans + 1);
  bool *found = NEWN(a, bool, pn->ntrans + 1);
  u32 n = 0;
  for (u32 i = 0; i < pn->ntrans; i++) {
    found[i] = find_split(pn, i, pl->src, k, &s[i]);
    if (found[i] && s[i].stride)
      cuts[n++] = (class_cut){s[i].id[s[i].at], s[i].stride, plan_parts(&pn->axes[pn->trans[i].axis - 1])};
  }
  shrinking *sh =
      shrink_new(a, pl->src, k, cuts, n, common_divisor(pn, stage), most_ranks(pn, stage), copies);
  for (u32 i = 0; i < pn->ntrans; i++)
    for (u32 j = 0; !found[i] && j < s[i].n; j++) shrink_pin(sh, s[i].id[j]);
  return sh;
}

// The plan with the strides that its splits have in the smaller model.
static plan smaller_plan(const planner *pl, const plan *pn, arena *a, const classes *k, const shrinking *sh) {
  plan q = *pn;
  q.trans = arena_dup(a, pn->trans, sizeof *pn->trans * pn->ntrans);
  for (u32 i = 0; i < pn->ntrans; i++) {
    split_of s;
    if (!pn->trans[i].stride || !find_split(pn, i, pl->src, k, &s)) continue;
    i64 stride = shrink_stride(sh, s.id[s.at], s.stride);
    for (u32 j = s.at + 1; j < s.n; j++) stride *= shrink_extent(sh, s.id[j]);
    q.trans[i].stride = stride;
  }
  return q;
}

static bool compare_smaller(planner *pl, const plan *pn, cost_model *k, const verify_opts *o,
                            const shrinking *sh, arena *a, verify_report *r) {
  prog *src = shrink_program(sh, pl->nfuncs); // the planner's own follow
  if (!src) return false;
  plan q = smaller_plan(pl, pn, a, planner_classes(pl), sh);
  q.batchnorm_groups = 0; // they are in the smaller program, and so may parts be
  if (pl->fused) q.fused_attention = false;
  if (pl->coshard) q.coshard = 0;
  planner *small = planner_new(src);
  bool ok = compare_plans(small, small, &q, k, o, a, r);
  strbuf b = {.a = a};
  shrink_print(sh, &b);
  if (ok) r->shrunk = sb_str(&b);
  planner_free(small);
  prog_free(src);
  return ok;
}

static bool verify_under(planner *from, planner *pl, const plan *pn, cost_model *k, const verify_opts *o,
                         arena *a, verify_report *r) {
  static const double elem_bytes = ALIVE * sizeof(double);
  double memory = o->memory_bytes > 0 ? (double)o->memory_bytes : 1e9, points = o->points > 0 ? o->points
                                                                                : o->memory_bytes > 0 ? 1e18
                                                                                                      : 2e9;
  double elems, most;
  const classes *c = planner_classes(pl);
  prog *dist = plan_apply(pl, pn, k);
  if (!dist) return false;
  const double copies = copies_of(pl->src, pn, dist) / ALIVE;
  prog_free(dist);
  for (u32 stage = 0; stage < 3; stage++) {
    shrinking *sh = shrink_under(pl, pn, a, c, stage, copies);
    shrink_cost(sh, &elems, &most);
    if (elems * elem_bytes <= memory && most <= points) return compare_plans(from, pl, pn, k, o, a, r);
    if (shrink_until(sh, memory / elem_bytes, points)) {
      if (o->memory_bytes > 0) shrink_grow(sh, memory / elem_bytes, points);
      return compare_smaller(pl, pn, k, o, sh, a, r);
    }
    shrink_cost(sh, &elems, &most);
  }
  const loc where = func_get(pl->src, pl->src->main)->where;
  if (most <= points)
    diag(pl->src->c, E_LIMIT, where,
         "even at the smallest extents that the plan allows, running the model takes %.1f MB; %.1f MB are "
         "allowed",
         elems * elem_bytes / 1e6, memory / 1e6);
  else
    diag(pl->src->c, E_LIMIT, where,
         "even at the smallest extents that the plan allows, running the model takes %.1f MB and %.2g steps "
         "of "
         "arithmetic; %.1f MB and %.2g are allowed",
         elems * elem_bytes / 1e6, most, memory / 1e6, points);
  if (elems * elem_bytes > memory && most <= points)
    diag_hint(pl->src->c, "--memory %.0fMB, or a model with fewer layers or a smaller batch",
              elems * elem_bytes / 1e6 + 1);
  else
    diag_hint(pl->src->c, "a model with fewer layers, a smaller batch, or shares with a smaller sum");
  return false;
}

// The program in parts, or with attention that keeps no scores, is made smaller as it is, without the model that it was made of.
// So of a smaller model that form is held against it by itself, on one device.
static bool verify_parts(planner *pl, const plan *pn, const verify_opts *o, arena *a, verify_report *r) {
  plan one = *plan_single(a, pl->src, pn->train, &pn->optim);
  verify_report parts;
  one.batchnorm_groups = pn->batchnorm_groups, one.coshard = pn->coshard, one.coshard_at = pn->coshard_at;
  one.fused_attention = pn->fused_attention, one.attention_at = pn->attention_at;
  if (!verify_under(pl, pl, &one, NULL, o, a, &parts)) return false;
  const double worst = MAX(r->worst, parts.worst);
  if (!parts.passed) *r = parts;
  r->worst = worst;
  return true;
}

bool plan_verify(planner *pl, const plan *pn, cost_model *k, const verify_opts *o, arena *a,
                 verify_report *r) {
  plan whole = *pn;
  const bool rewritten = pn->coshard > 1 || pn->fused_attention;
  whole.coshard = 0, whole.fused_attention = false;
  planner *formed = planner_formed(pl, pn),
          *model = rewritten && formed ? planner_formed(pl, &whole) : formed;
  if (!model || !verify_under(model, formed, pn, k, o, a, r)) return false;
  const bool apart = rewritten && r->passed && (*r->shrunk || plan_update_group(pn));
  return !apart || verify_parts(model, pn, o, a, r);
}
