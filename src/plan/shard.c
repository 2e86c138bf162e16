// shard.c - trans, made total: from explicit choices and the layouts of parameters to a sharded function with
// its communication written out. Not here: which choices (policies), which stages (planner.c), what order.
//
// Idea: instructions in program order; for each one every axis gets at most one role: it splits a letter
// (explicit choice first, then the operands' splits in operand order), or it passes a partial sum through a
// linear instruction, or it replicates. The law then says in which layout each operand is needed and each
// result arrives; where an operand lies otherwise, the cheapest chain of communications is emitted once and
// shared by later consumers.
#include "plan/roles.h"

const layout LAYOUT_FREE = {~0u}, LAYOUT_SUMMED = {~1u};
static bool is_free(layout l) { return l.i == LAYOUT_FREE.i; }

typedef struct converted {
  value v;
  layout l;
  struct converted *next;
} converted;
typedef struct {
  apply *x;
  builder b;
  func src;
  const func_info *f;
  value *map;       // source value -> value of the new function
  converted **conv; // per source value: the same value in other layouts
  u32 *nuses;       // per source value: consumers, returns included
  bool *free_param; // per source value: a parameter whose layout is not yet chosen
  bool *stored;     // per source value: a weight that storage may shard further; such splits claim no role
  const layout *demand; // per result
  u32 *demand_of;       // per source value: result number + 1 with a demand
  layout *in;           // parameter layouts, free ones being resolved
  group g;
} sharding;

// An attribute set of the source program in p.
static attrset attrs_here(apply *x, attrset s) {
  if (!s.i) return s;
  while (x->attr_map.n <= s.i) vec_push(x->a, &x->attr_map)->i = 0;
  if (x->attr_map.v[s.i].i) return x->attr_map.v[s.i];
  attrs at = attrs_get(x->src, s);
  attr *copy = arena_dup(x->a, at.v, sizeof(attr) * at.n);
  for (u32 i = 0; i < at.n; i++)
    if (copy[i].kind == AK_DATA) {
      u32 d = copy[i].u.data;
      while (x->data_map.n <= d) *vec_push(x->a, &x->data_map) = 0;
      if (!x->data_map.v[d]) {
        *vec_push(x->p->a, &x->p->data) = x->src->data.v[d];
        x->data_map.v[d] = x->p->data.n - 1;
      }
      copy[i].u.data = x->data_map.v[d];
    }
  return x->attr_map.v[s.i] = attrs_of(x->p, copy, at.n);
}

// ---- roles of axes in one instruction ---------------------------------------------------------------------
static layout value_layout(const sharding *s, value v) {
  return val_type(s->x->p, func_get(s->x->p, s->b.f), v)->lay;
}

static bool storage_axis(const apply *x, u8 axis) {
  for (u32 i = 0; i < x->pn->nstorage[STORAGE_WEIGHT]; i++)
    if (x->axis[x->pn->storage[STORAGE_WEIGHT][i]] == axis) return true;
  return false;
}

// Splits that operands bring along, in operand order. Those over time come first: nothing undoes them in a
// step.
static u32 roles_from_splits(sharding *s, const law *l, const op_row *row, const layout *have,
                             const bool *stored, bool time_only, axis_role *r, u32 nr) {
  space *sp = s->x->p->sp;
  for (u32 k = 0; k < l->nopd; k++) {
    if (is_free(have[k])) continue;
    const layout_info *li = layout_get(sp, have[k]); // stays: no layout is made here
    for (u32 i = 0; i < li->nsplit && nr < ROLES_MAX; i++) {
      const lay_split *sl = &li->split[i];
      if (has_role(r, nr, sl->axis) || (stored[k] && storage_axis(s->x, sl->axis))) continue;
      if (time_only && !axis_get(sp, sl->axis)->temporal) continue;
      letter_split x;
      if (ir_letter_at(s->x->p, l, &l->opd[k].dim[sl->dim], sl, &x) &&
          may_split(l, row->red, sp, sl->axis, &x, r, nr))
        r[nr++] = (axis_role){sl->axis, row->red, x};
    }
  }
  return nr;
}

// Is the result added to an accumulator that holds sums of the data ranks until the step ends? Then it is summed once with
// all microbatches, where the operand would be for each of them: of less elements, but K times.
static bool is_summed_later(const sharding *s, const instr *in, u8 axis, i64 from, i64 to) {
  const apply *x = s->x;
  const func_info *f = s->f;
  const u32 each = plan_update_group(x->pn); // microbatches of an update
  if (!(in->flags & INSTR_BACKWARD) || !x->pn->time || x->pn->nstorage[STORAGE_GRAD] ||
      !(x->batch_axes >> axis & 1) || in->nres != 1 || s->nuses[in->res] != 1 ||
      from * (each ? each : x->pn->axes[x->pn->time - 1].size) < to)
    return false;
  for (u32 i = (u32)(in - f->body.v) + 1; i < f->body.n; i++) {
    const instr *u = &f->body.v[i];
    if (u->op == OP_call || u->nopd != 2 || opd_of(f, u, 1) != in->res) continue;
    return (u->op == OP_add || u->op == OP_accumulate) && opd_donated(f, u, 0) &&
           opd_of(f, u, 0) <= f->nparams;
  }
  return false;
}

// Partial sums that may pass: the instruction is linear in the operand, nobody else uses the axis, and
// passing is either free of regret (a view, an addition of partial sums, a smaller result, one that is summed later
// anyway, one that only moves until it is made smaller) or the only way (temporal axes).
static u32 roles_from_partials(sharding *s, const instr *in, const law *l, const op_row *row,
                               const layout *have, axis_role *r, u32 nr) {
  space *sp = s->x->p->sp;
  for (u32 k = 0; k < l->nopd; k++) {
    if (is_free(have[k])) continue;
    const layout_info *li = layout_get(sp, have[k]);
    for (u32 i = 0; i < li->npart && nr < ROLES_MAX; i++) {
      u8 ax = li->part[i].axis;
      char lin = law_lin(l, k);
      if (has_role(r, nr, ax) || li->part[i].red != RED_SUM || row->red != RED_SUM || lin == '-') continue;
      bool ok = true;
      u32 joint = 0, partial = 0;
      for (u32 j = 0; j < l->nopd && ok; j++) {
        bool part = !is_free(have[j]) && layout_part_of(sp, have[j], ax) != RED_NONE;
        if (lin == 'j' && law_lin(l, j) == 'j')
          joint++, partial += part;
        else if (j != k && part)
          ok = false; // linear in each alone, not in both
      }
      if (!ok || (lin == 'j' && partial != joint && !axis_get(sp, ax)->temporal)) continue;
      const func_info *f = s->f;
      const i64 from = shape_elems(&val_type(s->x->src, f, opd_of(f, in, k))->s),
                to = shape_elems(&val_type(s->x->src, f, in->res)->s);
      const bool gain = (in->op == OP_cast && s->x->update) || axis_get(sp, ax)->temporal ||
                        sum_gains(row, lin, joint, s->nuses[opd_of(f, in, k)], from, to) ||
                        is_summed_later(s, in, ax, from, to) ||
                        (in->op == OP_transpose && s->nuses[opd_of(f, in, k)] == 1 &&
                         sum_moves(s->x->pl, s->src, in->res, from));
      if (gain) r[nr++] = (axis_role){ax, RED_SUM, {.letter = PASS}};
    }
  }
  return nr;
}

static value as_summed(const sharding *s, value sv);
// Does an operand bring a sum over the axis along, or can one be made a summand?
static bool sums_pass(const sharding *s, const instr *in, const law *l, u8 axis) {
  bool any = false;
  for (u32 k = 0; k < l->nopd; k++) {
    const value v = opd_of(s->f, in, k);
    any |= law_lin(l, k) == 'j';
    any |= law_lin(l, k) == 'e' && !s->free_param[v] &&
           layout_part_of(s->x->p->sp, value_layout(s, as_summed(s, v)), axis) == RED_SUM;
  }
  return any;
}

static u32 roles_explicit(sharding *s, u32 index, const law *l, const op_row *row, bool weak, axis_role *r,
                          u32 nr) {
  const instr *in = &s->f->body.v[index];
  const bool backward = (in->flags & INSTR_BACKWARD) && !(in->flags & INSTR_RECOMPUTE);
  const choice_list *per = &s->x->choices[in->origin];
  for (u32 i = 0; i < per->n && nr < ROLES_MAX; i++) {
    const choice *c = &per->v[i];
    if (c->weak != weak || (weak && has_role(r, nr, c->axis))) continue;
    if (backward && c->letter != WHOLE) continue;
    if (!axis_get(s->x->p->sp, c->axis)->temporal && !group_has_axis(s->x->p->sp, s->g, c->axis)) continue;
    if (c->letter >= WHOLE) {
      if (has_role(r, nr, c->axis)) continue;
      if (c->letter == WHOLE || sums_pass(s, in, l, c->axis))
        r[nr++] = (axis_role){c->axis, row->red, {.letter = c->letter}};
      continue;
    }
    u32 n = axis_size(s->x->p->sp, c->axis);
    i64 stride = c->stride;
    if (!stride && !c->table) { // as major as the roles so far allow
      stride = l->letter[c->letter].extent;
      for (u32 j = 0; j < nr; j++)
        if (r[j].at.letter == c->letter && r[j].at.stride) stride = MIN(stride, r[j].at.stride);
      stride = stride % n ? 0 : stride / n;
    }
    const letter_split x = {c->letter, c->table, stride};
    if (!has_role(r, nr, c->axis) && may_split(l, row->red, s->x->p->sp, c->axis, &x, r, nr))
      r[nr++] = (axis_role){c->axis, row->red, x};
    else if (!weak) {
      diag(s->x->src->c, E_DIVIDE, in->where, "%s: extent %lld is not divisible by %u (axis %s)", row->name,
           (long long)l->letter[c->letter].extent, n,
           sym_str(s->x->src->c, axis_get(s->x->p->sp, c->axis)->name));
      for (u32 j = 0; j < nr; j++)
        if (r[j].at.letter < WHOLE && (r[j].at.letter == c->letter || r[j].axis == c->axis))
          diag_note(s->x->src->c, in->where, "%s splits an extent of %lld at stride %lld",
                    sym_str(s->x->src->c, axis_get(s->x->p->sp, r[j].axis)->name),
                    (long long)l->letter[r[j].at.letter].extent, (long long)r[j].at.stride);
      s->b.failed = true;
    }
  }
  return nr;
}

// lin: the operand's linearity, 0 for a result. A jointly linear operand beside a contracted split (the bias
// of a convolution split over its input channels) must itself be partial, else it would be added once per
// rank.
static layout term_layout(sharding *s, const law *l, const law_term *t, const axis_role *r, u32 nr, char lin,
                          bool pass) {
  layout_info li = {0};
  for (u32 i = 0; i < nr; i++) {
    if (r[i].at.letter == WHOLE) continue;
    if (r[i].at.letter == PASS) {
      if (pass && li.npart < LAY_PARTS) li.part[li.npart++] = (lay_part){r[i].axis, RED_SUM};
      continue;
    }
    const bool found = ir_split_of(s->x->p, l, t, r[i].axis, &r[i].at, &li.split[li.nsplit]);
    const bool sum = !lin || (lin == 'j' && !law_term_has(&l->res[0], r[i].at.letter));
    li.nsplit += found;
    if (!found && sum && li.npart < LAY_PARTS) li.part[li.npart++] = (lay_part){r[i].axis, r[i].red};
  }
  return layout_of(s->x->p->sp, &li);
}

// ---- conversions ------------------------------------------------------------------------------------------
static void set_free(sharding *s, value sv, layout l) { // a free parameter gets its layout
  s->free_param[sv] = false;
  s->in[sv - 1] = l;
  func_get(s->x->p, s->b.f)->values.v[s->map[sv]].ty =
      type_tensor(s->x->p, &val_type(s->x->src, s->f, sv)->s, l, (group){0});
}

static layout without_spatial_parts(space *sp, layout l) {
  for (u32 i = layout_get(sp, l)->npart; i-- > 0;) {
    const u8 axis = layout_get(sp, l)->part[i].axis;
    if (!axis_get(sp, axis)->temporal) l = layout_without(sp, l, axis);
  }
  return l;
}

// A value in whatever layout is at hand: one that was summed for a use here is the sum to all that read it
// later (the backward pass, above all), or they would sum it again.
static value as_summed(const sharding *s, value sv) {
  value v = s->map[sv];
  if (without_spatial_parts(s->x->p->sp, value_layout(s, v)).i == value_layout(s, v).i) return v;
  for (const converted *c = s->conv[sv]; c; c = c->next)
    if (without_spatial_parts(s->x->p->sp, c->l).i == c->l.i)
      v = c->v; // the first that was made: the list is in reverse
  return v;
}

// ---- sums in f32 ------------------------------------------------------------------------------------------
// Would the value, in that layout, be summed over ranks? axes: over which, as bits.
static bool completes_sum(const sharding *s, value v, layout need, u64 axes) {
  const space *sp = s->x->p->sp;
  const layout_info *li = layout_get(sp, value_layout(s, v));
  for (u32 i = 0; i < li->npart; i++)
    if (axes >> li->part[i].axis & 1 && !axis_get(sp, li->part[i].axis)->temporal &&
        layout_part_of(sp, need, li->part[i].axis) == RED_NONE)
      return true;
  return false;
}

static value cast_to(sharding *s, value v, dtype t) {
  prog *p = s->x->p;
  const attr to = attr_t(A_dtype, t);
  shape sh = val_type(p, func_get(p, s->b.f), v)->s;
  sh.t = t;
  const type ty = type_tensor(p, &sh, value_layout(s, v), (group){0});
  return emit_res(p, s->b.f, emit(&s->b, OP_cast, attrs_of(p, &to, 1), &v, 1, &ty, 1));
}

// A gradient, summed in the type of the accumulator that it goes into.
static value summed_as(sharding *s, const instr *in, value v, layout need) {
  const dtype t = val_type(s->x->src, s->f, opd_of(s->f, in, 0))->s.t;
  return shard_convert(s->x, &s->b, cast_to(s, v, t), need, s->g);
}

// In a backward what is summed over ranks that share the batch is on its way to a weight's gradient: where gradients
// are summed in f32 so is this.
static value summed_wide(sharding *s, value v, layout need) {
  const dtype t = val_type(s->x->p, func_get(s->x->p, s->b.f), v)->s.t;
  const bool wide = s->x->pn->wide_gradients && s->b.flags & INSTR_BACKWARD && dtype_bytes(t) < 4 &&
                    dtype_kind_of(t) == DK_FLOAT && completes_sum(s, v, need, s->x->batch_axes);
  if (!wide) return shard_convert(s->x, &s->b, v, need, s->g);
  const value sum = shard_convert(s->x, &s->b, cast_to(s, v, DT_F32), need, s->g);
  return s->b.failed ? 0 : cast_to(s, sum, t);
}

// How a weight is kept of which this layout is needed: all microbatches read the same one, so it is no piece or
// part of one of them, but is cut where it is used.
static layout kept_weight(const sharding *s, layout need) {
  space *sp = s->x->p->sp;
  const layout_info li = *layout_get(sp, need);
  for (u32 i = li.npart; i-- > 0;) need = layout_without(sp, need, li.part[i].axis);
  for (u32 i = li.nsplit; i-- > 0;)
    if (axis_get(sp, li.split[i].axis)->temporal) need = layout_without(sp, need, li.split[i].axis);
  return need;
}

// The operand (a source value) in the layout that is needed.
static value operand_as(sharding *s, value sv, layout need) {
  if (s->free_param[sv]) {
    layout lay = s->f->params.v[sv - 1].r == ROLE_WEIGHT ? kept_weight(s, need) : need;
    set_free(s, sv, shard_storage(s->x, lay, &val_type(s->x->src, s->f, sv)->s, STORAGE_WEIGHT, s->g));
    s->stored[sv] = true;
  }
  value v = s->map[sv];
  if (value_layout(s, v).i == need.i) return v;
  for (converted *c = s->conv[sv]; c; c = c->next)
    if (c->l.i == need.i) return c->v;
  value w = summed_wide(s, as_summed(s, sv), need);
  converted *c = NEW(s->x->a, converted);
  *c = (converted){w, need, s->conv[sv]};
  s->conv[sv] = c;
  return w;
}

// ---- instructions -----------------------------------------------------------------------------------------
static void finish(sharding *s, const instr *in,
                   u32 at) { // results of the new instruction stand for the source's
  const instr *made = &func_get(s->x->p, s->b.f)->body.v[at - 1];
  for (u32 k = 0; k < in->nres; k++) {
    value sv = in->res + k;
    s->map[sv] = made->res + k;
    if (s->demand_of && s->demand_of[sv]) {
      layout to = s->demand[s->demand_of[sv] - 1];
      if (to.i == LAYOUT_SUMMED.i) to = without_spatial_parts(s->x->p->sp, value_layout(s, s->map[sv]));
      value w = shard_convert(s->x, &s->b, s->map[sv], to, s->g);
      if (s->b.failed) return;
      s->map[sv] = w;
      made = &func_get(s->x->p, s->b.f)->body.v[at - 1];
    }
  }
}

// A weak choice for the result, where another one has taken the axis: what is a sum over it then (of rows
// that ranks look up) is summed into the pieces that the plan wants, and not whole.
static void sum_into_pieces(sharding *s, const instr *in, const law *l) {
  space *sp = s->x->p->sp;
  const choice_list *per = &s->x->choices[in->origin];
  if (in->nres != 1 || ((in->flags & INSTR_BACKWARD) && !(in->flags & INSTR_RECOMPUTE))) return;
  for (u32 i = 0; i < per->n && !s->b.failed; i++) {
    const choice *c = &per->v[i];
    layout have = value_layout(s, s->map[in->res]);
    if (!c->weak || !c->result || !c->stride || layout_part_of(sp, have, c->axis) != RED_SUM) continue;
    axis_role r = {c->axis, RED_SUM, {c->letter, 0, c->stride}};
    layout to = term_layout(s, l, &l->res[0], &r, 1, 0, false);
    const lay_split *sl = layout_split_of(sp, to, c->axis);
    if (!sl) continue;
    to = layout_with_split(sp, layout_without(sp, have, c->axis), c->axis, sl->dim, sl->stride);
    const shape *sh = &val_type(s->x->src, s->f, in->res)->s;
    if (layout_fits(sp, to, sh->nd, sh->dim))
      s->map[in->res] = shard_convert(s->x, &s->b, s->map[in->res], to, s->g);
  }
}

// Is the operand a sum that the callee makes smaller before it is taken?
static bool is_summed_within(const sharding *s, const instr *in, value sv, layout have) {
  bool sums = in->flags & INSTR_BACKWARD && layout_get(s->x->p->sp, have)->npart;
  for (u32 i = 0; sums && i < layout_get(s->x->p->sp, have)->npart; i++)
    sums = layout_get(s->x->p->sp, have)->part[i].red == RED_SUM;
  return sums && sum_shrinks(s->x->pl, s->src, sv, shape_elems(&val_type(s->x->src, s->f, sv)->s));
}

static void shard_call(sharding *s, const instr *in) {
  apply *x = s->x;
  u32 n = instr_nopd(s->f, in);
  layout *have = NEWN(x->a, layout, n);
  bool *stored = NEWN(x->a, bool, n + 1);
  for (u32 k = 0; k < n; k++) {
    value sv = opd_of(s->f, in, k);
    stored[k] = s->stored[sv];
    const bool donated = opd_donated(s->f, in, k);
    have[k] = s->free_param[sv] ? LAYOUT_FREE : value_layout(s, donated ? s->map[sv] : as_summed(s, sv));
    if (!s->free_param[sv] && !donated && !is_summed_within(s, in, sv, have[k]))
      have[k] = without_spatial_parts(s->x->p->sp, have[k]);
  }
  sharded callee;
  const shard_call_of call = {.f = in->callee, .in = have, .stored = stored, .g = s->g};
  if (!shard_function(x, &call, &callee)) {
    s->b.failed = true;
    return;
  }
  u32 *opd = NEWN(x->a, u32, n);
  for (u32 k = 0; k < n && !s->b.failed; k++) {
    value sv = opd_of(s->f, in, k);
    layout want =
        is_free(callee.in[k]) ? (layout){0} : callee.in[k]; // free still: the callee does not read it
    if (s->free_param[sv]) {
      set_free(s, sv, want); // in storage already: the callee chose
      s->stored[sv] = callee.stored[k];
    }
    opd[k] = operand_as(s, sv, want) | (opd_donated(s->f, in, k) ? OPD_DONATED : 0);
  }
  if (s->b.failed) return;
  const func_info *cf = func_get(x->p, callee.dst);
  type *res = NEWN(x->a, type, in->nres + 1);
  for (u32 k = 0; k < in->nres; k++) res[k] = cf->values.v[cf->rets.v[k]].ty;
  u32 at = emit(&s->b, OP_call, (attrset){0}, opd, n, res, in->nres);
  func_get(x->p, s->b.f)->body.v[at - 1].callee = callee.dst;
  finish(s, in, at);
}

// The forward of an instruction that was last sharded for a group with the axes that its operands are split over: a
// stage may run on several meshes.
static const seen_forward *forward_on(const sharding *s, const instr *in) {
  const space *sp = s->x->p->sp;
  for (const seen_forward *fw = &s->x->seen[in->origin]; fw; fw = fw->other) {
    bool here = true;
    for (u32 k = 0; k < fw->n; k++) {
      const layout_info *li = layout_get(sp, fw->lay[k]);
      for (u32 i = 0; i < li->nsplit; i++)
        here = here &&
               (axis_get(sp, li->split[i].axis)->temporal || group_has_axis(sp, s->g, li->split[i].axis));
    }
    if (here) return fw;
  }
  return NULL;
}

// An instruction of a backward keeps the letters of the forward instruction it came from: where it makes a
// gradient of the shape of a forward operand out of less (the gradient of a sum), it is split as that operand
// was.
static u32 roles_from_forward(sharding *s, const instr *in, const law *l, const op_row *row, axis_role *r,
                              u32 nr) {
  space *sp = s->x->p->sp;
  if (!in->nres || !in->origin) return nr;
  const seen_forward *fw = forward_on(s, in);
  const shape *sh = &val_type(s->x->src, s->f, in->res)->s;
  for (u32 k = 0; fw && k < fw->n; k++) {
    if (fw->shape[k]->nd != sh->nd || memcmp(fw->shape[k]->dim, sh->dim, sh->nd * sizeof *sh->dim)) continue;
    const layout_info li = *layout_get(sp, fw->lay[k]);
    for (u32 i = 0; i < li.nsplit && nr < ROLES_MAX; i++) {
      const lay_split *sl = &li.split[i];
      letter_split x;
      if (has_role(r, nr, sl->axis)) continue;
      if (!ir_letter_at(s->x->p, l, &l->res[0].dim[sl->dim], sl, &x)) continue;
      bool made = true; // only letters that no operand has
      for (u32 o = 0; o < l->nopd; o++) made = made && !law_term_has(&l->opd[o], x.letter);
      if (made && may_split(l, row->red, sp, sl->axis, &x, r, nr))
        r[nr++] = (axis_role){sl->axis, row->red, x};
    }
    break;
  }
  return nr;
}

// The operand of its forward instruction that an instruction of a backward makes the gradient of: the one of
// this shape. Of several, a weight if no weight is read (x in x w, for which w is). -1: not to be told.
static int gradient_of(const sharding *s, const instr *in, const seen_forward *fw) {
  const shape *sh = &val_type(s->x->src, s->f, in->res)->s;
  bool reads = false;
  for (u32 k = 0; k < instr_nopd(s->f, in); k++) reads |= s->stored[opd_of(s->f, in, k)];
  int found[2] = {-1, -1}; // without regard to weights; with
  bool sure[2] = {true, true};
  for (u32 k = 0; k < fw->n; k++) {
    if (!shape_same(fw->shape[k], sh)) continue;
    for (int w = 0; w < 1 + (fw->weight[k] != reads); w++) {
      sure[w] = found[w] < 0 || (sure[w] && fw->lay[k].i == fw->lay[found[w]].i);
      found[w] = (int)k;
    }
  }
  return sure[0] ? found[0] : sure[1] ? found[1] : -1;
}

// Is an operand of a backward instruction one of its forward instruction, where that had it?
static bool lies_as_before(const sharding *s, const instr *in, u32 o, const seen_forward *fw,
                           const layout *have) {
  const shape *sh = &val_type(s->x->src, s->f, opd_of(s->f, in, o))->s;
  for (u32 j = 0; j < fw->n; j++)
    if (have[o].i == fw->lay[j].i && shape_same(sh, fw->shape[j])) return true;
  return false;
}

// How the forward instruction lay of which this one is the backward. A function that is called with several
// layouts has several: the one whose operands are here. NULL: not to be told.
static const seen_forward *forward_of(const sharding *s, const instr *in, const seen_forward *fw,
                                      const layout *have) {
  const seen_forward *found = NULL;
  if (!fw->other) return fw;
  for (; fw; fw = fw->other) {
    bool here = false;
    for (u32 o = 0; o < instr_nopd(s->f, in); o++) here |= lies_as_before(s, in, o, fw, have);
    if (here && found) return NULL;
    if (here) found = fw;
  }
  return found;
}

// A gradient lies where its value lay in the forward: that of a weight is split as the weight is, whatever
// splits of other dimensions over the same axis its own gradient brings along (a sequence). Then come the
// values that the forward read, where they lie as they did there.
static u32 roles_of_gradient(const sharding *s, const instr *in, const law *l, const op_row *row,
                             const layout *have, axis_role *r, u32 nr) {
  const seen_forward *fw = &s->x->seen[in->origin];
  fw = in->origin && in->nres == 1 ? forward_of(s, in, fw, have) : NULL;
  if (!fw) return nr;
  int k = gradient_of(s, in, fw);
  if (k >= 0) nr = roles_of_layout(s->x->p, s->g, l, row->red, &l->res[0], fw->lay[k], r, nr);
  for (u32 o = 0; o < l->nopd; o++)
    if (lies_as_before(s, in, o, fw, have))
      nr = roles_of_layout(s->x->p, s->g, l, row->red, &l->opd[o], have[o], r, nr);
  return nr;
}

static void remember_forward(sharding *s, const instr *in, const law *l, const layout *need) {
  seen_forward *head = &s->x->seen[in->origin], now = {.n = MIN(l->nopd, COUNT_OF(now.lay))};
  for (u32 k = 0; k < now.n; k++) {
    value v = opd_of(s->f, in, k);
    now.lay[k] = need[k];
    now.shape[k] = &val_type(s->x->src, s->f, v)->s;
    now.weight[k] = s->stored[v];
  }
  seen_forward **at = &head->other;
  if (!head->n) *head = now;
  if (!memcmp(head->lay, now.lay, sizeof now.lay)) return;
  while (*at && memcmp((*at)->lay, now.lay, sizeof now.lay)) at = &(*at)->other;
  if (*at) *at = (*at)->other; // seen before: it becomes the last one again
  seen_forward *was = NEW(s->x->a, seen_forward);
  *was = *head;
  *head = now, head->other = was;
}

static void count_work(sharding *s, const instr *in, const law *l, const axis_role *r, u32 nr) {
  apply *x = s->x;
  double ways = 1;
  for (u32 i = 0; i < nr; i++) {
    if (r[i].at.letter >= WHOLE) continue;
    ways *= axis_size(x->p->sp, r[i].axis);
    if (r[i].axis == x->trial_axis) x->trial_split[in->origin] = true;
  }
  x->trial->flops += op_flops(in->op, attrs_get(x->src, in->at), l) / ways;
}

// Does a split fall on a letter that must stay whole, or on several letters of which one must?
static bool is_on_whole(const prog *p, const law *l, const law_dim *d, const lay_split *sl) {
  letter_split x;
  if (ir_letter_at(p, l, d, sl, &x)) return l->letter[x.letter].flags & LAW_WHOLE;
  for (u32 j = 0; j < d->n; j++)
    if (l->letter[d->f[j]].flags & LAW_WHOLE) return true;
  return false;
}

// Does the plan say what the axis does in the instruction?
static bool is_said(const sharding *s, const instr *in, u8 axis) {
  const choice_list *per = &s->x->choices[in->origin];
  for (u32 i = 0; i < per->n; i++)
    if (per->v[i].axis == axis && !per->v[i].weak) return true;
  return false;
}

// Does an operand arrive split where the law needs it whole, by an axis of which the plan says nothing there?
static bool needs_whole(const sharding *s, const instr *in, const law *l, const layout *have) {
  const space *sp = s->x->p->sp;
  for (u32 k = 0; k < l->nopd; k++) {
    if (is_free(have[k])) continue;
    const layout_info *li = layout_get(sp, have[k]);
    for (u32 i = 0; i < li->nsplit; i++) {
      const lay_split *sl = &li->split[i];
      if (axis_get(sp, sl->axis)->temporal || is_said(s, in, sl->axis)) continue;
      if (is_on_whole(s->x->p, l, &l->opd[k].dim[sl->dim], sl)) return true;
    }
  }
  return false;
}

// An accumulator whose layout is open: zero is valid in any.
static void place_accumulator(sharding *s, const instr *in, layout *have) {
  apply *x = s->x;
  if (in->op != OP_add && in->op != OP_accumulate) return;
  if (!is_free(have[0]) || !opd_donated(s->f, in, 0)) return;
  value sv = opd_of(s->f, in, 0);
  layout sum = have[1];
  u8 time = x->axis[x->pn->time]; // over the microbatches, even of what does not vary
  if (time && !layout_split_of(x->p->sp, sum, time))
    sum = layout_with_part(x->p->sp, layout_without(x->p->sp, sum, time), time, RED_SUM);
  set_free(s, sv, shard_storage(x, sum, &val_type(x->src, s->f, sv)->s, STORAGE_GRAD, s->g));
  have[0] = s->in[sv - 1];
}

// An instruction that is linear in each of several operands passes the sum of the first that has one: the product of two
// sums is not the sum of products.
static bool passes_alone(const space *sp, u8 axis, layout have, u64 *passed) {
  if (!layout_part_of(sp, have, axis) || *passed >> axis & 1) return false;
  *passed |= 1ull << axis;
  return true;
}

static void shard_instr(sharding *s, u32 index) {
  apply *x = s->x;
  const instr *in = &s->f->body.v[index];
  s->b.where = in->where;
  s->b.flags = in->flags;
  s->b.origin = in->origin;
  s->b.strm = in->strm;
  if (in->op == OP_call) {
    shard_call(s, in);
    return;
  }
  const law *l = plan_law(x->pl, s->src, index);
  if (!l) {
    s->b.failed = true;
    return;
  }
  const op_row *row = op_row_of(in->op);
  u32 n = l->nopd;
  layout have_buf[16] = {{0}}, *have = n <= 16 ? have_buf : NEWN(x->a, layout, n);
  bool stored_buf[16] = {0}, *stored = n <= 16 ? stored_buf : NEWN(x->a, bool, n);
  for (u32 k = 0; k < n; k++) {
    value sv = opd_of(s->f, in, k);
    stored[k] = s->stored[sv];
    have[k] = s->free_param[sv] ? LAYOUT_FREE : value_layout(s, as_summed(s, sv));
  }
  func decomposed = needs_whole(s, in, l, have) ? planner_decompose(x->pl, s->src, index) : (func){0};
  if (decomposed.i) {
    instr call = *in;
    call.op = OP_call, call.callee = decomposed;
    shard_call(s, &call);
    return;
  }
  place_accumulator(s, in, have);
  axis_role r[ROLES_MAX];
  u32 nr = x->pn->time ? roles_from_splits(s, l, row, have, stored, true, r, 0) : 0;
  nr = roles_explicit(s, index, l, row, false, r, nr);
  bool backward = (in->flags & INSTR_BACKWARD) && !(in->flags & INSTR_RECOMPUTE);
  if (backward) nr = roles_of_gradient(s, in, l, row, have, r, nr);
  nr = roles_from_splits(s, l, row, have, stored, false, r, nr);
  bool branch = meets_branch(s->f, s->nuses, index);
  nr = roles_of_sums(x->p->sp, l, row->red, have, branch, r, nr);
  nr = roles_explicit(s, index, l, row, true, r, nr);
  if (backward) nr = roles_from_forward(s, in, l, row, r, nr);
  nr = roles_from_partials(s, in, l, row, have, r, nr);
  if (s->b.failed) return;
  if (x->trial) count_work(s, in, l, r, nr);
  opcode op = (opcode)in->op;
  u32 opd_buf[16], *opd = n <= 16 ? opd_buf : NEWN(x->a, u32, n);
  u64 passed = 0; // axes, as bits
  for (u32 k = 0; k < n; k++) {
    bool pass = law_lin(l, k) == 'j' ||
                (!is_free(have[k]) && law_lin(l, k) == 'e' && layout_get(x->p->sp, have[k])->npart > 0);
    layout need = term_layout(s, l, &l->opd[k], r, nr, law_lin(l, k), pass);
    for (u32 i = 0; pass && i < nr; i++) // only what one operand holds partially passes
      if (r[i].at.letter == PASS && law_lin(l, k) == 'e' &&
          !passes_alone(x->p->sp, r[i].axis, have[k], &passed))
        need = layout_without(x->p->sp, need, r[i].axis);
    s->b.failed = !is_free(have[k]) && plan_whole_in_time(x, in, k, have[k], need);
    if (s->b.failed) return;
    have[k] = need;
    if (in->op == OP_accumulate && k == 1 &&
        completes_sum(s, as_summed(s, opd_of(s->f, in, k)), need, ~0ull)) {
      opd[k] = summed_as(s, in, as_summed(s, opd_of(s->f, in, k)), need);
      op = OP_add;
    } else
      opd[k] = operand_as(s, opd_of(s->f, in, k), need);
    if (s->b.failed) return;
    if (opd_donated(s->f, in, k) && opd[k] == s->map[opd_of(s->f, in, k)]) opd[k] |= OPD_DONATED;
  }
  if (!backward) remember_forward(s, in, l, have);
  type res_buf[16], *res = in->nres <= 16 ? res_buf : NEWN(x->a, type, in->nres);
  for (u32 k = 0; k < in->nres; k++) {
    const shape *sh = &val_type(x->src, s->f, in->res + k)->s;
    res[k] = type_tensor(x->p, sh, term_layout(s, l, &l->res[k], r, nr, 0, true), (group){0});
  }
  finish(s, in, emit(&s->b, op, attrs_here(x, in->at), opd, n, res, in->nres));
  if (!s->b.failed && !branch) sum_into_pieces(s, in, l);
}

// ---- functions --------------------------------------------------------------------------------------------
static bool in_pack(const pack_range *pk, u32 n, u32 i, const pack_range **which) {
  for (u32 k = 0; k < n; k++)
    if (i >= pk[k].first && i < pk[k].first + pk[k].count) {
      *which = &pk[k];
      return true;
    }
  return false;
}

// Parameters of the new function. A packed range is one tuple parameter, unpacked first thing; element types
// are patched in pack_types when the free ones are known.
static void make_params(sharding *s, const shard_call_of *c) {
  apply *x = s->x;
  const func_info *f = s->f;
  type none = type_tuple(x->p, NULL, 0);
  u32 tuple_param[8] = {0};
  for (u32 i = 0; i < f->nparams; i++) {
    const pack_range *pk;
    if (in_pack(c->pack, c->npack, i, &pk)) {
      if (i == pk->first)
        tuple_param[pk - c->pack] = func_param(x->p, s->b.f, none, (sym){0}, f->params.v[i].r);
      continue;
    }
    layout l = is_free(c->in[i]) ? (layout){0} : c->in[i];
    s->map[i + 1] = func_param(x->p, s->b.f, type_tensor(x->p, &val_type(x->src, f, i + 1)->s, l, (group){0}),
                               f->values.v[i + 1].name, f->params.v[i].r);
  }
  for (u32 k = 0; k < c->npack; k++) {
    const pack_range *pk = &c->pack[k];
    if (!pk->count) continue;
    type *ty = NEWN(x->a, type, pk->count);
    for (u32 j = 0; j < pk->count; j++) {
      layout l = is_free(c->in[pk->first + j]) ? (layout){0} : c->in[pk->first + j];
      ty[j] = type_tensor(x->p, &val_type(x->src, f, pk->first + j + 1)->s, l, (group){0});
    }
    value r = emit_res(x->p, s->b.f, emit(&s->b, OP_unpack, (attrset){0}, &tuple_param[k], 1, ty, pk->count));
    for (u32 j = 0; j < pk->count; j++) {
      s->map[pk->first + j + 1] = r + j;
      value_name(x->p, s->b.f, r + j, f->values.v[pk->first + j + 1].name);
    }
  }
}

static void pack_types(sharding *s, const shard_call_of *c) {
  prog *p = s->x->p;
  func_info *nf = func_get(p, s->b.f);
  for (u32 k = 0, at = 0; k < c->npack; k++) {
    const pack_range *pk = &c->pack[k];
    if (!pk->count) continue;
    type *ty = NEWN(s->x->a, type, pk->count);
    for (u32 j = 0; j < pk->count; j++) ty[j] = nf->values.v[s->map[pk->first + j + 1]].ty;
    nf->values.v[nf->opds.v[nf->body.v[at].opd] & OPD_VALUE].ty = type_tuple(p, ty, pk->count);
    at++;
  }
}

static void prepare(sharding *s, const shard_call_of *c) {
  apply *x = s->x;
  const func_info *f = s->f;
  u32 nv = f->values.n;
  s->map = ZNEWN(x->a, value, nv);
  s->conv = ZNEWN(x->a, converted *, nv);
  s->nuses = ZNEWN(x->a, u32, nv);
  s->free_param = ZNEWN(x->a, bool, nv);
  s->stored = ZNEWN(x->a, bool, nv);
  s->in = arena_dup(x->a, c->in, sizeof *c->in * f->nparams);
  for (u32 i = 0; i < f->opds.n; i++) s->nuses[f->opds.v[i] & OPD_VALUE]++;
  for (u32 i = 0; i < f->rets.n; i++) s->nuses[f->rets.v[i]]++;
  if (c->demand) {
    s->demand_of = ZNEWN(x->a, u32, nv);
    for (u32 i = 0; i < f->rets.n; i++)
      if (!is_free(c->demand[i])) s->demand_of[f->rets.v[i]] = i + 1;
  }
  for (u32 i = 0; i < f->nparams; i++) {
    s->free_param[i + 1] = is_free(c->in[i]);
    s->stored[i + 1] = c->stored && c->stored[i];
  }
  s->b = builder_at(x->p, func_new(x->p, f->name, f->where));
  s->b.where = f->where;
  make_params(s, c);
}

// Results as they are returned; the last pack_results of them as one tuple.
static void make_returns(sharding *s, const shard_call_of *c) {
  apply *x = s->x;
  const func_info *f = s->f;
  u32 n = f->rets.n, keep = n - c->pack_results;
  value *ret = NEWN(x->a, value, n + 1);
  for (u32 i = 0; i < n; i++) {
    value sv = f->rets.v[i];
    layout want = c->demand ? c->demand[i] : LAYOUT_FREE;
    if (i + c->nacc >= n) want = s->in[c->acc + i + c->nacc - n];
    if (want.i == LAYOUT_SUMMED.i) want = without_spatial_parts(s->x->p->sp, value_layout(s, s->map[sv]));
    ret[i] = is_free(want) ? as_summed(s, sv) : operand_as(s, sv, want);
    if (s->b.failed) return;
  }
  if (c->pack_results) {
    type *ty = NEWN(x->a, type, c->pack_results);
    for (u32 i = keep; i < n; i++) ty[i - keep] = func_get(x->p, s->b.f)->values.v[ret[i]].ty;
    type t = type_tuple(x->p, ty, c->pack_results);
    ret[keep] =
        emit_res(x->p, s->b.f, emit(&s->b, OP_pack, (attrset){0}, ret + keep, c->pack_results, &t, 1));
    n = keep + 1;
  }
  func_return(x->p, s->b.f, ret, n);
}

static key_words call_key(const apply *x, const shard_call_of *c, const func_info *f) {
  key_words k = {0};
  *vec_push(x->a, &k) = (u64)c->f.i << 32 | (u64)(c->stored != NULL) << 1 | (c->demand != NULL);
  *vec_push(x->a, &k) = (u64)c->own << 32 | c->pack_results;
  group_put_free_axes(x->a, &k, x->p->sp, c->g);
  key_put_bytes(x->a, &k, c->in, sizeof *c->in * f->nparams);
  if (c->stored) key_put_bytes(x->a, &k, c->stored, f->nparams);
  if (c->demand) key_put_bytes(x->a, &k, c->demand, sizeof *c->demand * f->rets.n);
  for (u32 i = 0; i < c->npack; i++) *vec_push(x->a, &k) = (u64)c->pack[i].first << 32 | c->pack[i].count;
  return k;
}

bool shard_function(apply *x, const shard_call_of *c, sharded *out) {
  const func_info *fi = func_get(x->src, c->f);
  const key_words key = call_key(x, c, fi);
  const u32 hit = key_find(&x->variant_keys, &key);
  if (hit) {
    *out = x->variants.v[hit - 1];
    return true;
  }
  sharding s = {.x = x, .src = c->f, .f = fi, .demand = c->demand, .g = c->g};
  prepare(&s, c);
  for (u32 i = 0; i < fi->body.n && !s.b.failed; i++) shard_instr(&s, i);
  if (s.b.failed) return false;
  make_returns(&s, c);
  pack_types(&s, c);
  out->dst = s.b.f, out->in = s.in, out->stored = s.stored + 1;
  *vec_push(x->a, &x->variants) = *out;
  key_add(x->a, &x->variant_keys, &key);
  return !s.b.failed;
}
