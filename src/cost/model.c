// model.c - the cost model: costs of instructions on groups, and the cache of instructions.
//
// Idea: two caches. An instruction of a program is known by ids (operator, attributes, group, types), which
// is a short comparison; ids mean something within one program only. Behind it, events are known by content,
// for all programs of the cost model. A miss of the first often hits the second: a plan that differs in the
// depth of its pipeline has the same products.
#include "cost/internal.h"
#include <stdatomic.h>

static const cost_formulas *const models[] = {&cost_heddle, &cost_distir};

const char *cost_model_name(u32 i) { return i < COUNT_OF(models) ? models[i]->name : NULL; }

// ---- the cost model ----------------------------------------------------------------------------------

cost_model *cost_model_new(ctx *c, arena *a, const machine *m, const cost_opts *opts) {
  const char *name = opts && opts->model ? opts->model : "heddle";
  u32 i = 0;
  while (i < COUNT_OF(models) && strcmp(models[i]->name, name)) i++;
  if (i == COUNT_OF(models)) {
    diag(c, E_USAGE, (loc){0}, "unknown cost model '%s'", name);
    strbuf names = {.a = a};
    for (i = 0; i < COUNT_OF(models); i++) sb_fmt(&names, "%s%s", i ? " or " : "", models[i]->name);
    diag_hint(c, "--costs %s", sb_str(&names));
    return NULL;
  }
  static atomic_ullong last;
  cost_model *k = NEW(a, cost_model);
  k->own = atomic_fetch_add(&last, 1) + 1;
  k->c = c;
  k->a = a;
  k->m = m;
  k->formulas = models[i];
  if (opts) k->opts = *opts;
  k->distir = opts && opts->distir ? *opts->distir : m->distir;
  find_period(k);
  return k;
}

u64 cost_model_serial(const cost_model *k) { return k->own; }
const machine *cost_model_machine(const cost_model *k) { return k->m; }
const cost_opts *cost_model_opts(const cost_model *k) { return &k->opts; }
u32 cost_model_events(const cost_model *k) { return k->events.n; }

// What is kept of instructions is about one program. It is known by its serial number: another one may lie
// where one that is gone lay.
static void about(cost_model *k, const prog *p) {
  if (k->serial == p->serial) return;
  if (k->instr_map.n) memset(k->instr_map.hash, 0, sizeof *k->instr_map.hash * k->instr_map.cap);
  if (k->subgroups_map.n)
    memset(k->subgroups_map.hash, 0, sizeof *k->subgroups_map.hash * k->subgroups_map.cap);
  k->instr_map.n = k->subgroups_map.n = 0;
  k->instrs.n = k->values.n = k->words.n = k->subgroups.n = k->ids.n = k->kinds.n = k->host_ranks.n = 0;
  k->p = p, k->serial = p->serial;
}

double cost_top_flops(const cost_model *k, const device_kind *dev, dtype t) {
  return k->formulas->top_flops(k, dev, t);
}
double cost_top_bw(const cost_model *k, const device_kind *dev) { return k->formulas->top_bw(k, dev); }
i64 cost_launch_ps(const cost_model *k, const device_kind *dev) { return k->formulas->launch_ps(k, dev); }

// ---- instructions ------------------------------------------------------------------------------------

const coords *coords_at(const site *s, group g, u32 member, bool uneven, coords *room) {
  if (!uneven) return NULL;
  coords_of(s->p->sp, g, member, &s->p->points.v[s->i->coord], room);
  return room;
}

static i64 local_bytes(const site *s, const type_info *t, const coords *c) {
  const shape sh = site_local(s, t, c);
  return shape_bytes(&sh);
}

// A server has as many messages as there are other members, on links that the other servers use as well. All members
// are servers at once: each exchanges with all others what n times as many bytes are in an all-to-all.
static bool is_served(const site *s) {
  const opcode op = s->i->op;
  return (op == OP_reduce || op == OP_broadcast) && attr_int(attrs_get(s->p, s->i->at), A_server, 0);
}

static opcode priced_as(const site *s) { return is_served(s) ? OP_all_to_all : s->i->op; }

static bool counts_results(opcode op) {
  return op == OP_all_gather || op == OP_broadcast || op == OP_scatter_from;
}

// What the member is sent in an exchange by the n - 1 others: of a sum all summands of its piece but its own.
static i64 exchanged_bytes(const site *s, u32 member, u32 n) {
  const type_info *from = site_operand(s, 0), *to = site_result(s, 0);
  coords c;
  coords_of(s->p->sp, s->g, member, &s->p->points.v[s->i->coord], &c);
  const i64 piece = local_bytes(s, to, &c);
  const attr *over = attr_get(attrs_get(s->p, s->i->at), A_over);
  if (layout_part_of(s->p->sp, from->lay, over->u.axes[0]) != RED_NONE) return piece * (n - 1);
  const i64 has = layout_common_elems(s->p->sp, to->s.nd, to->s.dim, from->lay, &c, to->lay, &c);
  return piece - has * dtype_bytes(to->s.t);
}

// What cost_comm calls `bytes`, of one member of a subgroup of n.
static i64 comm_bytes(const site *s, const coords *c, u32 n) {
  const opcode op = s->i->op;
  const bool of_result = counts_results(op);
  const u32 count = of_result ? s->i->nres : instr_nopd(s->f, s->i);
  i64 sum = 0;
  for (u32 j = 0; j < count; j++)
    sum += local_bytes(s, of_result ? site_result(s, j) : site_operand(s, j), c);
  if (op == OP_halo_exchange) sum = MAX(local_bytes(s, site_result(s, 0), c) - sum, 0);
  return op == OP_gather_to || op == OP_scatter_from || is_served(s) ? sum * n : sum;
}

u32 fold(i64 *ps, u32 n) {
  for (u32 i = 1; i < n; i++)
    if (ps[i] != ps[0]) return n;
  return n ? 1 : 0;
}

static const type_info *site_value(const site *s, u32 j, u32 nopd) {
  return j < nopd ? site_operand(s, j) : site_result(s, j - nopd);
}

// Is a value first..end of the instruction in uneven pieces?
static bool uneven_values(const site *s, u32 first, u32 end) {
  const u32 nopd = instr_nopd(s->f, s->i);
  for (u32 j = first; j < end; j++) {
    const type_info *t = site_value(s, j, nopd);
    if (!t->tuple && !layout_is_even(s->p->sp, t->lay)) return true;
  }
  return false;
}

// Of each member, one not behind it whose pieces of the values first..end have the same extents; until the next
// subgroups are looked for. NULL: all are alike.
static const u32 *alike(cost_model *k, const site *s, u32 first, u32 end) {
  const space *sp = s->p->sp;
  const u32 nopd = instr_nopd(s->f, s->i);
  u8 axes[MESH_AXES];
  const u32 *same[MESH_AXES];
  u32 naxes = 0;
  for (u32 j = first; j < end; j++) {
    const type_info *t = site_value(s, j, nopd);
    if (!t->tuple) naxes = layout_uneven_axes(sp, t->lay, s->g, axes, naxes);
  }
  if (!naxes) return NULL;
  vec_reserve(k->a, &k->ranks, group_get(sp, s->g)->nranks);
  const arena_mark_t mark = arena_mark(k->a);
  for (u32 i = 0; i < naxes; i++) {
    u32 *own = ZNEWN(k->a, u32, group_axis_size(sp, s->g, axes[i]));
    for (u32 j = first; j < end; j++) {
      const type_info *t = site_value(s, j, nopd);
      if (!t->tuple) layout_same_sizes(sp, t->lay, s->g, axes[i], own);
    }
    same[i] = own;
  }
  group_likes(sp, s->g, axes, naxes, same, k->ranks.v);
  arena_release(k->a, mark);
  return k->ranks.v;
}

static u32 compute_costs(cost_model *k, const site *s, bool uneven, i64 *ps) {
  const u16 kind = group_kind(k, s->g, s->i->where);
  const group_info *gi = group_get(s->p->sp, s->g);
  coords c;
  cost_info cost;
  if (!kind) return 0;
  const u32 *like = uneven ? alike(k, s, 0, instr_nopd(s->f, s->i) + s->i->nres) : NULL;
  const u32 n = like || kind == KINDS_MIXED ? gi->nranks : 1, nkinds = k->m->nkinds;
  // Members of one kind that are alike cost the same. first[like * nkinds + kind]: that member, from 1
  vec_reserve(k->a, &k->first, (like ? n : 1) * nkinds);
  u32 *first = k->first.v;
  memset(first, 0, sizeof *first * (like ? n : 1) * nkinds);
  for (u32 m = 0; m < n; m++) {
    const u16 own = kind == KINDS_MIXED ? k->m->dev[gi->ranks[m]].kind : (u16)(kind - 1);
    u32 *same = &first[(like ? like[m] : 0) * nkinds + own];
    if (*same) {
      ps[m] = ps[*same - 1];
      continue;
    }
    if (!compute_event(k, s, coords_at(s, s->g, m, uneven, &c), own, &cost, NULL)) return 0;
    ps[m] = cost.ps, *same = m + 1;
  }
  return fold(ps, n);
}

u32 cost_axes(const prog *p, const instr *i, group g, u8 *axes) {
  const attr *over = attr_get(attrs_get(p, i->at), A_over);
  const group_info *gi = group_get(p->sp, g);
  u32 n = 0;
  if (over) {
    assert(over->n <= MESH_AXES);
    memcpy(axes, over->u.axes, over->n);
    return over->n;
  }
  for (u32 k = 0; k < gi->naxes; k++)
    if (gi->axis[k].at < 0) axes[n++] = gi->axis[k].axis;
  return n;
}

// k->bytes: of every subgroup, those of its member with the most; of even pieces only that of member 0.
// ps: room. Are they uneven, on the side that counts?
static bool subgroup_bytes(cost_model *k, const site *s, const seen_subgroups *subgroups, bool uneven,
                           i64 *ps) {
  const u32 nopd = instr_nopd(s->f, s->i), nval = nopd + s->i->nres;
  const bool both = s->i->op == OP_halo_exchange, results = counts_results(s->i->op);
  const u32 begin = results ? nopd : 0, end = results || both ? nval : nopd;
  coords c;
  uneven = uneven && uneven_values(s, begin, end);
  vec_reserve(k->a, &k->bytes, subgroups->nsub);
  memset(k->bytes.v, 0, sizeof *k->bytes.v * subgroups->nsub);
  const u32 *like = uneven ? alike(k, s, begin, end) : NULL;
  const bool few = s->i->op == OP_exchange; // members of one subgroup differ in what they have already
  const u32 first = few && !uneven ? sub_of_member(k, subgroups, 0) : 0;
  for (u32 m = 0; m < (uneven || few ? group_get(s->p->sp, s->g)->nranks : 1); m++) {
    if (few && !uneven && sub_of_member(k, subgroups, m) != first) continue;
    const u32 same = like ? like[m] : 0;
    ps[m] = few        ? exchanged_bytes(s, m, subgroups->size)
            : same < m ? ps[same]
                       : comm_bytes(s, coords_at(s, s->g, m, uneven, &c), subgroups->size);
    i64 *most = &k->bytes.v[sub_of_member(k, subgroups, m)];
    *most = MAX(*most, ps[m]);
  }
  return uneven;
}

static u32 collective_costs(cost_model *k, const site *s, bool uneven, i64 *ps) {
  u8 axes[MESH_AXES];
  const u32 naxes = cost_axes(s->p, s->i, s->g, axes);
  const seen_subgroups *subgroups = subgroups_over(k, s->g, axes, naxes, s->i->where);
  if (!subgroups) return 0;
  uneven = subgroup_bytes(k, s, subgroups, uneven, ps);
  const dtype t = instr_nopd(s->f, s->i) ? site_operand(s, 0)->s.t : DT_NONE;
  const opcode op = priced_as(s);
  const bool differ = uneven || !subgroups->uniform;
  const u32 n = differ ? group_get(s->p->sp, s->g)->nranks : 1, first = sub_of_member(k, subgroups, 0);
  const i64 even = k->bytes.v[first];
  cost_info cost = {0};
  i64 bytes = -1; // of the latest subgroup, and its placement
  u32 placement = 0;
  for (u32 sub = differ ? 0 : first; sub < (differ ? subgroups->nsub : first + 1); sub++) {
    const i64 own = uneven ? k->bytes.v[sub] : even;
    const u32 at = placement_of_subgroup(k, subgroups, sub);
    if ((own != bytes || at != placement) &&
        !comm_event(k, ASKED_BY_PLAN, op, t, own, at, s->i->where, &cost, NULL))
      return 0;
    bytes = own, placement = at;
    k->bytes.v[sub] = cost.ps; // from here on
  }
  for (u32 m = 0; m < n; m++) ps[m] = k->bytes.v[sub_of_member(k, subgroups, m)];
  return fold(ps, n);
}

// What a member of the smaller of two groups of nf and nt ranks sends or receives in all, where every target is to hold
// `to` bytes: who reads is sent its piece, however much of the tensor the sender has.
static i64 send_bytes(u32 nf, u32 nt, i64 to) { return MAX(to, (i64)ceil_div(to * nt, nf)); }

static group send_target(const site *s) {
  const type_info *r = site_result(s, 0);
  return group_bind(r->g, s->g);
}

// What member m of the source sends: the pieces of its targets, or its part of the piece of one, which waits for all of it.
static i64 sent_bytes(const site *s, u32 m, bool uneven) {
  const group to = send_target(s);
  const u32 nf = group_get(s->p->sp, s->g)->nranks, nt = group_get(s->p->sp, to)->nranks;
  const type_info *t = site_result(s, 0);
  if (!uneven) return send_bytes(nf, nt, local_bytes(s, t, NULL));
  coords c;
  i64 bytes = 0;
  u32 first = (u32)((u64)m * nt / nf), end = first + 1;
  if (nf < nt) first = (u32)ceil_div((u64)m * nt, nf), end = (u32)ceil_div((u64)(m + 1) * nt, nf);
  for (u32 j = first; j < end; j++) bytes += local_bytes(s, t, coords_at(s, to, j, true, &c));
  return bytes;
}

static u32 send_costs(cost_model *k, const site *s, bool uneven, i64 *ps) {
  const seen_subgroups *subgroups = transfers(k, s->g, send_target(s), s->i->where);
  cost_info cost;
  if (!subgroups) return 0;
  const u32 n = uneven || !subgroups->uniform ? group_get(s->p->sp, s->g)->nranks : 1;
  const dtype t = site_operand(s, 0)->s.t;
  i64 bytes = 0;
  for (u32 m = 0; m < n; m++) {
    if (uneven || !m) bytes = sent_bytes(s, m, uneven);
    if (!comm_event(k, ASKED_BY_PLAN, OP_send, t, bytes, placement_of_subgroup(k, subgroups, m), s->i->where,
                    &cost, NULL))
      return 0;
    ps[m] = cost.ps;
  }
  return fold(ps, n);
}

// Between a device and host memory: of the node, so not an event of the device's kind.
static u32 copy_costs(cost_model *k, const site *s, bool uneven, i64 *ps) {
  const group_info *gi = group_get(s->p->sp, s->g);
  if (!group_kind(k, s->g, s->i->where)) return 0;
  coords c;
  for (u32 m = 0; m < gi->nranks; m++) {
    const node_kind *nk = &k->m->node_kind[k->m->node[k->m->dev[gi->ranks[m]].node]];
    const machine_link *host = &nk->host;
    if (host->shape == LINK_NONE) {
      diag(k->c, E_LINK, s->i->where, "copy: the machine has no link between a device and its host");
      diag_hint(k->c, "add `host: 32 GB/s` to its nodes, or `pcie=32GB/s` in one line");
      return 0;
    }
    double bytes = 0;
    for (u32 j = 0; j < s->i->nres; j++)
      bytes += (double)local_bytes(s, site_operand(s, j), coords_at(s, s->g, m, uneven, &c));
    ps[m] =
        host->start_ps + host->step_ps + round_ps(bytes / (host->bw / nk->host_shared * host->eff) * 1e12);
  }
  return fold(ps, gi->nranks);
}

static bool is_uneven(const site *s) { return uneven_values(s, 0, instr_nopd(s->f, s->i) + s->i->nres); }

static u32 uncached(cost_model *k, const site *s, bool uneven, i64 *ps) {
  if (s->i->flags & INSTR_HOST) return host_costs(k, s, uneven, ps);
  switch (s->i->op) {
  case OP_send: return send_costs(k, s, uneven, ps);
  case OP_copy: return copy_costs(k, s, uneven, ps);
  case OP_shard:
  case OP_partial: return compute_costs(k, s, uneven, ps);
  default:
    return op_row_of(s->i->op)->flags & OPF_COMM ? collective_costs(k, s, uneven, ps)
                                                 : compute_costs(k, s, uneven, ps);
  }
}

static const seen_instr *find(const cost_model *k, const u32 *key, u32 n, u64 h) {
  for (u32 it = 0, i; hmap_next(&k->instr_map, h, &it, &i);)
    if (same_key(&k->words, k->instrs.v[i].key, key, n)) return &k->instrs.v[i];
  return NULL;
}

static void remember(cost_model *k, const u32 *key, u32 n, u64 h, u32 count, const i64 *ps) {
  seen_instr s = {keep_key(k, &k->words, key, n), count, k->values.n, count ? ps[0] : 0};
  if (count > 1) memcpy(vec_push_n(k->a, &k->values, count), ps, sizeof *ps * count);
  hmap_add(k->a, &k->instr_map, h, k->instrs.n);
  *vec_push(k->a, &k->instrs) = s;
}

// ---- measured times ----------------------------------------------------------------------------------

static bool over_measured_axes(const prog *p, const instr *i, group g) {
  u8 axes[MESH_AXES];
  u64 others = 0;
  const u32 n = cost_axes(p, i, g, axes);
  for (u32 j = 0; j < n; j++) others |= (1ull << axes[j]) & ~p->measured->axes;
  return n && !others;
}

static u32 measured_part(const prog *p, const func_info *f, const instr *i) {
  const measured_times *m = p->measured;
  if (i->origin) return i->origin <= p->norigins ? m->part[i->origin] : 0;
  for (u32 k = 0; k < m->nfuncs; k++)
    if (m->func[k] == f) return m->func_part[k];
  return 0;
}

u32 cost_measured(const prog *p, const func_info *f, const instr *i) {
  if (!p->measured) return 0;
  const u32 of = i->flags & INSTR_UPDATE ? 2 : i->flags & INSTR_BACKWARD && !(i->flags & INSTR_RECOMPUTE);
  const u32 part = of == 2 ? 0 : measured_part(p, f, i);
  return of == 2 || part ? part * MEASURED_OF + of + 1 : 0;
}

static bool changes_price(const prog *p, const func_info *f, const instr *i, group g, u32 *of) {
  const bool moves = op_row_of(i->op)->flags & OPF_COMM && i->op != OP_shard && i->op != OP_partial;
  *of = cost_measured(p, f, i);
  if (!*of || i->op == OP_send || i->op == OP_copy || i->flags & INSTR_HOST) return false;
  return !moves || over_measured_axes(p, i, g);
}

static i64 measured_ps(const measured_times *m, u32 of, u32 rank, i64 ps) {
  const size_t row = (size_t)m->row[rank] * (m->nparts + 1) * MEASURED_OF;
  return round_ps((double)ps * m->factor[row + of - 1]);
}

static u32 with_measured(const prog *p, const func_info *f, const instr *i, group g, u32 n, i64 *ps) {
  const group_info *gi = group_get(p->sp, g);
  u32 of;
  if (!n || !changes_price(p, f, i, g, &of)) return n;
  bool alike = n == 1;
  for (u32 m = 1; m < gi->nranks && alike; m++)
    alike = p->measured->row[gi->ranks[m]] == p->measured->row[gi->ranks[0]];
  if (alike) {
    *ps = measured_ps(p->measured, of, gi->ranks[0], *ps);
    return 1;
  }
  for (u32 m = gi->nranks; m-- > 0;) ps[m] = measured_ps(p->measured, of, gi->ranks[m], ps[n > 1 ? m : 0]);
  return fold(ps, gi->nranks);
}

static u32 price(cost_model *k, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  enum { FIXED = 4, WORDS = FIXED + 2 * 256 };
  const u32 ANY_GROUP = 1u << 31, ON_HOST = 1u << 31;
  assert(i->op != OP_call);
  if (op_row_of(i->op)->flags & k->formulas->free) {
    *ps = 0;
    return 1;
  }
  about(k, p);
  // Computation on even pieces is the same on all devices of a kind, whatever group they are in.
  const bool host = i->flags & INSTR_HOST,
             moves = host || (op_row_of(i->op)->flags & OPF_COMM && i->op != OP_shard && i->op != OP_partial);
  const u16 kind = moves ? KINDS_MIXED : group_kind(k, g, i->where);
  if (!kind) return 0;
  u32 key[WORDS], n = FIXED; // not cleared: that would take longer than the look-up
  key[0] = host ? i->op | ON_HOST : i->op;
  key[1] = i->at.i;
  key[2] = kind == KINDS_MIXED ? g.i : ANY_GROUP | kind;
  key[3] = 0;
  for (u32 j = 0; j < i->nopd; j++) {
    const u32 o = f->opds.v[i->opd + j];
    if (o & OPD_AFTER) continue; // any number of these
    assert(n + i->nres < WORDS);
    key[n++] = f->values.v[o & OPD_VALUE].ty.i;
  }
  assert(n + i->nres <= WORDS);
  for (u32 j = 0; j < i->nres; j++) key[n++] = f->values.v[i->res + j].ty.i;
  u64 h = hash_bytes(key, sizeof *key * n, 0);
  const seen_instr *s = find(k, key, n, h);
  const site at = {p, f, i, g};
  if (s ? !s->n : is_uneven(&at)) { // pieces may differ by the temporal coordinates as well
    if (!s) remember(k, key, n, h, 0, NULL);
    key[2] = g.i;
    key[FIXED - 1] = i->coord + 1;
    h = hash_bytes(key, sizeof *key * n, 0);
    s = find(k, key, n, h);
  }
  if (!s) {
    const u32 count = uncached(k, &at, key[FIXED - 1], ps);
    if (count) remember(k, key, n, h, count, ps);
    return count;
  }
  if (s->n == 1)
    *ps = s->ps;
  else
    memcpy(ps, k->values.v + s->at, sizeof *ps * s->n);
  return s->n;
}

u32 cost_instr(cost_model *k, const prog *p, const func_info *f, const instr *i, group g, i64 *ps) {
  const u32 n = price(k, p, f, i, g, ps);
  return p->measured ? with_measured(p, f, i, g, n, ps) : n;
}

static const seen_subgroups *subgroups_of(cost_model *k, const site *s) {
  u8 axes[MESH_AXES];
  if (s->i->op != OP_send)
    return subgroups_over(k, s->g, axes, cost_axes(s->p, s->i, s->g, axes), s->i->where);
  return transfers(k, s->g, send_target(s), s->i->where);
}

// The placement of a member's event, and its bytes.
static u32 placement_of_comm(cost_model *k, const site *s, u32 member, i64 *size) {
  const seen_subgroups *subgroups = subgroups_of(k, s);
  const u32 sub = sub_of_member(k, subgroups, member);
  if (s->i->op == OP_send)
    *size = sent_bytes(s, member, is_uneven(s));
  else
    *size =
        k->bytes
            .v[subgroup_bytes(k, s, subgroups, is_uneven(s), k->costs.v) ? sub
                                                                         : sub_of_member(k, subgroups, 0)];
  return placement_of_subgroup(k, subgroups, sub);
}

static bool explain(cost_model *k, const prog *p, const func_info *f, const instr *i, group g, u32 member,
                    cost_info *out, cost_event *made_of) {
  const op_row *row = op_row_of(i->op);
  const site s = {p, f, i, g};
  *made_of = (cost_event){.op = i->op, .at = attrs_get(p, i->at)};
  *out = (cost_info){.source = COST_FREE};
  if (row->flags & k->formulas->free) return true;
  about(k, p);
  coords room;
  const coords *c = coords_at(&s, g, member, is_uneven(&s), &room);
  const u32 rank = group_get(p->sp, g)->ranks[member];
  const bool local = i->op == OP_shard || i->op == OP_partial;
  if (!(row->flags & OPF_COMM) || local) {
    if (!group_kind(k, g, i->where)) return false;
    if (i->flags & INSTR_HOST ? !host_event(k, &s, c, rank, out, made_of)
                              : !compute_event(k, &s, c, k->m->dev[rank].kind, out, made_of))
      return false;
    cost_locate(k, made_of, rank, out);
    return true;
  }
  vec_reserve(k->a, &k->costs, group_get(p->sp, g)->nranks);
  const u32 n = price(k, p, f, i, g, k->costs.v);
  if (!n) return false;
  const i64 ps = k->costs.v[n > 1 ? member : 0];
  if (i->op != OP_copy) {
    i64 size;
    const u32 placement = placement_of_comm(k, &s, member, &size);
    const dtype t = instr_nopd(f, i) ? site_operand(&s, 0)->s.t : DT_NONE;
    if (!comm_event(k, ASKED_BY_PLAN, priced_as(&s), t, size, placement, i->where, out, made_of))
      return false;
  } else {
    made_of->t = site_operand(&s, 0)->s.t;
    made_of->size = 0;
    for (u32 j = 0; j < i->nres; j++) made_of->size += local_bytes(&s, site_operand(&s, j), c);
    out->spread = -1;
  }
  out->ps = ps; // that of the member with the most bytes
  cost_locate(k, made_of, rank, out);
  return true;
}

bool cost_explain(cost_model *k, const prog *p, const func_info *f, const instr *i, group g, u32 member,
                  cost_info *out, cost_event *made_of) {
  u32 of;
  if (!explain(k, p, f, i, g, member, out, made_of)) return false;
  if (out->source == COST_FREE || !changes_price(p, f, i, g, &of)) return true;
  out->ps = measured_ps(p->measured, of, group_get(p->sp, g)->ranks[member], out->ps);
  out->source = COST_MEASURED;
  cost_locate(k, made_of, group_get(p->sp, g)->ranks[member], out);
  return true;
}

// ---- communication asked for by planners -------------------------------------------------------------

i64 cost_comm(cost_model *k, opcode op, i64 bytes, const u32 *ranks, u32 n, dtype t) {
  machine_placement placement;
  cost_info cost;
  for (u32 i = 0; i < n; i++)
    if (!on_machine(k, ranks[i], (loc){0})) return -1;
  if (op == OP_send)
    machine_pairs(k->m, k->a, ranks, ranks + 1, 1, 1, &placement);
  else
    machine_placements(k->m, k->a, ranks, 1, n, &placement);
  return comm_event(k, ASKED_BY_PLANNER, op, t, bytes, placement_id(k, &placement), (loc){0}, &cost, NULL)
             ? cost.ps
             : -1;
}

bool cost_beside(cost_model *k, const opcode *op, u32 nops, i64 bytes, const u32 *ranks, u32 nsub, u32 n,
                 i64 *out) {
  cost_info cost;
  for (u32 i = 0; i < nsub * n; i++)
    if (!on_machine(k, ranks[i], (loc){0})) return false;
  vec_reserve(k->a, &k->found, nsub);
  machine_placement *at = k->found.v;
  machine_placements(k->m, k->a, ranks, nsub, n, at);
  for (u32 o = 0; o < nops; o++) out[o] = INT64_MAX;
  for (u32 i = 0, before = ~0u; i < nsub; i++) {
    const u32 id = placement_id(k, &at[i]);
    for (u32 o = 0; o < nops && id != before; o++) {
      if (!comm_event(k, ASKED_BY_PLANNER, op[o], DT_NONE, bytes, id, (loc){0}, &cost, NULL)) return false;
      out[o] = MIN(out[o], cost.ps);
    }
    before = id;
  }
  return true;
}

static i64 slowest(cost_model *k, const seen_subgroups *s, opcode op, i64 bytes, dtype t) {
  i64 worst = 0;
  cost_info cost;
  for (u32 i = 0; i < (s->uniform ? 1 : s->nsub); i++) {
    if (!comm_event(k, ASKED_BY_PLANNER, op, t, bytes, placement_of_subgroup(k, s, i), (loc){0}, &cost, NULL))
      return -1;
    worst = MAX(worst, cost.ps);
  }
  return worst;
}

static bool by_curves(const cost_model *k) {
  return !machine_is_measured(k->m) && !k->opts.predict && k->formulas == &cost_heddle;
}

bool cost_rises(const cost_model *k) {
  if (!by_curves(k)) return false;
  for (u32 i = 0; i < k->m->nkinds; i++)
    for (u32 e = 0; e < EFF_KINDS; e++) {
      const eff_curve *c = &k->m->kind[i].eff[e];
      for (u32 j = 1; j < c->n; j++)
        if (c->size[j] / c->eff[j] < c->size[j - 1] / c->eff[j - 1]) return false;
    }
  return true;
}

// Between two points of a curve efficiency is between theirs.
double cost_splits(const cost_model *k, u32 kind) {
  double least = by_curves(k);
  for (u32 e = 0; e < EFF_KINDS; e++) {
    const eff_curve *c = &k->m->kind[kind].eff[e];
    double best = 0; // of smaller sizes
    for (u32 j = 0; j < c->n; j++) {
      least = MIN(least, c->eff[j] / MAX(best, c->eff[j]));
      best = MAX(best, c->eff[j]);
    }
  }
  return least;
}

i64 cost_over(cost_model *k, const prog *p, group g, const u8 *axes, u32 naxes, opcode op, i64 bytes,
              dtype t) {
  about(k, p);
  const seen_subgroups *s = subgroups_over(k, g, axes, naxes, (loc){0});
  return s ? slowest(k, s, op, bytes, t) : -1;
}

i64 cost_between(cost_model *k, const prog *p, group from, group to, i64 to_bytes, dtype t) {
  about(k, p);
  const seen_subgroups *s = transfers(k, from, to, (loc){0});
  if (!s) return -1;
  const u32 nf = group_get(p->sp, from)->nranks, nt = group_get(p->sp, to)->nranks;
  return slowest(k, s, OP_send, send_bytes(nf, nt, to_bytes), t);
}
