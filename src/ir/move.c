// move.c - communication, join and part: which operand layouts may become which result layouts, and what
// results are where that is determined. Not the layouts of compute operators (flow.c).
//
// Idea: the table of collectives says what the named axes are before and after (partial, split, replicated,
// on the root only). All other axes keep their place. So one check serves every collective.
#include "ir/internal.h"

bool is_move(opcode op) { return coll_find(op) || op == OP_copy || op == OP_join || op == OP_part; }

typedef struct {
  prog *p;
  const application *x;
  const char *name;
  const u8 *axis; // over
  u32 naxes, ways;
  i64 root, at;
} move;

static bool fail(const move *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool fail(const move *m, const char *fmt, ...) {
  va_list ap;
  char text[1024];
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  diag(m->p->c, E_LAYOUT, m->x->where, "%s: %s", m->name, text);
  return false;
}

static const char *str(const move *m, type t) { return ir_type_str(m->p, t); }
static const char *axis_str(const move *m, u8 axis) {
  return sym_str(m->p->c, axis_get(m->p->sp, axis)->name);
}
static const char *group_str(const move *m, group g) {
  strbuf b = {.a = ctx_arena(m->p->c)};
  group_print(m->p->sp, g, &b);
  return g.i ? sb_str(&b) : "the function's group";
}

static bool open_move(move *m, prog *p, const application *x) {
  *m = (move){.p = p, .x = x, .name = op_row_of(x->op)->name, .ways = 1};
  attrs at = attrs_get(p, x->at);
  const attr *over = attr_get(at, A_over);
  if (over) m->axis = over->u.axes, m->naxes = over->n;
  m->root = attr_int(at, A_root, 0);
  m->at = attr_int(at, A_at, 0);
  u64 seen = 0;
  for (u32 k = 0; k < m->naxes; k++) {
    u8 axis = m->axis[k];
    if (axis == 0 || axis > axis_count(p->sp)) return fail(m, "axis number %u does not exist", axis);
    if (seen >> axis & 1) return fail(m, "the axis %s is named twice", axis_str(m, axis));
    seen |= (u64)1 << axis;
    bool temporal = axis_get(p->sp, axis)->temporal;
    if (temporal && x->op != OP_join && x->op != OP_part && x->op != OP_shard && x->op != OP_partial)
      return fail(m, "%s lies in time: nothing moves along it", axis_str(m, axis));
    if (!temporal && !group_has_axis(p->sp, x->g, axis))
      return fail(m, "%s has no axis %s", group_str(m, x->g), axis_str(m, axis));
    m->ways *= temporal ? axis_size(p->sp, axis) : group_axis_size(p->sp, x->g, axis);
  }
  return true;
}

// The group fixed at element k, row-major, of the subgroup over the named axes.
static group fixed_at(const move *m, i64 k) {
  group g = m->x->g;
  for (u32 j = m->naxes; j-- > 0;) {
    u32 n = group_axis_size(m->p->sp, m->x->g, m->axis[j]), at = (u32)(k % n);
    const group_info *i = group_get(m->p->sp, m->x->g);
    for (u32 a = 0; a < i->naxes; a++)
      if (i->axis[a].axis == m->axis[j] && i->axis[a].nonly) at = i->axis[a].only[k % n];
    g = group_fix(m->p->sp, g, m->axis[j], at);
    k /= n;
  }
  return g;
}

static layout without(const move *m, layout l) {
  for (u32 k = 0; k < m->naxes; k++) l = layout_without(m->p->sp, l, m->axis[k]);
  return l;
}

static char role_of(const move *m, layout l, u8 axis) {
  if (layout_split_of(m->p->sp, l, axis)) return 'D';
  return layout_part_of(m->p->sp, l, axis) != RED_NONE ? 'V' : 'R';
}

static bool on_group(const move *m, type t, group want, const char *what, u32 k) {
  if (type_get(m->p, t)->g.i == want.i) return true;
  return fail(m, "%s %u is %s, it must be on %s", what, k + 1, str(m, t), group_str(m, want));
}

static bool same_extents(const move *m, type a, type b, u32 k) {
  const type_info *x = type_get(m->p, a), *y = type_get(m->p, b);
  if (!x->tuple && !y->tuple && shape_same(&x->s, &y->s)) return true;
  return fail(m, "operand %u is %s, result %u is %s: not the same tensor", k + 1, str(m, a), k + 1,
              str(m, b));
}

// ---- collectives ------------------------------------------------------------------------------------
static const char *role_str(char now) {
  switch (now) {
  case 'V': return "partial";
  case 'D': return "split";
  default: return "replicated";
  }
}

// The axes of a rooted end are fixed by its group, so its layout cannot name them.
static bool roles_are(const move *m, type t, char want, const char *what, u32 k) {
  layout l = type_get(m->p, t)->lay;
  for (u32 j = 0; j < m->naxes; j++) {
    char now = role_of(m, l, m->axis[j]);
    if (want == 'A' || (want == 'O' ? now == 'R' : want == '*' ? now != 'V' : now == want)) continue;
    return fail(m, "%s %u is %s, it must be %s over %s", what, k + 1, str(m, t),
                want == '*' ? "split or replicated" : role_str(want), axis_str(m, m->axis[j]));
  }
  return true;
}

// An exchange adds over all of its axes, or over none.
static bool adds_alike(const move *m, layout l) {
  for (u32 j = 1; j < m->naxes; j++)
    if (layout_part_of(m->p->sp, l, m->axis[j]) != layout_part_of(m->p->sp, l, m->axis[0]))
      return fail(
          m, "over %s and %s at once: the operand must be partial over both, by one reduction, or over none",
          axis_str(m, m->axis[0]), axis_str(m, m->axis[j]));
  return true;
}

static bool same_parts(const move *m, layout a, layout b) { // all partial axes, and temporal splits
  const layout_info *x = layout_get(m->p->sp, a), *y = layout_get(m->p->sp, b);
  if (x->npart != y->npart) return false;
  for (u32 k = 0; k < x->npart; k++)
    if (layout_part_of(m->p->sp, b, x->part[k].axis) != (reduction)x->part[k].red) return false;
  for (int side = 0; side < 2; side++, x = y, b = a)
    for (u32 k = 0; k < x->nsplit; k++) {
      const lay_split *s = &x->split[k], *t = layout_split_of(m->p->sp, b, s->axis);
      if (axis_get(m->p->sp, s->axis)->temporal &&
          (!t || t->dim != s->dim || t->stride != s->stride || t->table != s->table))
        return false;
    }
  return true;
}

static bool check_send(const move *m, type from, type to) {
  const type_info *a = type_get(m->p, from), *b = type_get(m->p, to);
  if (!same_extents(m, from, to, 0) || !on_group(m, from, m->x->g, "operand", 0)) return false;
  if (a->g.i == b->g.i) return fail(m, "from %s to itself", group_str(m, a->g));
  if (!same_parts(m, a->lay, b->lay))
    return fail(m, "operand %s, result %s: partial sums and coordinates in time must stay", str(m, from),
                str(m, to));
  const layout_info *i = layout_get(m->p->sp, a->lay);
  for (u32 k = 0; k < i->npart; k++)
    if (group_axis_size(m->p->sp, a->g, i->part[k].axis) != group_axis_size(m->p->sp, b->g, i->part[k].axis))
      return fail(m, "%s has another size on %s: partial sums must stay", axis_str(m, i->part[k].axis),
                  str(m, to));
  return true;
}

static bool check_coll(const move *m, const coll_row *row, type from, type to, u32 k) {
  const type_info *a = type_get(m->p, from), *b = type_get(m->p, to);
  bool rooted = row->in == 'O' || row->out == 'O';
  if (!same_extents(m, from, to, k)) return false;
  if (rooted && !m->x->g.i)
    return fail(m, "a root needs a group that is named: write it behind the operands");
  if (rooted && (m->root < 0 || m->root >= m->ways))
    return fail(m, "root %lld of %u", (long long)m->root, m->ways);
  group root = rooted ? fixed_at(m, m->root) : m->x->g;
  if (!on_group(m, from, row->in == 'O' ? root : m->x->g, "operand", k)) return false;
  if (!on_group(m, to, row->out == 'O' ? root : m->x->g, "result", k)) return false;
  if (!roles_are(m, from, row->in, "operand", k) || !roles_are(m, to, row->out, "result", k)) return false;
  if (row->op == OP_permute && m->naxes == 0) { // any axis may move
    if (!same_parts(m, a->lay, b->lay))
      return fail(m, "%s to %s: partial sums must stay", str(m, from), str(m, to));
    return true;
  }
  if (row->op == OP_exchange && !adds_alike(m, a->lay)) return false;
  if (without(m, a->lay).i != without(m, b->lay).i)
    return fail(m, "%s to %s: only the named axes may change", str(m, from), str(m, to));
  if (row->op == OP_all_to_all && a->lay.i == b->lay.i)
    return fail(m, "nothing moves: both are %s", str(m, from));
  return true;
}

// ---- join and part ----------------------------------------------------------------------------------
static bool all_temporal(const move *m, bool temporal) {
  for (u32 k = 0; k < m->naxes; k++)
    if (axis_get(m->p->sp, m->axis[k])->temporal != temporal) return false;
  return m->naxes > 0;
}

static bool check_join_space(const move *m, const type *opd, type to) {
  const type_info *b = type_get(m->p, to);
  if (!m->x->g.i) return fail(m, "joining groups needs a group that is named: write it behind the operands");
  if (m->x->nopd != m->ways) return fail(m, "%u operands, the axes have %u coordinates", m->x->nopd, m->ways);
  if (!on_group(m, to, m->x->g, "result", 0)) return false;
  for (u32 k = 0; k < m->x->nopd; k++) {
    if (!same_extents(m, opd[k], to, k) || !on_group(m, opd[k], fixed_at(m, k), "operand", k)) return false;
    if (type_get(m->p, opd[k])->lay.i != without(m, b->lay).i)
      return fail(m, "operand %u is %s, which does not become %s", k + 1, str(m, opd[k]), str(m, to));
  }
  char now = role_of(m, b->lay, m->axis[0]);
  if (now == 'D' || !roles_are(m, to, now, "result", 0))
    return now == 'D' ? fail(m, "result %s: values joined in space are replicated or partial", str(m, to))
                      : false;
  return true;
}

static bool check_join_time(const move *m, const type *opd, type to) {
  layout first = type_get(m->p, opd[0])->lay;
  char now = role_of(m, first, m->axis[0]);
  if (now == 'R')
    return fail(m, "operand 1 is %s: neither split nor partial over %s", str(m, opd[0]),
                axis_str(m, m->axis[0]));
  if (!roles_are(m, opd[0], now, "operand", 0)) return false;
  if (now == 'D' ? m->x->nopd != m->ways : m->x->nopd > m->ways)
    return fail(m, "%u operands, the axes have %u coordinates", m->x->nopd, m->ways);
  if (!on_group(m, to, m->x->g, "result", 0)) return false;
  for (u32 k = 0; k < m->x->nopd; k++) {
    if (!same_extents(m, opd[k], to, k) || !on_group(m, opd[k], m->x->g, "operand", k)) return false;
    if (type_get(m->p, opd[k])->lay.i != first.i)
      return fail(m, "operand %u is %s, operand 1 is %s", k + 1, str(m, opd[k]), str(m, opd[0]));
  }
  const layout is = type_get(m->p, to)->lay;
  if (is.i == without(m, first).i || (now == 'V' && is.i == first.i)) return true;
  return fail(m, "operands are %s, the result %s", str(m, opd[0]), str(m, to));
}

static bool check_part(const move *m, type from, type to) {
  const type_info *a = type_get(m->p, from), *b = type_get(m->p, to);
  if (m->naxes != 1) return fail(m, "over %u axes, one is needed", m->naxes);
  if (m->at < 0 || m->at >= m->ways) return fail(m, "coordinate %lld of %u", (long long)m->at, m->ways);
  if (!same_extents(m, from, to, 0) || !on_group(m, from, m->x->g, "operand", 0)) return false;
  if (all_temporal(m, false)) {
    if (!m->x->g.i)
      return fail(m, "a place on an axis needs a group that is named: write it behind the operands");
    if (!on_group(m, to, fixed_at(m, m->at), "result", 0)) return false;
    if (!roles_are(m, from, 'R', "operand", 0)) return false;
    return a->lay.i == b->lay.i || fail(m, "operand %s, result %s", str(m, from), str(m, to));
  }
  if (!on_group(m, to, m->x->g, "result", 0)) return false;
  if (a->lay.i == b->lay.i && role_of(m, a->lay, m->axis[0]) != 'R') return true;
  if (!roles_are(m, to, 'D', "result", 0) || !roles_are(m, from, 'R', "operand", 0)) return false;
  if (without(m, b->lay).i == a->lay.i) return true;
  return fail(m, "%s to %s: only %s may change", str(m, from), str(m, to), axis_str(m, m->axis[0]));
}

bool move_check(prog *p, const application *x, const type *opd, const type *res, u32 nres) {
  move m;
  const coll_row *row = coll_find(x->op);
  if (!open_move(&m, p, x)) return false;
  if (x->op == OP_join)
    return all_temporal(&m, true)    ? check_join_time(&m, opd, res[0])
           : all_temporal(&m, false) ? check_join_space(&m, opd, res[0])
                                     : fail(&m, "over axes of space and of time at once");
  if (x->op == OP_part) return check_part(&m, opd[0], res[0]);
  if (x->op == OP_send) return check_send(&m, opd[0], res[0]);
  for (u32 k = 0; k < nres; k++) {
    if (row ? !check_coll(&m, row, opd[k], res[k], k)
            : !on_group(&m, opd[k], x->g, "operand", k) || !on_group(&m, res[k], x->g, "result", k))
      return false;
    if (!row && opd[k].i != res[k].i)
      return fail(&m, "operand %s, result %s", str(&m, opd[k]), str(&m, res[k]));
  }
  return true;
}

// ---- results ----------------------------------------------------------------------------------------
static bool determined(const move *m, type from, type *to) {
  const coll_row *row = coll_find(m->x->op);
  const type_info *a = type_get(m->p, from);
  layout l = a->lay;
  group g = m->x->g;
  if (m->x->op == OP_copy) {
  } else if (m->x->op == OP_join) {
    if (!all_temporal(m, true)) return false;
    l = without(m, l);
  } else if (m->x->op == OP_part) {
    if (m->naxes != 1 || m->at < 0 || m->at >= m->ways) return false;
    if (all_temporal(m, false))
      g = fixed_at(m, m->at);
    else if (role_of(m, l, m->axis[0]) == 'R')
      return false;
  } else if (row->out == 'R' || row->out == 'O') {
    l = without(m, l);
    if (row->out == 'O' && (!g.i || m->root < 0 || m->root >= m->ways)) return false;
    if (row->out == 'O') g = fixed_at(m, m->root);
  } else if (row->out == 'V') {
    if (a->lay.i != without(m, l).i) return false;
    for (u32 k = 0; k < m->naxes; k++) l = layout_with_part(m->p->sp, l, m->axis[k], RED_SUM);
  } else {
    return false;
  }
  *to = type_with(m->p, from, l, g);
  return true;
}

bool move_result(prog *p, const application *x, const type *opd, type *res, u32 nres) {
  move m;
  if (!open_move(&m, p, x)) return false;
  u32 want = x->op == OP_join ? 1 : x->nopd;
  if (nres != want || want > x->nopd) {
    diag(p->c, E_ARITY, x->where, "%s: %u results named, it has %u", m.name, nres, want);
    return false;
  }
  for (u32 k = 0; k < nres; k++)
    if (type_get(p, opd[k])->tuple || !determined(&m, opd[k], &res[k])) {
      diag(p->c, E_SYNTAX, x->where, "the type of what %s gives must be written", m.name);
      diag_hint(p->c, "behind the instruction, for example: %s", str(&m, opd[k]));
      return false;
    }
  return true;
}
