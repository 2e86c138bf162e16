// move.c - messages between ranks: sends from one group to another, and what within a group is no collective.
#include "export/internal.h"

// ---- who sends to whom ---------------------------------------------------------------------------------

// The axis on whose coordinate alone two groups of one mesh differ. 0: there is none.
static u8 differ_on(const py *w, group from, group to) {
  const group_info *x = group_get(w->p->sp, from), *y = group_get(w->p->sp, to);
  u8 axis = 0;
  if (!from.i || !to.i || x->m.i != y->m.i) return 0;
  for (u32 k = 0; k < x->naxes; k++) {
    if (x->axis[k].at == -2 || y->axis[k].at == -2) return 0;
    if (x->axis[k].at == y->axis[k].at) continue;
    if (axis || x->axis[k].at < 0 || y->axis[k].at < 0) return 0;
    axis = x->axis[k].axis;
  }
  return axis;
}

// The rank at the other end, seen from one of group `own`: "PP.peer(1)", or by a table.
static const char *peer(py *w, group own, group other) {
  strbuf b = {.a = w->a};
  const u8 axis = differ_on(w, own, other);
  if (axis) {
    const group_info *y = group_get(w->p->sp, other);
    for (u32 k = 0; k < y->naxes; k++)
      if (y->axis[k].axis == axis) sb_fmt(&b, "%s.peer(%d)", py_axes_of(w, &axis, 1), y->axis[k].at);
    return sb_str(&b);
  }
  sb_char(&b, '{');
  for (u32 k = 0; k < group_size(w->p->sp, own); k++)
    sb_fmt(&b, "%s%u: %u", k ? ", " : "", group_rank(w->p->sp, own, k), group_rank(w->p->sp, other, k));
  sb_put(&b, "}[RANK]");
  return sb_str(&b);
}

// Sends of a stream have a process group of their own; those of the compute stream one for each direction.
static const char *channel_of(py *w, const instr *i) {
  u8 *at = &w->channel_of[2 * i->strm + (i->flags & INSTR_BACKWARD ? 1 : 0)];
  if (*at) return w->channels.v[*at - 1];
  strbuf b = {.a = w->a};
  const char *like = i->strm ? sym_str(w->c, w->p->streams.v[i->strm]) : "sends";
  sb_put(&b, like);
  if (!i->strm) sb_put(&b, i->flags & INSTR_BACKWARD ? "_backward" : "_forward");
  for (char *s = b.v; *s; s++) *s = *s >= 'a' && *s <= 'z' ? (char)(*s - 'a' + 'A') : *s;
  *vec_push(w->a, &w->channels) = py_name(w, &w->global, sb_str(&b));
  *at = (u8)w->channels.n;
  return w->channels.v[w->channels.n - 1];
}

// ---- pieces of both ends, as Python works them out -----------------------------------------------------
// "holdings(M, (32, 16), range(0, 4), dp=(0, 8))": of the tensor, or of its piece at the point in time at hand.
static bool put_holdings(py_scope *s, const type_info *t, const char *ranks, strbuf *b) {
  py *w = s->w;
  const space *sp = w->p->sp;
  const layout_info *l = layout_get(sp, t->lay);
  i64 dim[DIMS_MAX];
  u8 of = 0;
  memcpy(dim, t->s.dim, sizeof dim);
  for (u32 k = 0; k < l->nsplit; k++) {
    if (axis_get(sp, l->split[k].axis)->temporal)
      dim[l->split[k].dim] /= axis_size(sp, l->split[k].axis);
    else
      of = l->split[k].axis;
  }
  const char *grid = of ? py_mesh_of(w, of) : w->meshes[1];
  sb_fmt(b, "holdings(%s, ", grid);
  py_ints(b, dim, t->s.nd, false);
  sb_fmt(b, ", %s", ranks);
  for (u32 k = 0; k < l->nsplit; k++) {
    const lay_split *x = &l->split[k];
    i64 stride = x->stride;
    if (axis_get(sp, x->axis)->temporal) continue;
    if (w->mesh_of[x->axis].i != w->mesh_of[of].i)
      return py_refuse(w, (loc){0}, "a tensor that is split over axes of two meshes cannot be exported");
    for (u32 j = 0; j < l->nsplit; j++)
      if (l->split[j].dim == x->dim && axis_get(sp, l->split[j].axis)->temporal &&
          l->split[j].stride < x->stride)
        stride /= axis_size(sp, l->split[j].axis);
    sb_fmt(b, ", %s=(%u, ", sym_str(w->c, axis_get(sp, x->axis)->name), x->dim);
    py_stride(w, x, stride, b);
    sb_char(b, ')');
  }
  sb_char(b, ')');
  return true;
}

static const char *ranks_of(py *w, group g) {
  strbuf b = {.a = w->a};
  const u32 n = group_size(w->p->sp, g);
  bool regular = true;
  for (u32 k = 1; k < n; k++)
    regular = regular && group_rank(w->p->sp, g, k) == group_rank(w->p->sp, g, 0) + k;
  if (regular) {
    sb_fmt(&b, "range(%u, %u)", group_rank(w->p->sp, g, 0), group_rank(w->p->sp, g, 0) + n);
    return sb_str(&b);
  }
  sb_char(&b, '[');
  for (u32 k = 0; k < n; k++) sb_fmt(&b, "%s%u", k ? ", " : "", group_rank(w->p->sp, g, k));
  sb_char(&b, ']');
  return sb_str(&b);
}

static bool is_partial(const py *w, const type_info *t) {
  const layout_info *l = layout_get(w->p->sp, t->lay);
  for (u32 k = 0; k < l->npart; k++)
    if (!axis_get(w->p->sp, l->part[k].axis)->temporal) return true;
  return false;
}

static void put_exchange(py_scope *s, const instr *i, const char *x, const char *from, const char *to,
                         const char *channel) {
  py *w = s->w;
  const type_info *in = val_type(w->p, s->f, opd_of(s->f, i, 0)), *out = val_type(w->p, s->f, i->res);
  strbuf have = {.a = w->a}, want = have, last = have;
  const char *t = py_dtype(w, in->s.t, i->where);
  if (!t || !py_local(w, in, i->where) || !py_local(w, out, i->where)) return;
  if (!put_holdings(s, in, from, &have) || !put_holdings(s, out, to, &want)) return;
  sb_fmt(&last, "%s", t);
  const char *item[] = {x, sb_str(&have), sb_str(&want), sb_str(&last), channel},
             *left[] = {py_value(s, i->res)};
  py_assign(w, s->indent, left, 1, "exchange(", item, channel ? 5 : 4, ")");
}

void py_exchange(py_scope *s, const instr *i) {
  py *w = s->w;
  const attr *over = attr_get(attrs_get(w->p, i->at), A_over);
  const type_info *in = val_type(w->p, s->f, opd_of(s->f, i, 0)), *out = val_type(w->p, s->f, i->res);
  u8 axes[MESH_AXES], order[MESH_AXES];
  u32 n = 0;
  for (u32 k = 0; over && k < over->n; k++) axes[n++] = over->u.axes[k];
  for (int side = 0; !over && side < 2; side++) { // over all that split either
    const layout_info *l = layout_get(w->p->sp, (side ? out : in)->lay);
    for (u32 k = 0; k < l->nsplit; k++) {
      bool known = axis_get(w->p->sp, l->split[k].axis)->temporal;
      for (u32 j = 0; j < n && !known; j++) known = axes[j] == l->split[k].axis;
      if (!known && n < MESH_AXES) axes[n++] = l->split[k].axis;
    }
  }
  n = py_order(w, NULL, axes, n, order);
  const char *x = py_value(s, opd_of(s->f, i, 0));
  if (i->nres != 1) {
    py_refuse(w, i->where, "%s of several tensors between these layouts cannot be exported",
              op_row_of((opcode)i->op)->name);
    return;
  }
  if (is_partial(w, in) && i->op == OP_exchange) {
    py_refuse(w, i->where, "summands that are sent one by one cannot be exported");
    diag_hint(w->c, "materialise=intra sums by collectives");
    return;
  }
  strbuf ranks = {.a = w->a};
  if (n) sb_fmt(&ranks, "%s.ranks", py_axes_of(w, order, n));
  if (!n)
    py_put(w, s->indent, "%s = %s", py_value(s, i->res), x);
  else
    put_exchange(s, i, x, sb_str(&ranks), sb_str(&ranks), NULL);
}

// ---- sends ---------------------------------------------------------------------------------------------
static bool to_same_member(const py *w, const type_info *in, const type_info *out) {
  if (in->lay.i != out->lay.i || group_size(w->p->sp, in->g) != group_size(w->p->sp, out->g)) return false;
  const group_info *x = group_get(w->p->sp, in->g), *y = group_get(w->p->sp, out->g);
  bool alike = x->m.i == y->m.i || (!is_partial(w, in) && !layout_get(w->p->sp, in->lay)->nsplit);
  for (u32 k = 0; alike && x->m.i == y->m.i && k < x->naxes; k++)
    alike = (x->axis[k].at < 0) == (y->axis[k].at < 0);
  return alike;
}

void py_send(py_scope *s, const instr *i) {
  py *w = s->w;
  const value v = opd_of(s->f, i, 0);
  const type_info *in = val_type(w->p, s->f, v), *out = val_type(w->p, s->f, i->res);
  const bool source = py_present(w, val(s->f, v)->ty, s->rank),
             target = py_present(w, val(s->f, i->res)->ty, s->rank);
  if (in->tuple) {
    py_refuse(w, i->where, "a send of a tuple cannot be exported");
    return;
  }
  const char *t = py_dtype(w, in->s.t, i->where), *channel = channel_of(w, i);
  if (!t || !py_local(w, out, i->where) || !py_local(w, in, i->where)) return;
  if (!to_same_member(w, in, out)) {
    if (is_partial(w, in)) {
      py_refuse(w, i->where, "a send of partial sums to ranks that are split otherwise cannot be exported");
      return;
    }
    put_exchange(s, i, source ? py_value(s, v) : "None", ranks_of(w, in->g), ranks_of(w, out->g), channel);
    return;
  }
  if (in->g.i == out->g.i) {
    py_put(w, s->indent, "%s = %s", py_value(s, i->res), py_value(s, v));
    return;
  }
  if (source) py_put(w, s->indent, "send(%s, %s, %s)", py_value(s, v), peer(w, in->g, out->g), channel);
  if (!target) return;
  strbuf b = {.a = w->a};
  py_extents(w, out, &b);
  py_put(w, s->indent, "%s = receive(%s, %s, %s, %s)", py_value(s, i->res), sb_str(&b), t,
         peer(w, out->g, in->g), channel);
}
