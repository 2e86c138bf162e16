// stages.c - which instructions of main each pipeline stage runs.
//
// Idea: what is dealt out is heavy: the calls of main and its products, or the calls alone where layers are
// counted. That decides the last heavy instruction of every stage. What lies between it and the next heavy
// one may go to either: the cut is where the fewest bytes cross.
#include "balance/balance.h"
#include "plan/plan.h"

typedef struct {
  planner *pl;
  prog *p;
  const func_info *m;
  arena *tmp;
  u32 from, n;         // instructions of main, from..n - 1, are dealt out
  u32 P, places;       // stages; places
  u32 *place;          // by stage
  bool again;          // the backward computes layers again
  bool passes;         // the layers are passed several times
  wide_parts wide;     // interlaced: what is between others, but no stage's (wide.wide NULL: nothing is)
  double *w;           // per instruction: its work; 0: not heavy
  const double *heavy; // the same of all, where layers are counted
  u32 *first, *cut;    // per stage but the last: it may be cut after first[s] to cut[s] instructions
} dealing;

// ---- work ---------------------------------------------------------------------------------------------
double *policy_work(planner *pl, arena *a, bool again) {
  const func_info *m = func_get(planner_source(pl), planner_source(pl)->main);
  double *w = plan_products(pl, a);
  for (u32 i = 0; again && i < m->body.n; i++)
    if (m->body.v[i].op == OP_call) w[i] *= 4.0 / 3; // four times its forward instead of three
  return w;
}

static u32 weigh(dealing *d) { // returns how many instructions are heavy
  u32 heavy = 0;
  d->w = policy_work(d->pl, d->tmp, d->again);
  for (u32 i = 0; i < d->n; i++) {
    if (i < d->from || (d->wide.wide && d->wide.wide[i])) d->w[i] = 0;
    heavy += d->w[i] > 0;
  }
  return heavy;
}

// ---- by cost ------------------------------------------------------------------------------------------
enum { WORK_OF_ALL = 1 << 30 };

// Of places as even as they can be, the earlier ones have less: they keep more activations alive.
static bool deal_by_cost(dealing *d) {
  u32 heavy = weigh(d);
  if (d->P > 1 && heavy < d->P) {
    diag(d->p->c, E_DIVIDE, d->m->where, "%u pipeline stages, but the model has only %u blocks and matmuls",
         d->P, heavy);
    const u32 chunks = d->P / d->places, least = MAX(heavy / MAX(chunks, 1u), 1u);
    if (d->P == heavy + 1) // the first stage has the embedding, the last one the head
      diag_hint(d->p->c, "layers=auto, which may leave the first and the last stage without a block%s",
                chunks > 1 ? ", or a smaller v" : "");
    else if (chunks > 1)
      diag_hint(d->p->c, "a smaller v, or pp=%u%s", least, least > 1 ? " at most" : "");
    else
      diag_hint_number(d->p->c, least, "pp=%u%s", least, heavy > 1 ? " at most" : "");
    return false;
  }
  if (d->P == 1) return true;
  double all = 0;
  u32 *at = NEWN(d->tmp, u32, heavy), n = 0;
  for (u32 i = 0; i < d->n; i++) all += d->w[i];
  i64 *work = NEWN(d->tmp, i64, heavy);
  for (u32 i = 0; i < d->n; i++)
    if (d->w[i] > 0) work[n] = MAX((i64)(d->w[i] / all * WORK_OF_ALL), 1), at[n++] = i;
  const i64 *const kinds[] = {work};
  const balance_passes in = {.nlayers = heavy,
                             .nkinds = 1,
                             .nplaces = d->places,
                             .nchunks = d->P / d->places,
                             .kind = ZNEWN(d->tmp, u32, d->places),
                             .place = d->place,
                             .time_ps = kinds};
  balance_chunked out;
  const bool ok = balance_chunks(d->tmp, &in, &out) == BALANCE_OK;
  assert(ok); // as many heavy instructions as stages
  for (u32 s = 0; ok && s + 1 < d->P; s++) {
    d->cut[s] = d->first[s] = at[out.end[s]];
    while (d->first[s] > d->from && d->w[d->first[s] - 1] == 0) d->first[s]--;
  }
  return ok;
}

// ---- by numbers ---------------------------------------------------------------------------------------
// What stands between the layers before a cut and those behind it: instructions [from, to) of main.
typedef struct {
  u32 from, to, first, last; // heavy ones: the first, one past the last; none: from, to
  bool any;                  // of a stage
} gap;

static gap gap_of(const dealing *d, const u32 *call, u32 ncalls, u32 done) {
  gap g = {.from = done ? call[done - 1] + 1 : d->from, .to = done < ncalls ? call[done] : d->n};
  g.first = g.from, g.last = g.to;
  for (u32 i = g.to; i-- > g.from;) {
    const bool own = !(d->wide.wide && d->wide.wide[i]);
    g.any = g.any || own;
    if (!own || d->heavy[i] <= 0) continue;
    if (g.last == g.to && d->heavy[g.first] <= 0) g.last = i + 1;
    g.first = i;
  }
  return g;
}

// A stage without layers has what stands there, which is not cut further.
static bool may_be_without(const dealing *d, const gap *g, u32 done, u32 ncalls, u32 stage, bool again,
                           loc at) {
  if (g->any && !again) return true;
  const char *where = !done            ? "before the first layer"
                      : done == ncalls ? "after the last layer"
                                       : "between the layers around it";
  if (!g->any)
    diag(d->p->c, E_DIVIDE, at, "layers: stage %u would be empty: nothing of a stage stands %s", stage,
         where);
  else
    diag(d->p->c, E_DIVIDE, at,
         "layers: stages %u and %u would have no layers: what stands %s is one stage at most", stage - 1,
         stage, where);
  diag_hint(d->p->c, "a number from 1 for stage %u, or layers=cost, which distributes single matmuls too",
            stage);
  return false;
}

// Every layer, a call of main, is in one stage: part[s] of them in stage s.
static bool deal_layers(dealing *d, const u32 *part, loc at) {
  u32 *call = NEWN(d->tmp, u32, d->n + 1), ncalls = 0, done = 0;
  for (u32 i = d->from; i < d->n; i++)
    if (d->m->body.v[i].op == OP_call) call[ncalls++] = i;
  d->heavy = plan_products(d->pl, d->tmp);
  for (u32 s = 0; s < d->P; s++) {
    done += part[s];
    const gap g = gap_of(d, call, ncalls, done);
    const bool without = !part[s], next = s + 1 < d->P && !part[s + 1];
    if (without && !may_be_without(d, &g, done, ncalls, s, s && !part[s - 1], at)) return false;
    if (s + 1 == d->P) break;
    d->first[s] = without ? g.last : g.from, d->cut[s] = next ? g.first : g.to;
  }
  return true;
}

// As many layers of every pass on a place: those of `layers`, or numbers that differ by one at most, larger ones first.
static bool deal_passes(dealing *d, const strategy *s, bool train, loc at) {
  u32 rest;
  const u32 L = policy_passes(d->pl, s, train, at, &rest), P = d->places;
  const choice_value x = s->layers;
  u32 *part = NEWN(d->tmp, u32, d->P);
  u64 sum = 0;
  for (u32 k = 0; k < x.nparts; k++) sum += x.part[k];
  if (!L) return false;
  if (L < P || (x.nparts && (x.nparts != P || sum != L))) {
    if (x.nparts) {
      diag(d->p->c, E_DIVIDE, at,
           "layers has %u numbers that add up to %llu, but a pass has %u layers on %u places", x.nparts,
           (unsigned long long)sum, L, P);
      diag_hint(d->p->c, "one number for each place that add up to %u, or layers=equal", L);
    } else {
      diag(d->p->c, E_DIVIDE, at, "%u places, but a pass through the model has only %u layers", P, L);
      diag_hint_number(d->p->c, L, "pp=%u%s", L, L > 1 ? " at most" : "");
    }
    return false;
  }
  for (u32 k = 0; k < d->P; k++) part[k] = x.nparts ? x.part[k % P] : L / P + (k % P < L % P);
  for (u32 k = 0; k < P; k++) {
    if (part[k]) continue;
    diag(d->p->c, E_DIVIDE, at, "layers: place %u has no layer of a pass", k);
    diag_hint(d->p->c, "numbers from 1 that add up to %u, or layers=equal", L);
    return false;
  }
  if (!deal_layers(d, part, at)) return false;
  for (u32 k = P - 1; k + 1 < d->P; k += P) d->cut[k] = MIN(d->cut[k], d->first[k] + rest);
  return true;
}

static u32 count_layers(const func_info *m) {
  u32 n = 0;
  for (u32 i = 0; i < m->body.n; i++) n += m->body.v[i].op == OP_call;
  return n;
}

// Of n layers, numbers that differ by one at most, the larger ones first.
static bool deal_equal(dealing *d, loc at) {
  u32 n = count_layers(d->m), *part = NEWN(d->tmp, u32, d->P);
  assert(d->P > 0);
  if (n < d->P) {
    diag(d->p->c, E_DIVIDE, at, "layers=equal: %u stages, but the model has %u repeated layers", d->P, n);
    diag_hint(d->p->c, "layers=cost distributes single matmuls too%s", n > 1 ? ", or use fewer stages" : "");
    return false;
  }
  for (u32 s = 0; s < d->P; s++) part[s] = n / d->P + (s < n % d->P);
  return deal_layers(d, part, at);
}

static bool deal_numbers(dealing *d, choice_value layers, loc at) {
  u32 n = count_layers(d->m);
  u64 sum = 0;
  for (u32 s = 0; s < layers.nparts; s++) sum += layers.part[s];
  if (layers.nparts != d->P) {
    const char *how = arena_printf(d->tmp, d->P > d->places ? "pp=%u x v=%u" : "pp=%u", d->places,
                                   d->P / MAX(d->places, 1u));
    diag(d->p->c, E_DIVIDE, at, "layers has %u number%s, but there are %u stages (%s)", layers.nparts,
         layers.nparts == 1 ? "" : "s", d->P, how);
    if (d->P > d->places)
      diag_hint(d->p->c, "one number for each stage");
    else
      diag_hint(d->p->c, "one number for each stage, or pp=%u", layers.nparts);
    return false;
  }
  if (sum != n) {
    diag(d->p->c, E_DIVIDE, at, "layers adds up to %llu, but the model has %u layers",
         (unsigned long long)sum, n);
    diag_hint(d->p->c, "use numbers that add up to %u, or layers=equal", n);
    return false;
  }
  return deal_layers(d, layers.part, at);
}

// ---- cuts ---------------------------------------------------------------------------------------------
// Bytes alive between instruction `at` and the next.
static i64 crossing(const prog *p, const func_info *m, const u32 *last, u32 at) {
  i64 bytes = 0;
  for (value v = 1; v < m->values.n; v++)
    if (m->values.v[v].def && m->values.v[v].def <= at && last[v] > at)
      bytes += shape_bytes(&val_type(p, m, v)->s);
  return bytes;
}

// Of the places where stage s may be cut, the last of the cheapest.
static u32 cheapest_cut(const dealing *d, const u32 *last, u32 s, u32 from) {
  u32 to = d->cut[s];
  i64 least = crossing(d->p, d->m, last, to);
  for (u32 at = to; at-- > d->first[s] && at >= from;) {
    i64 c = crossing(d->p, d->m, last, at);
    if (c < least) least = c, to = at;
  }
  return to;
}

static const u32 *ends_of(dealing *d, const strategy *s) {
  u32 *last = ZNEWN(d->tmp, u32, d->m->values.n), *end = NEWN(d->tmp, u32, d->P), from = d->from + 1;
  for (u32 i = 0; i < d->m->body.n; i++)
    for (u32 k = 0; k < d->m->body.v[i].nopd; k++) last[opd_of(d->m, &d->m->body.v[i], k)] = i + 1;
  for (u32 k = 0; k < d->P; k++) {
    end[k] = k + 1 == d->P ? d->n : cheapest_cut(d, last, k, from);
    from = end[k] + 1;
  }
  planner_keep_ends(d->pl, &(planner_ends){d->P, d->place, s->layers, d->again, d->wide.wide, d->passes},
                    end);
  return end;
}

static const u32 *deal(dealing *d, const strategy *s, bool train, loc at) {
  d->w = ZNEWN(d->tmp, double, d->n + 1);
  d->first = ZNEWN(d->tmp, u32, d->P), d->cut = ZNEWN(d->tmp, u32, d->P);
  bool ok = d->passes                                      ? deal_passes(d, s, train, at)
            : s->layers.nparts                             ? deal_numbers(d, s->layers, at)
            : choice_is(CHOICE_layers, s->layers, "equal") ? deal_equal(d, at)
                                                           : deal_by_cost(d);
  return ok ? ends_of(d, s) : NULL;
}

static void put_segment(plan *pn, u32 from, u32 to, u8 axis, const u32 *place) {
  plan_segment *ps = &pn->segments[pn->nsegments++];
  *ps = (plan_segment){.from = from + 1, .to = to};
  if (axis && place) ps->on.nfix = 1, ps->on.fix[0] = (plan_fix){axis, *place};
}

// Stretches [from, to) of a stage, and between them what lies on all places.
static void put_segments(plan *pn, const dealing *d, u32 from, u32 to, u8 axis, const u32 *place) {
  const bool *wide = d->wide.wide;
  for (u32 i = from, end; i < to; i = end) {
    for (end = i + 1; end < to && (!wide || wide[end] == wide[i]);) end++;
    plan_segment *last = pn->nsegments ? &pn->segments[pn->nsegments - 1] : NULL;
    if (wide && wide[i] && last && !last->on.nfix)
      last->to = end; // goes on from the stage before
    else
      put_segment(pn, i, end, axis, wide && wide[i] ? NULL : place);
  }
}

bool policy_stages(planner *pl, arena *a, plan *pn, u8 axis, const strategy *s, const sched *file, loc at) {
  prog *p = planner_source(pl);
  const func_info *m = func_get(p, p->main);
  arena *tmp = arena_new();
  dealing d = {.pl = pl,
               .p = p,
               .m = m,
               .tmp = tmp,
               .P = s->pp.n * s->v.n,
               .places = s->pp.n,
               .again = pn->train && choice_is(CHOICE_recompute, s->recompute, "full")};
  d.n = m->body.n;
  d.passes = !file && sched_passes(sched_row_of(s->schedule.n)) > 1;
  if (policy_is_interlaced(s)) {
    if (!policy_wide_parts(pl, tmp, s, at, &d.wide)) {
      arena_free(tmp);
      return false;
    }
    d.from = d.wide.head, d.n = d.wide.tail;
  }
  d.place = NEWN(tmp, u32, d.P);
  for (u32 k = 0; k < d.P; k++)
    d.place[k] = file ? file->at[k + (d.wide.wide != NULL)].v[0]
                      : sched_place(sched_row_of(s->schedule.n), d.places, 0, k + (d.wide.wide != NULL));
  key_words key = {0}; // of a word, not of numbers
  *vec_push(tmp, &key) = (u64)KEY_STAGES << 2 | (u64)d.passes << 1 | (d.wide.wide != NULL);
  *vec_push(tmp, &key) = (u64)d.P << 32 | s->layers.n;
  const u32 *end = planner_kept_ends(
                pl, &(planner_ends){d.P, d.place, s->layers, d.again, d.wide.wide, d.passes}),
            said = diag_count(p->c);
  if (!end && (s->layers.nparts || !planner_refused(pl, &key))) {
    end = deal(&d, s, pn->train, at.i ? at : m->where);
    if (!end && !s->layers.nparts) planner_keep_refusal(pl, &key, said);
  }
  pn->nsegments = 0;
  pn->segments = end ? NEWN(a, plan_segment, d.wide.wide ? m->body.n : d.P + 1) : NULL;
  if (end && d.from) put_segment(pn, 0, d.from, 0, NULL);
  for (u32 k = 0; end && k < d.P; k++)
    put_segments(pn, &d, k ? end[k - 1] : d.from, end[k], axis, &d.place[k]);
  if (end && d.n < m->body.n) put_segment(pn, d.n, m->body.n, 0, NULL);
  arena_free(tmp);
  return end != NULL;
}
