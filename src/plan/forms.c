// forms.c - the source program in other forms: with batch normalisation over groups of the batch, with heads and
// hidden units in parts, with attention that keeps no scores, with instructions that the backward computes again, or with fewer layers (layers.c). One planner for every form.
// Not here: which form a plan has (policy/batchnorm.c, policy/hybrid.c).
//
// Idea: the form changes laws of instructions, gradients or main, and with them classes and stage sources:
// all that a planner keeps. So a planner is for one form, and those for other forms belong to it. With all
// layers, functions and instructions have the same numbers in all of them: a plan is about any.
#include "plan/internal.h"

// Without what the planner has added.
prog *planner_program(const planner *pl) {
  prog *p = prog_clone(pl->src, pl->src->c);
  p->funcs.n = pl->nfuncs;
  return p;
}

// Where attention in main has become one operator, what computed scores keeps its number and is read by nobody: like
// constants it is then in no stage.
static void leave_out_unread(planner *pl) {
  const func_info *m = func_get(pl->src, pl->src->main);
  bool *read = ZNEWN(pl->a, bool, m->values.n);
  for (u32 k = 0; k < m->rets.n; k++) read[m->rets.v[k]] = true;
  for (u32 i = m->body.n; i-- > 0;) {
    const instr *in = &m->body.v[i];
    bool any = in->nres == 0;
    for (u32 r = 0; r < in->nres; r++) any |= read[in->res + r];
    for (u32 k = 0; k < in->nopd && any; k++) read[opd_of(m, in, k)] = true;
    pl->cone[i] |= !any;
  }
}

planner *planner_form(planner *pl, prog *p) {
  planner *made = planner_new(p);
  prog_free(p);
  made->groups = pl->groups, made->fused = pl->fused;
  made->coshard = pl->coshard, made->first_part = pl->first_part;
  if (made->fused) leave_out_unread(made);
  return *vec_push(pl->a, &pl->forms) = made;
}

const char *plan_layers(arena *a, const prog *src, const plan *pn) {
  if (pn->nsegments < 2) return NULL;
  const func_info *m = func_get(src, src->main);
  u32 *n = ZNEWN(a, u32, pn->nsegments), all = 0;
  for (u32 k = 0; k < pn->nsegments; all += n[k++])
    for (u32 i = pn->segments[k].from - 1; i < pn->segments[k].to; i++) n[k] += m->body.v[i].op == OP_call;
  if (!all) return NULL;
  strbuf b = {.a = a};
  choice_print(CHOICE_layers, (choice_value){.nparts = pn->nsegments, .part = n}, &b);
  return sb_str(&b);
}

batchnorm_stats plan_batchnorm(const prog *src, const plan *pn) {
  batchnorm_stats s;
  if (pass_batchnorm_of(src, &s) && pn->batchnorm_groups) s.groups = pn->batchnorm_groups;
  return s;
}

static planner *planner_grouped(planner *pl, u32 groups, loc where) {
  if (!groups || groups == pl->groups) return pl;
  for (u32 i = 0; i < pl->forms.n; i++)
    if (pl->forms.v[i]->groups == groups && pl->forms.v[i]->coshard == pl->coshard) return pl->forms.v[i];
  prog *p = planner_program(pl);
  if (!pass_batchnorm(p, groups, where)) {
    prog_free(p);
    return NULL;
  }
  planner *made = planner_form(pl, p);
  made->groups = groups;
  return made;
}

static prog *fused(prog *p, loc where) {
  attention_count n;
  if (pass_attention(p, where, &n)) return p;
  prog_free(p);
  return NULL;
}

static planner *planner_fused(planner *pl, bool asked, loc where) {
  if (!asked || pl->fused) return pl;
  for (u32 i = 0; i < pl->forms.n; i++)
    if (pl->forms.v[i]->fused && pl->forms.v[i]->groups == pl->groups) return pl->forms.v[i];
  prog *p = fused(planner_program(pl), where);
  if (!p) return NULL;
  planner *made = planner_form(pl, p);
  made->fused = true;
  leave_out_unread(made);
  return made;
}

// Without functions that a planner, or nobody, has added after those that run: parts have the same numbers, whoever asks.
static prog *in_parts(const prog *src, u32 parts, loc where, u32 *first) {
  prog *p = prog_clone(src, src->c);
  arena *tmp = arena_new();
  u32 n;
  const u32 *order = ir_call_order(p, tmp, &n);
  *first = 1;
  for (u32 k = 0; k < n; k++) *first = MAX(*first, order[k] + 1);
  p->funcs.n = *first;
  arena_free(tmp);
  if (pass_coshard(p, parts, where)) return p;
  prog_free(p);
  return NULL;
}

static planner *planner_coshard(planner *pl, u32 parts, loc where) {
  if (parts < 2 || parts == pl->coshard) return pl;
  for (u32 i = 0; i < pl->forms.n; i++)
    if (pl->forms.v[i]->coshard == parts && pl->forms.v[i]->groups == pl->groups) return pl->forms.v[i];
  u32 first;
  prog *p = in_parts(pl->src, parts, where, &first);
  if (!p) return NULL;
  planner *made = planner_form(pl, p);
  made->coshard = parts, made->first_part = first;
  return made;
}

u32 planner_first_part(const planner *pl) { return pl->first_part; }

u32 planner_coshard_of(planner *pl, const coshard_index **out) {
  if (!pl->indices_known) {
    prog *p = planner_program(pl);
    pl->nindices = pass_coshard_of(p, pl->a, &pl->indices);
    prog_free(p);
  }
  pl->indices_known = true;
  *out = pl->indices;
  return pl->nindices;
}

planner *planner_formed(planner *pl, const plan *pn) {
  pl = planner_grouped(pl, pn->batchnorm_groups, pn->groups_at);
  pl = pl ? planner_fused(pl, pn->fused_attention, pn->attention_at) : NULL;
  return pl ? planner_coshard(pl, pn->coshard, pn->coshard_at) : NULL;
}

const prog *plan_program(const prog *src, const plan *pn, prog **own) {
  u32 first;
  *own = pn->fused_attention ? fused(prog_clone(src, src->c), pn->attention_at) : NULL;
  if (pn->fused_attention && !*own) return NULL;
  if (pn->coshard < 2) return *own ? *own : src;
  prog *whole = *own;
  *own = in_parts(whole ? whole : src, pn->coshard, pn->coshard_at, &first);
  prog_free(whole);
  return *own;
}

// ---- computed again -------------------------------------------------------------------------------------
static bool same_marks(const planner *pl, const plan *pn) {
  if (pl->nmarks != pn->nrecompute) return false;
  for (u32 i = 0; i < pn->nrecompute; i++)
    if (pl->mark[i].fn.i != pn->recompute[i].fn.i || pl->mark[i].instr != pn->recompute[i].instr)
      return false;
  return true;
}

planner *planner_marked(planner *pl, const plan *pn) {
  if (same_marks(pl, pn)) return pl;
  for (u32 i = 0; i < pl->forms.n; i++) {
    planner *x = pl->forms.v[i];
    if (x->groups == pl->groups && x->fused == pl->fused && x->coshard == pl->coshard && !x->periods &&
        same_marks(x, pn))
      return x;
  }
  prog *p = planner_program(pl);
  for (u32 f = 1; f < p->funcs.n; f++) // what the program itself had marked is the plan's choice
    for (u32 i = 0; i < p->funcs.v[f]->body.n; i++) p->funcs.v[f]->body.v[i].flags &= (u8)~INSTR_RECOMPUTE;
  for (u32 i = 0; i < pn->nrecompute; i++)
    func_get(p, pn->recompute[i].fn)->body.v[pn->recompute[i].instr - 1].flags |= INSTR_RECOMPUTE;
  planner *made = planner_form(pl, p);
  made->nmarks = pn->nrecompute;
  made->mark = NEWN(made->a, plan_mark, pn->nrecompute + 1);
  for (u32 i = 0; i < pn->nrecompute; i++)
    made->mark[i] = (plan_mark){.fn = pn->recompute[i].fn, .instr = pn->recompute[i].instr};
  return made;
}

// Which marks change the gradient of main in one piece: those that do so in any stage of it.
static void find_idle(planner *pl) {
  prog *p = pl->src;
  const u32 before = diag_count(p->c);
  pl->idle_known = true;
  const value loss = func_get(p, p->main)->rets.v[0];
  const stage_source *c = planner_stage(pl, 1, func_get(p, p->main)->body.n);
  const func_info *m = func_get(p, p->main);
  u8 *mark = ZNEWN(pl->a, u8, c->nweights + c->ninputs + 1);
  bool *has_dy = ZNEWN(pl->a, bool, c->noutputs + 1), *again = ZNEWN(pl->a, bool, p->norigins + 1);
  for (u32 k = 0; k < c->nweights; k++)
    if (dtype_kind_of(val_type(p, m, c->weight[k])->s.t) == DK_FLOAT) mark[k] = GRAD_PLAIN;
  for (u32 k = 0; k < c->noutputs; k++) has_dy[k] = c->output[k] == loss;
  const grad_pair *gp = planner_grad(pl, c->fwd, &(grad_opts){.mark = mark, .has_dy = has_dy});
  diag_truncate(p->c, before);
  if (!gp) return; // whoever applies the plan says so
  for (u32 k = 0; k < gp->nagain; k++) again[gp->again[k]] = true;
  for (u32 i = 0; i < pl->nmarks; i++)
    pl->mark[i].idle = !again[func_get(p, pl->mark[i].fn)->body.v[pl->mark[i].instr - 1].origin];
}

static bool marks_of_its_own(const planner *pl) {
  for (u32 f = 1; f < pl->nfuncs; f++)
    for (u32 i = 0; i < pl->src->funcs.v[f]->body.n; i++)
      if (pl->src->funcs.v[f]->body.v[i].flags & INSTR_RECOMPUTE) return true;
  return false;
}

void plan_drop_marks(planner *pl, plan *pn) {
  pl = planner_formed(pl, pn);
  if (!pl || !pn->train || !pn->nrecompute || marks_of_its_own(pl)) return; // without any those would hold
  planner *own = planner_marked(pl, pn);
  if (!own->idle_known) find_idle(own);
  u32 n = 0;
  for (u32 i = 0; i < pn->nrecompute; i++)
    if (!own->mark[i].idle) pn->recompute[n++] = pn->recompute[i];
  pn->nrecompute = n;
}
