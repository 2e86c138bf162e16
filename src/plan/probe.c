// probe.c - the program from which the stages of a plan are known: main runs the tasks of every distinct
// place for up to three microbatches, before them what precedes all tasks, after them what follows. Not what
// is made of it (sim/stages.c).
//
// Idea: places are alike if their stages call the same functions, their ranks lie alike on the machine, what
// comes and leaves is alike, and they share no parameter with others. One of each kind is written out, by the
// code that writes out the whole program; what it exchanges with places that are left out is sent for real,
// from or to where it would go, the values being zeros. Stages that have nothing in common with others of their
// place are alike on one place as well; where what comes after the tasks is known, one of each kind is written
// out.
#include "cost/cost.h"
#include "plan/main.h"

typedef struct {
  main_build mb;
  arena *a; // of the result
  const machine *m;
  u32 period;   // ranks lie alike so many ranks further on; 0: that is not so
  u16 *alike;   // per place
  u16 *like;    // per stage: that stands for it
  bool apart;   // sim_pipeline.apart
  bool *shares; // ... it shares a value or a parameter with another one of its place
  u32 *ordinal; // per stage: number among those of its place
  u32 nlinks;
  sim_link *link;
  u32 *link_of; // per stage: first link out of it, in edges' order
  VEC(sim_piece) piece;
  VEC(u32) words;  // of signatures
  u32 *first_user; // per replica and parameter: stage + 1 that was looked at first
  u32 *reader;     // per parameter: segment + 1 that reads it; ~0: several do
  u16 *with;       // sim_pipeline.with
  VEC(sim_span) span;
  u32 *weight_span; // per parameter of main: layer that it is of, + 1, if that stands for others
  plan_find_ending *find;
  void *arg;
  const sim_ending *ending;
  VEC(sim_left) left;
} probing;

// ---- who is alike ---------------------------------------------------------------------------------------
static void put(probing *x, u32 word) { *vec_push(x->mb.x->a, &x->words) = word; }

// How ranks lie on the machine: nodes by first occurrence, devices by their index in the node and kind.
static void put_ranks(probing *x, const u32 *rank, u32 n, u32 *node, u32 *nnode) {
  const machine *m = x->m;
  for (u32 k = 0; k < n; k++) {
    if (!m || rank[k] >= m->nranks) {
      put(x, rank[k]);
      continue;
    }
    const machine_dev *d = &m->dev[rank[k]];
    u32 j = *nnode;
    while (j > 0 && node[j - 1] != d->node) j--;
    if (!j) node[*nnode] = d->node, j = ++*nnode;
    put(x, j), put(x, (u32)d->kind << 16 | d->index), put(x, m->node[d->node]);
    if (m->fabric.leaf) put(x, d->node % m->fabric.leaf);
  }
}

// Members of two groups that differ in a coordinate lie as those of any other two such groups do, from the
// first rank on.
static bool put_coordinates(probing *x, group a, group b) {
  const space *sp = x->mb.p->sp;
  const group_info *ga = group_get(sp, a), *gb = group_get(sp, b);
  if (!x->period || ga->m.i != gb->m.i || mesh_get(sp, ga->m)->ranks) return false;
  for (u32 i = 0; i < ga->naxes; i++)
    if (ga->axis[i].at == -2 || gb->axis[i].at == -2 || (ga->axis[i].at < 0) != (gb->axis[i].at < 0))
      return false;
  if (MAX(ga->ranks[ga->nranks - 1], gb->ranks[gb->nranks - 1]) >= x->m->nranks) return false;
  put(x, ~4u), put(x, ga->m.i);
  for (u32 i = 0; i < ga->naxes; i++) put(x, ga->axis[i].at < 0);
  put(x, ga->ranks[0] % x->period), put(x, gb->ranks[0] - ga->ranks[0]);
  return true;
}

static void put_groups(probing *x, group a, group b) {
  const space *sp = x->mb.p->sp;
  const group_info *ga = group_get(sp, a), *gb = group_get(sp, b);
  if (put_coordinates(x, a, b)) return;
  u32 *node = NEWN(x->mb.x->a, u32, ga->nranks + gb->nranks + 1), n = 0;
  put_ranks(x, ga->ranks, ga->nranks, node, &n);
  put(x, ~0u);
  if (a.i != b.i) put_ranks(x, gb->ranks, gb->nranks, node, &n);
}

// At another coordinate of an axis with shares pieces are of another size.
static void put_shares(probing *x, group g) {
  const apply *ap = x->mb.x;
  const group_info *gi = group_get(x->mb.p->sp, g);
  for (u32 i = 0; i < ap->pn->naxes; i++)
    for (u32 k = 0; ap->pn->axes[i].shares && k < gi->naxes; k++)
      if (gi->axis[k].axis == ap->axis[i + 1]) put(x, (u32)gi->axis[k].at);
}

static void put_type(probing *x, type t) { // but for the group
  const type_info *i = type_get(x->mb.p, t);
  put(x, type_tensor(x->mb.p, &i->s, i->lay, (group){0}).i);
}

// Do stages of this place read it alone, or with two replicas those of the two that have the segment?
static bool exclusive(const probing *x, const stage_build *s, value v) {
  if (main_has_copies(&x->mb, v)) return false;
  return x->mb.nreplicas == 1 ? x->mb.home[v - 1].g.i == s->g.i : x->reader[v - 1] == s->segment + 1;
}

static void find_readers(probing *x) {
  const main_build *mb = &x->mb;
  x->reader = ZNEWN(mb->x->a, u32, mb->m->nparams + 1);
  for (u32 i = 0; i < mb->nsegments; i++) {
    const stage_source *c = mb->stage[i].src;
    for (u32 k = 0; k < c->nweights + c->ninputs; k++) {
      const value v = k < c->nweights ? c->weight[k] : c->input[k - c->nweights];
      if (mb->m->values.v[v].def) continue;
      u32 *of = &x->reader[v - 1];
      *of = !*of || *of == i + 1 ? i + 1 : ~0u;
    }
  }
}

// The place on which the other replica has the segments of this one.
static void find_with(probing *x) {
  const main_build *mb = &x->mb;
  x->with = NEWN(x->a, u16, mb->nplaces);
  for (u32 q = 0; q < mb->nplaces; q++) x->with[q] = (u16)q;
  for (u32 i = 0; mb->nreplicas == 2 && !x->apart && i < mb->nstages; i++)
    x->with[mb->stage[i].place] = (u16)mb->stage[(i + mb->nsegments) % mb->nstages].place;
}

// How the ranks that sum gradients with those of this stage lie to them. Of two such places one is the first.
static void put_with(probing *x, u32 i) {
  const main_build *mb = &x->mb;
  const stage_build *s = &mb->stage[i], *other = &mb->stage[(i + mb->nsegments) % mb->nstages];
  const group_info *a = group_get(mb->p->sp, s->g), *b = group_get(mb->p->sp, other->g);
  u32 *node = NEWN(mb->x->a, u32, a->nranks + b->nranks + 1), n = 0;
  put(x, s->place < other->place), put(x, MIN(main_micro(mb, s->replica), 3u));
  put_ranks(x, a->ranks, a->nranks, node, &n);
  put_ranks(x, b->ranks, b->nranks, node, &n);
}

static void put_stage(probing *x, u32 i) {
  main_build *mb = &x->mb;
  const stage_build *s = &mb->stage[i];
  const stage_source *c = s->src;
  put_shares(x, s->g);
  if (mb->nreplicas > 1) put_with(x, i);
  put(x, s->fwd.dst.i), put(x, s->gp ? s->bwd.dst.i : 0), put(x, s->gp && s->gp->wgt.i ? s->wgt.dst.i : 0);
  put(x, c->nweights), put(x, c->ninputs), put(x, c->noutputs), put(x, s->acc), put(x, s->nneed_weights);
  for (u32 k = 0; s->gp && k < s->gp->nacc; k++) put(x, s->acc_lay[k].i);
  bool own = true;
  for (u32 k = 0; k < c->nweights + c->ninputs; k++) {
    value v = k < c->nweights ? c->weight[k] : c->input[k - c->nweights];
    if (mb->m->values.v[v].def) continue;
    own = own && exclusive(x, s, v);
    u32 *user = &x->first_user[s->replica * mb->m->nparams + v - 1];
    const u32 first = *user ? *user - 1 : i;
    *user = first + 1;
    if (first != i) x->shares[i] = x->shares[first] = true;
    u32 *w = vec_push_n(mb->x->a, &x->words, 5);
    w[0] = own ? x->ordinal[i] - x->ordinal[first] : 0;
    w[1] = mb->m->values.v[v].ty.i, w[2] = mb->home[v - 1].lay.i;
    w[3] = mb->m->params.v[v - 1].r, w[4] = mb->m->params.v[v - 1].data;
  }
  if (!own) put(x, i + 1), put(x, ~1u); // like no other
  for (u32 k = 0; k < c->ninputs; k++) {
    const edge *e = s->came[k];
    put(x, s->in[k].i);
    if (!e) continue;
    const stage_build *from = &mb->stage[e->from];
    put_type(x, func_result(mb->p, from->fwd.dst, e->output));
    put(x, from->place == s->place ? x->ordinal[e->from] + 1 : 0);
    x->shares[i] |= from->place == s->place;
    put_groups(x, from->g, s->g);
    u32 before = 0; // of other inputs: in which order they come
    for (u32 j = 0; j < s->nin && s->ins[j] != e; j++) before++;
    put(x, before), put(x, e->dx);
  }
  for (u32 k = 0; k < s->nedges; k++) {
    const edge *e = &s->edges[k];
    const stage_build *to = &mb->stage[e->to];
    put(x, e->output), put(x, to->in[e->input].i), put(x, s->gp && s->dout ? s->dout[e->output].i : 0);
    put(x, to->place == s->place ? x->ordinal[e->to] + 1 : 0);
    x->shares[i] |= to->place == s->place;
    put_groups(x, s->g, to->g);
    if (e->dx) put_type(x, func_result(mb->p, to->bwd.dst, e->dx - 1)); // the gradient that comes back
  }
  for (u32 k = 0; k < mb->m->rets.n; k++) // results of main
    if (mb->stage_of[mb->m->rets.v[k]] == s->segment + 1) put(x, k + 1), put(x, ~2u);
}

// The one, of those noted in `seen`, that has the words [at, end); itself, noted, if there is none.
typedef struct {
  hmap seen;
  u32 *at, *end; // of words, by place or stage
} noted;

static u32 first_like(probing *x, noted *n, u32 of) {
  const u32 *word = x->words.v, len = n->end[of] - n->at[of];
  const u64 h = hash_bytes(word + n->at[of], len * sizeof *word, len);
  for (u32 it = 0, k; hmap_next(&n->seen, h, &it, &k);)
    if (n->end[k] - n->at[k] == len && !memcmp(word + n->at[k], word + n->at[of], len * sizeof *word))
      return k;
  hmap_add(x->mb.x->a, &n->seen, h, of);
  return of;
}

// The stage that stands for stage i with all of its place.
static u32 stage_like(const probing *x, u32 i) {
  u32 q = x->alike[x->mb.stage[i].place];
  for (u32 j = 0; j < x->mb.nstages; j++)
    if (x->mb.stage[j].place == q && x->ordinal[j] == x->ordinal[i]) return j;
  return i;
}

// Every place and every stage stands for itself.
static void find_apart(probing *x) {
  main_build *mb = &x->mb;
  x->alike = NEWN(x->a, u16, mb->nplaces), x->like = NEWN(x->a, u16, mb->nstages);
  for (u32 q = 0; q < mb->nplaces; q++) x->alike[q] = (u16)q;
  for (u32 i = 0; i < mb->nstages; i++) x->like[i] = (u16)i;
  find_with(x);
}

static void find_alike(probing *x) {
  main_build *mb = &x->mb;
  arena *a = mb->x->a;
  const u32 np = mb->nplaces, ns = mb->nstages;
  noted place = {{0}, NEWN(a, u32, np), NEWN(a, u32, np)}, stage = {{0}, NEWN(a, u32, ns), NEWN(a, u32, ns)};
  u32 *count = ZNEWN(a, u32, np);
  x->alike = NEWN(x->a, u16, np), x->like = NEWN(x->a, u16, ns);
  x->ordinal = ZNEWN(a, u32, ns), x->shares = ZNEWN(a, bool, ns);
  x->first_user = ZNEWN(a, u32, mb->nreplicas * mb->m->nparams + 1);
  find_readers(x), find_with(x);
  for (u32 i = 0; i < ns; i++) x->ordinal[i] = count[mb->stage[i].place]++;
  for (u32 q = 0; q < np; q++) {
    place.at[q] = x->words.n;
    for (u32 i = 0; i < ns; i++) {
      if (mb->stage[i].place != q) continue;
      stage.at[i] = x->words.n;
      put_stage(x, i), put(x, ~3u);
      stage.end[i] = x->words.n;
    }
    place.end[q] = x->words.n;
    x->alike[q] = (u16)first_like(x, &place, q);
  }
  bool paired = true; // what comes after the tasks is of a place and the one it sums with
  for (u32 q = 0; q < np; q++) paired &= x->alike[x->with[q]] == x->with[x->alike[q]];
  for (u32 q = 0; q < np && !paired; q++) x->alike[q] = (u16)q;
  for (u32 i = 0; i < ns; i++) {
    const bool stands = x->alike[mb->stage[i].place] == mb->stage[i].place;
    if (stands) x->like[i] = (u16)(x->shares[i] ? i : first_like(x, &stage, i));
  }
  for (u32 i = 0; i < ns; i++)
    if (x->alike[mb->stage[i].place] != mb->stage[i].place) x->like[i] = x->like[stage_like(x, i)];
}

// ---- links ----------------------------------------------------------------------------------------------
static u32 link_at(const probing *x, u32 from, u32 e) { return x->link_of[from] + e; }

static void make_links(probing *x) { // one for every edge; those within a place are taken out at the end
  main_build *mb = &x->mb;
  x->link_of = NEWN(mb->x->a, u32, mb->nstages + 1);
  for (u32 i = 0; i < mb->nstages; i++) x->link_of[i] = x->nlinks, x->nlinks += mb->stage[i].nedges;
  x->link = ZNEWN(x->a, sim_link, x->nlinks + 1);
  for (u32 i = 0; i < mb->nstages; i++) {
    u32 like = x->like[i];
    for (u32 e = 0; e < mb->stage[i].nedges; e++) {
      const edge *g = &mb->stage[i].edges[e];
      const edge *in = mb->stage[x->like[g->to]].came[g->input];
      x->link[link_at(x, i, e)] =
          (sim_link){.from = (u16)i,
                     .to = (u16)g->to,
                     .like_from = link_at(x, like, e),
                     .like_to = link_at(x, in->from, (u32)(in - mb->stage[in->from].edges)),
                     .back = g->dx != 0,
                     .strm = {g->strm[0], g->strm[1]}};
    }
  }
}

// ---- writing it out -------------------------------------------------------------------------------------
static u32 here(const probing *x) { return func_get(x->mb.p, x->mb.b.f)->body.n; }

static void piece(probing *x, piece_kind kind, u32 what, u32 stage, u32 link, u32 m, u32 first) {
  for (u32 r = 0; m >= main_micro(&x->mb, r); r++) m -= main_micro(&x->mb, r); // of its replica
  *vec_push(x->a, &x->piece) = (sim_piece){(u8)kind, (u8)what, (u16)stage, link, m, first, here(x)};
}

static bool active(const probing *x, u32 stage) { return x->mb.active[stage]; }

// Zeros where a stage that is left out would have made a value.
static value zeros(probing *x, type t, u32 m) {
  main_build *mb = &x->mb;
  const type_info *i = type_get(mb->p, t);
  attr at[2] = {attr_t(A_dtype, i->s.t), attr_v(A_shape, i->s.dim, i->s.nd)};
  mb->b.g = i->g, mb->b.coord = mb->time ? mb->point[m] : 0;
  return emit_res(mb->p, mb->b.f, emit(&mb->b, OP_full, attrs_of(mb->p, at, 2), NULL, 0, &t, 1));
}

// One value on its way from stage to stage, there or back. The sending stage may be left out.
static void send(probing *x, edge *e, u32 pass, u32 m) {
  main_build *mb = &x->mb;
  const stage_build *from = &mb->stage[pass ? e->to : e->from], *to = &mb->stage[pass ? e->from : e->to];
  value *v = pass ? e->back : e->there;
  if (pass && !v) v = e->back = ZNEWN(mb->x->a, value, mb->nmb);
  mb->b.flags = pass ? INSTR_BACKWARD : 0;
  if (!active(x, (u32)(from - mb->stage))) {
    u32 k = pass ? e->dx - 1 : e->output;
    type t = type_bind(mb->p, func_result(mb->p, pass ? from->bwd.dst : from->fwd.dst, k), from->g);
    v[m] = zeros(x, t, m);
    v[m] = main_leave(mb, v[m], to->g, pass ? to->dout[e->output] : to->in[e->input], &e->sent[pass]);
  }
  u32 first = here(x);
  mb->b.coord = mb->time ? mb->point[m] : 0;
  if (!mb->b.failed)
    v[m] = main_send(mb, v[m], e->sent[pass], e->strm[pass],
                     pass && active(x, e->to) ? emit_sends_after(from, false) : 0);
  mb->b.flags = 0;
  if (from->g.i != to->g.i)
    piece(x, PIECE_SEND, pass, 0, link_at(x, e->from, (u32)(e - mb->stage[e->from].edges)), m, first);
}

static void run_task(probing *x, u32 i, task_kind kind, u32 m) {
  u32 first = here(x);
  emit_task(&x->mb, &x->mb.stage[i], kind, m);
  task_kind is = kind == TASK_B && x->mb.stage[i].gp->wgt.i ? TASK_I : kind;
  piece(x, PIECE_TASK, is, i, 0, m, first);
}

static void forward(probing *x, u32 i, u32 m) {
  stage_build *s = &x->mb.stage[i];
  for (u32 k = 0; k < s->nin; k++)
    if (!active(x, s->ins[k]->from)) send(x, s->ins[k], 0, m);
  run_task(x, i, TASK_F, m);
  for (u32 e = 0; e < s->nedges; e++) send(x, &s->edges[e], 0, m);
}

static void backward(probing *x, u32 i, u32 m) {
  stage_build *s = &x->mb.stage[i];
  for (u32 e = 0; e < s->nedges; e++)
    if (s->edges[e].dx && !active(x, s->edges[e].to)) send(x, &s->edges[e], 1, m);
  run_task(x, i, TASK_B, m);
  for (u32 k = 0; k < s->nin; k++)
    if (s->ins[k]->dx) send(x, s->ins[k], 1, m);
  if (s->gp->wgt.i) run_task(x, i, TASK_W, m);
}

// What tasks leave: the gradients of a stage, and what main returns, of every microbatch.
static void note_left(probing *x) {
  const main_build *mb = &x->mb;
  for (u32 i = 0; i < mb->nstages; i++)
    if (active(x, i) && mb->stage[i].gp && mb->stage[i].grads)
      *vec_push(x->a, &x->left) = (sim_left){(u16)i, 0, mb->stage[i].grads};
  for (u32 k = 0; k < mb->m->rets.n; k++) {
    const value v = mb->m->rets.v[k];
    for (u32 r = 0, m = 0; mb->stage_of[v] && r < mb->nreplicas; r++) {
      const u32 from = r * mb->nsegments + mb->stage_of[v] - 1;
      for (u32 end = m + main_micro(mb, r); m < end; m++)
        if (active(x, from))
          *vec_push(x->a, &x->left) =
              (sim_left){(u16)from, 1 + k * mb->nmb + m, mb->stage[from].res[mb->out_of[v] * mb->nmb + m]};
    }
  }
}

// Instead of what comes after the tasks: what they leave is returned.
static void leave(probing *x) {
  main_build *mb = &x->mb;
  value *ret = NEWN(mb->x->a, value, x->left.n + 1);
  for (u32 k = 0; k < x->left.n; k++) ret[k] = x->left.v[k].v;
  func_return(mb->p, mb->b.f, ret, x->left.n);
  mb->p->main = mb->b.f;
}

static bool write_out(probing *x) {
  main_build *mb = &x->mb;
  const u32 begin = here(x);
  for (u32 i = 0; i < mb->nstages; i++) {
    u32 first = here(x);
    if (!active(x, i)) continue;
    emit_before(mb, &mb->stage[i]);
    if (!x->apart) piece(x, PIECE_BEFORE, 0, i, 0, 0, first);
  }
  if (x->apart) piece(x, PIECE_BEFORE, 0, 0, 0, 0, begin); // of all together
  for (u32 r = 0, first = 0; r < mb->nreplicas; first += main_micro(mb, r++)) {
    const u32 from = r * mb->nsegments, end = from + mb->nsegments;
    for (u32 m = first; m < first + main_micro(mb, r) && !mb->b.failed; m++) {
      for (u32 i = from; i < end && !mb->b.failed; i++)
        if (active(x, i)) forward(x, i, m);
      for (u32 i = end; i-- > from && !mb->b.failed;)
        if (active(x, i) && mb->stage[i].gp) backward(x, i, m);
    }
  }
  if (mb->b.failed) return false;
  note_left(x);
  if (x->ending) {
    leave(x);
    return true;
  }
  u32 first = here(x);
  if (!main_finish(mb)) return false;
  piece(x, PIECE_AFTER, 0, 0, 0, 0, first);
  return true;
}

static bool any_wide(const main_build *mb) {
  for (u32 i = 0; i < mb->nstages; i++)
    if (mb->stage[i].on.n > 1) return true;
  return false;
}

// Are both stages on the same ranks? One on all places is not where its first place is.
static bool together(const main_build *mb, u32 a, u32 b) {
  return mb->stage[a].place == mb->stage[b].place && mb->stage[a].on.n == mb->stage[b].on.n;
}

// Numbers links between places only, in the order that they have.
static void drop_local_links(probing *x) {
  u32 *now = NEWN(x->mb.x->a, u32, x->nlinks + 1), n = 0;
  for (u32 k = 0; k < x->nlinks; k++) {
    now[k] = n;
    n += !together(&x->mb, x->link[k].from, x->link[k].to);
  }
  for (u32 k = 0; k < x->nlinks; k++) {
    sim_link l = x->link[k];
    if (together(&x->mb, l.from, l.to)) continue;
    l.like_from = now[l.like_from], l.like_to = now[l.like_to];
    x->link[now[k]] = l;
  }
  for (u32 k = 0; k < x->piece.n; k++) x->piece.v[k].link = now[x->piece.v[k].link];
  x->nlinks = n;
}

// ---- layers that stand for others -----------------------------------------------------------------------
// Is what stage i leaves out the same, in the same place, as what stage j does?
static bool same_spans(const probing *x, const fewer_layers *few, u32 i, u32 j) {
  const plan_segment *seg = x->mb.x->pn->segments;
  u32 p = 0, q = 0;
  for (;; p++, q++) {
    while (p < few->span.n && few->span.v[p].segment != i) p++;
    while (q < few->span.n && few->span.v[q].segment != j) q++;
    if (p == few->span.n || q == few->span.n) return p == few->span.n && q == few->span.n;
    const layer_span *a = &few->span.v[p], *b = &few->span.v[q];
    if (a->more != b->more || a->len != b->len || a->from - seg[i].from != b->from - seg[j].from)
      return false;
  }
}

// Stages that leave out the same share functions: each gets the number, from 1, of the first that does.
static void number_stages(probing *x, const fewer_layers *few) {
  main_build *mb = &x->mb;
  u32 *first = NEWN(mb->x->a, u32, mb->nsegments), n = 0;
  bool *any = ZNEWN(mb->x->a, bool, mb->nsegments);
  mb->stage_more = ZNEWN(mb->x->a, u32, mb->nstages);
  for (u32 k = 0; k < few->span.n; k++) any[few->span.v[k].segment] = true;
  for (u32 i = 0; i < mb->nsegments; i++) {
    u32 k = 0;
    while (any[i] && k < n && !same_spans(x, few, first[k], i)) k++;
    if (any[i] && k == n) first[n++] = i;
    if (any[i]) mb->stage_more[i] = first[k] + 1;
  }
  for (u32 i = mb->nsegments; i < mb->nstages; i++) mb->stage_more[i] = mb->stage_more[i - mb->nsegments];
}

static void note_layers(probing *x, const fewer_layers *few) {
  main_build *mb = &x->mb;
  u32 *weight = ZNEWN(mb->x->a, u32, mb->m->nparams + 1);
  x->weight_span = ZNEWN(mb->x->a, u32, mb->m->nparams + 1);
  number_stages(x, few);
  for (u32 k = 0; k < few->span.n; k++) {
    const layer_span *l = &few->span.v[k];
    for (u32 i = l->from; i < l->from + l->len; i++)
      for (u32 o = 0; o < mb->m->body.v[i].nopd; o++) {
        const value v = opd_of(mb->m, &mb->m->body.v[i], o);
        if (v > mb->m->nparams || mb->m->params.v[v - 1].r != ROLE_WEIGHT) continue;
        weight[v - 1] = l->more, x->weight_span[v - 1] = k + 1;
      }
  }
  mb->weight_more = weight;
}

// Is w to instruction `at` of a stretch what v is to its like, `by` instructions before or after it?
static bool stands_alike(const func_info *f, value v, value w, i64 by) {
  if (v == w) return true;
  const u32 dv = f->values.v[v].def, dw = f->values.v[w].def;
  if (f->values.v[v].ty.i != f->values.v[w].ty.i || !dv != !dw) return false;
  if (!dv || (dv == dw && f->body.v[dv - 1].op == OP_unpack)) return true; // weights and what a forward left
  return (i64)dw == (i64)dv + by && w - f->body.v[dw - 1].res == v - f->body.v[dv - 1].res;
}

static bool same_stretch(const func_info *f, u32 from, u32 like, u32 len) {
  const i64 by = (i64)like - (i64)from;
  for (u32 k = 0; k < len; k++) {
    const instr *i = &f->body.v[from + k], *j = &f->body.v[like + k];
    if (!instr_alike(f, i, f, j, 0)) return false;
    for (u32 o = 0; o < i->nopd; o++) {
      const u32 a = f->opds.v[i->opd + o], b = f->opds.v[j->opd + o];
      if ((a & ~(u32)OPD_VALUE) != (b & ~(u32)OPD_VALUE) ||
          !stands_alike(f, a & OPD_VALUE, b & OPD_VALUE, by))
        return false;
    }
  }
  return true;
}

// The instructions that came from the layer, and from the one before it: next to each other, and alike.
static bool find_span(probing *x, const u8 *which, func dst, u32 more) {
  const func_info *f = func_get(x->mb.p, dst);
  u32 from[3] = {~0u, ~0u, ~0u}, end[3] = {0};
  for (u32 k = 0; k < f->body.n; k++) {
    const u8 w = which[f->body.v[k].origin];
    if (!w) continue;
    from[w] = MIN(from[w], k), end[w] = k + 1;
  }
  if (!end[1] && !end[2]) return true;
  const u32 len = end[1] - from[1];
  if (!end[1] || !end[2] || end[2] - from[2] != len || (from[1] != end[2] && from[2] != end[1])) return false;
  for (u32 k = 0; k < x->span.n; k++)
    if (x->span.v[k].f.i == dst.i && x->span.v[k].from == from[1]) return true; // shared with a stage before
  *vec_push(x->a, &x->span) = (sim_span){dst, from[1], len, from[2], more};
  return same_stretch(f, from[1], from[2], len);
}

// Is every gradient of the layer's weights made in the stretch? Those of weights that the loss does not
// depend on are zeros that a backward makes elsewhere.
static bool makes_gradients(const probing *x, const stage_build *s, func dst, u32 layer) {
  const func_info *f = func_get(x->mb.p, dst);
  const u32 def = f->rets.n ? f->values.v[f->rets.v[f->rets.n - 1]].def : 0;
  const instr *all = def ? &f->body.v[def - 1] : NULL; // they leave as one tuple
  for (u32 k = 0; k < s->gp->nacc; k++) {
    if (x->weight_span[s->src->weight[s->gp->acc[k]] - 1] != layer + 1) continue;
    if (!all || all->op != OP_pack || instr_nopd(f, all) != s->gp->nacc) return false;
    const u32 at = f->values.v[opd_of(f, all, k)].def;
    bool made = false;
    for (u32 j = 0; j < x->span.n && !made; j++) {
      const sim_span *in = &x->span.v[j];
      made = in->f.i == dst.i && at > in->from && at <= in->from + in->len;
    }
    if (!made) return false;
  }
  return true;
}

static bool find_spans(probing *x, const fewer_layers *few) {
  main_build *mb = &x->mb;
  for (u32 k = 0; k < few->span.n * mb->nreplicas; k++) {
    const layer_span *l = &few->span.v[k / mb->nreplicas];
    const stage_build *s = &mb->stage[k % mb->nreplicas * mb->nsegments + l->segment];
    const stage_source *own = s->src, *like = s->f.i == own->fwd.i ? own : own->like;
    u8 *of_main = ZNEWN(mb->x->a, u8, mb->s->norigins + 1), *which = ZNEWN(mb->x->a, u8, mb->s->norigins + 1);
    for (u32 j = 0; j < l->len; j++) {
      of_main[mb->m->body.v[l->from + j].origin] = 1;
      of_main[mb->m->body.v[l->from - l->len + j].origin] = 2;
    }
    for (u32 j = 0; j < own->n; j++)
      if (of_main[own->origin[j]]) which[like->origin[j]] = of_main[own->origin[j]];
    if (which[0] || !find_span(x, which, s->fwd.dst, l->more)) return false;
    if (s->gp && !find_span(x, which, s->bwd.dst, l->more)) return false;
    if (s->gp && s->gp->wgt.i && !find_span(x, which, s->wgt.dst, l->more)) return false;
    if (s->gp && !makes_gradients(x, s, s->gp->wgt.i ? s->wgt.dst : s->bwd.dst, k / mb->nreplicas))
      return false;
  }
  return true;
}

// Is every layer that stands for others updated by one call with all of its weights, so that there is a call
// more for each of the others? Calls may begin in the middle of layers: then each has the end of one and the
// beginning of the next, and the one that begins in the layer stands for the others.
static bool updated_alike(const probing *x) {
  const main_build *mb = &x->mb;
  const func_info *f = func_get(mb->p, mb->b.f);
  u32 *span_of = ZNEWN(mb->x->a, u32, f->nparams + 1), n = 0;
  for (u32 i = 0; i < mb->m->nparams; i++)
    if (mb->home[i].v && main_trains(mb, i + 1)) span_of[mb->home[i].v] = x->weight_span[i];
  for (u32 i = 0; i < mb->m->nparams; i++) n = MAX(n, x->weight_span[i]);
  struct {
    u32 weights, calls, first; // first: the first call
  } *span = arena_alloc(mb->x->a, sizeof *span * (n + 1));
  memset(span, 0, sizeof *span * (n + 1));
  for (u32 v = 1; v <= f->nparams; v++) span[span_of[v]].weights++;
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *in = &f->body.v[k];
    if (!(in->flags & INSTR_UPDATE) || in->op != OP_call) continue;
    u32 weights = 0, of = 0;
    for (u32 o = 0; o < in->nopd; o++) {
      const value v = opd_of(f, in, o);
      if (v > f->nparams || f->params.v[v - 1].r != ROLE_WEIGHT) continue;
      weights++;
      if (span_of[v] && of && span_of[v] != of) return false;
      if (span_of[v]) of = span_of[v];
    }
    if (!of) continue;
    const bool begins = span_of[opd_of(f, in, 0)] == of;
    if (weights != span[of].weights || span[of].calls++ > 1) return false;
    if (span[of].calls == 1)
      span[of].first = k + 1;
    else if (!begins || f->body.v[span[of].first - 1].callee.i != in->callee.i)
      return false;
  }
  for (u32 k = 1; k <= n; k++) {
    if (span[k].calls != 1) continue;
    const instr *in = &f->body.v[span[k].first - 1];
    for (u32 o = 0; o < in->nopd; o++) {
      const value v = opd_of(f, in, o);
      if (v <= f->nparams && f->params.v[v - 1].r == ROLE_WEIGHT && span_of[v] != k) return false;
    }
  }
  return true;
}

static void describe_layers(const probing *x, sim_pipeline *out) {
  const main_build *mb = &x->mb;
  const func_info *f = func_get(mb->p, mb->b.f);
  u32 *instr_more = ZNEWN(x->a, u32, f->body.n + 1), *param_more = ZNEWN(x->a, u32, f->nparams + 1);
  for (u32 k = 0; k < mb->more.n; k += 2) instr_more[mb->more.v[k] - 1] = mb->more.v[k + 1];
  for (u32 i = 0; i < mb->m->nparams; i++) {
    if (mb->home[i].v) param_more[mb->home[i].v - 1] = mb->weight_more[i];
    for (u32 j = 0; j < OPTIM_STATES; j++)
      if (mb->state[j][i]) param_more[mb->state[j][i] - 1] = mb->weight_more[i];
  }
  out->nspans = x->span.n, out->span = x->span.v;
  out->main_more = instr_more, out->param_more = param_more;
}

// Does main return what replicas have on several places other than as a sum? Then every microbatch of the others is
// sent after the tasks, and a probe has fewer of them than the plan.
static bool gathers_microbatches(const main_build *mb) {
  const space *sp = mb->p->sp;
  for (u32 i = 0; mb->nreplicas > 1 && i < mb->m->rets.n; i++) {
    const value v = mb->m->rets.v[i];
    const stage_build *s = main_maker(mb, &mb->stage[0], v);
    if (!s) continue;
    const layout lay = s->out[mb->out_of[v]];
    const reduction part = layout_part_of(sp, lay, mb->time);
    if (layout_split_of(sp, lay, mb->time) || (part != RED_NONE && part != RED_SUM)) return true;
  }
  return false;
}

// Do several places have a copy of a parameter together, which the last of their tasks gives back, and may that be a task
// of either of two? In one replica it is the last backward of the first stage that reads it.
static bool shares_copies(const main_build *mb) {
  for (u32 k = 0; k < mb->copies.n; k++) {
    const stage_build *first = NULL;
    const mesh_param *x = &mb->copies.v[k];
    for (u32 i = 0; i < mb->nstages; i++) {
      const stage_build *s = &mb->stage[i];
      bool reads = false;
      for (u32 j = 0; j < s->src->nweights + s->src->ninputs && !reads; j++)
        reads = (j < s->src->nweights ? s->src->weight[j] : s->src->input[j - s->src->nweights]) == x->of;
      if (!reads || main_param(mb, x->of, s->g) != x) continue;
      if (first && (first->replica != s->replica || (first->place != s->place && s->gp && s->gp->wgt.i)))
        return true;
      if (!first) first = s;
    }
  }
  return false;
}

// Of sums beside the last backward of a stage; 0: there are none.
static u8 sum_stream(const probing *x) {
  const sym name = x->mb.x->pn->sum_stream;
  return name.i ? (u8)stream_of(x->mb.p, name).i : 0;
}

static void describe(probing *x, sim_pipeline *out) {
  main_build *mb = &x->mb;
  group *g = NEWN(x->a, group, mb->nplaces);
  u16 *place = NEWN(x->a, u16, mb->nstages);
  u32 *micro = NEWN(x->a, u32, mb->nreplicas);
  for (u32 r = 0; r < mb->nreplicas; r++)
    micro[r] = mb->nreplicas == 1 ? mb->K : mb->x->pn->replicas[r].micro;
  bool *wide = any_wide(mb) ? ZNEWN(x->a, bool, mb->nstages) : NULL;
  memset(g, 0, mb->nplaces * sizeof *g);
  for (u32 i = 0; i < mb->nstages; i++) {
    place[i] = (u16)mb->stage[i].place;
    if (wide && mb->stage[i].on.n > 1)
      wide[i] = true;
    else
      g[mb->stage[i].place] = mb->stage[i].g;
  }
  bool outside = shares_copies(mb) || gathers_microbatches(mb);
  for (u32 q = 0; q < mb->nplaces; q++) outside |= !g[q].i; // nothing lies on that place alone
  for (u32 k = 0; k < x->nlinks && sum_stream(x); k++)      // sums wait for sends there
    outside |= x->link[k].strm[0] == sum_stream(x) || x->link[k].strm[1] == sum_stream(x);
  drop_local_links(x);
  *out = (sim_pipeline){.nplaces = mb->nplaces,
                        .nstages = mb->nstages,
                        .nlinks = x->nlinks,
                        .npieces = x->piece.n,
                        .nreplicas = mb->nreplicas,
                        .micro = micro,
                        .apart = x->apart,
                        .outside = outside,
                        .sums = sum_stream(x),
                        .group = g,
                        .alike = x->alike,
                        .with = x->with,
                        .place = place,
                        .like = x->like,
                        .wide = wide,
                        .link = x->link,
                        .piece = x->piece.v,
                        .nleft = x->left.n,
                        .left = x->left.v,
                        .ending = x->ending};
}

static void find_ending(probing *x, plan_probed *out) {
  const bool kept =
      x->find && !x->apart && !x->mb.x->pn->sum_stream.i; // else it waits for what tasks have summed
  out->nending = kept ? main_ending(&x->mb, x->alike, x->a, &out->ending) : 0;
  x->ending = out->nending ? x->find(x->arg, out->ending, out->nending) : NULL;
  x->mb.no_ending = x->ending != NULL;
}

// few: NULL: all layers. *ok false without a diagnostic: not every layer left out is like those that are
// there.
static prog *probe(planner *pl, const plan *pn, cost_model *k, probing x, const fewer_layers *few,
                   plan_probed *out) {
  apply ap;
  arena *a = x.a;
  x.m = k ? cost_model_machine(k) : NULL;
  x.period = x.m ? machine_period(x.m) : 0;
  bool ok = apply_open(&ap, pl, pn, k);
  if (ok) {
    main_build *mb = &x.mb;
    main_open(mb, &ap, 3);
    if (few) note_layers(&x, few);
    ok = main_stages(mb) && (!few || find_spans(&x, few));
    x.apart = mb->copies.n || any_wide(mb) || (mb->nreplicas > 1 && !plan_is_mirrored(pn));
    ok = ok && !(few && x.apart); // what is sent before the tasks and after them is of every layer
    if (ok) {
      emit_begin(mb);
      main_graph(mb, a, &out->graph);
      x.apart ? find_apart(&x) : find_alike(&x);
      make_links(&x);
      mb->active = ZNEWN(ap.a, bool, mb->nstages);
      find_ending(&x, out);
      for (u32 i = 0; i < mb->nstages; i++)
        mb->active[i] = x.ending ? x.like[i] == i : x.alike[mb->stage[i].place] == mb->stage[i].place;
      ok = main_params(mb) && main_sums(mb) && write_out(&x) && (!few || x.ending || updated_alike(&x));
    }
    if (ok) describe(&x, &out->pipeline);
    if (ok && few) describe_layers(&x, &out->pipeline);
    memcpy(out->storage_split, ap.storage_split, sizeof out->storage_split);
  }
  return apply_close(&ap, ok);
}

prog *plan_probe_tasks(planner *pl, const plan *pn, cost_model *k, arena *a, bool all_layers,
                       plan_find_ending *find, void *arg, plan_probed *out) {
  fewer_layers few;
  arena *tmp = arena_new();
  const u32 before = diag_count(pl->src->c);
  const bool measured = k && cost_model_machine(k)->profile; // prices depend on the plan
  const probing x = {.a = a, .find = measured ? NULL : find, .arg = arg};
  prog *p = NULL;
  // Of a layer that stands for others what comes after the tasks would wait for one sum.
  if (!all_layers && !pn->sum_stream.i && !plan_lies_wide(pn) && plan_fewer_layers(pl, pn, tmp, &few)) {
    p = probe(few.pl, few.pn, k, x, &few, out);
    if (!p) diag_truncate(pl->src->c, before); // the whole says it with its own names
  }
  arena_free(tmp);
  if (!p) p = probe(pl, pn, k, x, NULL, out);
  if (!p || plan_measured(pl, pn, k, p)) return p;
  prog_free(p);
  return NULL;
}

prog *plan_probe(planner *pl, const plan *pn, cost_model *k, arena *a, bool all_layers, plan_probed *out) {
  return plan_probe_tasks(pl, pn, k, a, all_layers, NULL, NULL, out);
}
