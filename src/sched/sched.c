// sched.c - schedules as values: the rows of schedules.def, how one is made of a row and a shape, and when
// two are equal.
#include "sched/internal.h"
#include <stdlib.h>
#include <strings.h>

static const struct {
  sched_row row;
  sched_task *(*fill)(const sched_shape *s, u32 place, sched_task *t);
  void (*fill_all)(const sched_shape *s, sched_task *t); // or this
} rows[] = {
#define ANY            CHUNKS_ANY
#define FILL_PLACE(id) .fill = fill_##id
#define FILL_ALL(id)   .fill_all = fill_##id
#define SCHEDULE(id, name, aliases, about, chunks, group, split, placement, least, multiple, weights, ahead, \
                 by)                                                                                         \
  {{name, aliases, about, chunks, group, SPLIT_##split, PLACED_##placement, least, multiple,                 \
    WEIGHTS_##weights, AHEAD_##ahead},                                                                       \
   FILL_##by(id)},
#include "sched/schedules.def"
#undef SCHEDULE
#undef FILL_PLACE
#undef FILL_ALL
#undef ANY
};

char sched_letter(task_kind k) {
  static const char letter[] = {
#define KIND(id, ch, about) ch,
#include "sched/kinds.def"
#undef KIND
  };
  assert(k < TASK_KINDS);
  return letter[k];
}

task_name name_of(const sched_task *t) {
  task_name x;
  char letter = t->kind < TASK_KINDS ? sched_letter((task_kind)t->kind) : '?';
  int n = snprintf(x.s, sizeof x.s, "%u%c%u", t->stage, letter, t->mb);
  if (t->replica) n += snprintf(x.s + n, sizeof x.s - (size_t)n, "r%u", t->replica);
  if (t->pass) n += snprintf(x.s + n, sizeof x.s - (size_t)n, "p%u", t->pass);
  if (t->version) snprintf(x.s + n, sizeof x.s - (size_t)n, "v%u", t->version);
  return x;
}

// ---- rows ---------------------------------------------------------------------------------------------
const sched_row *sched_row_of(u32 i) { return i < COUNT_OF(rows) ? &rows[i].row : NULL; }

// Calls f with every name of a row, a word at a time; true as soon as f is.
static bool any_name(const sched_row *r, bool (*f)(void *arg, const char *name, size_t n), void *arg) {
  if (f(arg, r->name, strlen(r->name))) return true;
  for (const char *s = r->aliases; *s;) {
    size_t n = strcspn(s, ",");
    if (f(arg, s, n)) return true;
    s += n + (s[n] == ',');
  }
  return false;
}

static bool is_word(void *arg, const char *name, size_t n) {
  const char *word = arg;
  return strlen(word) == n && !strncasecmp(word, name, n);
}

static u32 row_number(const char *name) {
  for (u32 i = 0; i < COUNT_OF(rows); i++)
    if (any_name(&rows[i].row, is_word, (void *)(uintptr_t)name)) return i;
  return COUNT_OF(rows);
}

const sched_row *sched_row_find(const char *name) { return sched_row_of(row_number(name)); }

// ---- versions of weights --------------------------------------------------------------------------------
u32 sched_update_group(const sched_row *r, const sched_shape *s) {
  return !sched_is_asynchronous(r) || !s->backward ? 0
         : r->weights == WEIGHTS_STASHED           ? 1
         : s->group                                ? s->group
                                                   : s->places;
}

u32 sched_version(const sched_row *r, const sched_shape *s, u32 stage, u32 mb) {
  const u32 group = sched_update_group(r, s);
  const u32 delay = r->weights == WEIGHTS_STASHED ? s->places - 1 - stage : 1, turn = group ? mb / group : 0;
  return turn > delay ? turn - delay : 0;
}

u32 sched_versions(const sched_row *r, const sched_shape *s, u32 stage) {
  if (!sched_update_group(r, s)) return 1;
  return r->weights == WEIGHTS_STASHED ? s->places - stage : 2;
}

// ---- equality -----------------------------------------------------------------------------------------
u32 npasses_of(const sched *s) { return MAX(s->npasses, 1); }

u64 ntasks_of(const sched *s) {
  u64 n = 0;
  for (u32 p = 0; p < s->nplaces; p++) n += s->seq[p].n;
  return n;
}

// What tells a task apart from others but the microbatch.
static u64 task_bits(const sched_task *t) {
  return t->stage | (u64)t->kind << 16 | (u64)t->replica << 24 | (u64)t->pass << 32 | (u64)t->version << 40 |
         (u64)t->paired << 48;
}

static u64 edge_bits(const sched_edge *e) { return (u64)e->no_gradient << 32 | (u64)e->from << 16 | e->to; }

// All but the sequences.
static u64 hash_form(const sched *s) {
  u64 h = hash_step(hash_step(s->nstages, s->nplaces), s->nmicro);
  h = hash_step(hash_step(hash_step(hash_step(h, s->nreplicas), npasses_of(s)), s->backward), s->updates);
  for (u32 r = 0; s->micro && r < s->nreplicas; r++) h = hash_step(h, s->micro[r]);
  for (u32 k = 0; k < s->nreplicas * s->nstages; k++) {
    h = hash_step(h, s->at[k].n);
    for (u32 i = 0; i < s->at[k].n; i++) h = hash_step(h, s->at[k].v[i]);
  }
  h = hash_step(h, s->nedges);
  for (u32 k = 0; k < s->nedges; k++) h = hash_step(h, edge_bits(&s->edge[k]));
  for (u32 k = 0; k < s->nstages; k++) h = hash_step(h, s->split[k] | (s->forward && s->forward[k]) << 1);
  return h;
}

// Every fourth task in a hash of its own, for a step waits for the one before it.
static u64 hash_seq(const sched_seq *seq) {
  u64 x0 = seq->n, x1 = 0, x2 = 0, x3 = 0;
  const sched_task *t = seq->v, *end = t + seq->n;
#define WORD(t) (task_bits(t) ^ (u64)(t)->mb * 0x9E3779B97F4A7C15u)
  for (; end - t >= 4; t += 4) {
    x0 = hash_step(x0, WORD(t)), x1 = hash_step(x1, WORD(t + 1));
    x2 = hash_step(x2, WORD(t + 2)), x3 = hash_step(x3, WORD(t + 3));
  }
  for (; t < end; t++) x0 = hash_step(x0, WORD(t));
#undef WORD
  return hash_step(hash_step(hash_step(x0, x1), x2), x3);
}

void sched_seal(sched *s) {
  u64 h = hash_form(s);
  for (u32 p = 0; p < s->nplaces; p++) h = hash_step(h, hash_seq(&s->seq[p]));
  s->key = hash_u64(h, 0);
}

static bool same_places(const sched *a, const sched *b) {
  for (u32 k = 0; k < a->nreplicas * a->nstages; k++) {
    if (a->at[k].n != b->at[k].n) return false;
    for (u32 i = 0; i < a->at[k].n; i++)
      if (a->at[k].v[i] != b->at[k].v[i]) return false;
  }
  return true;
}

static bool same_tasks(const sched_seq *a, const sched_seq *b) {
  if (a->n != b->n) return false;
  for (u32 i = 0; i < a->n; i++)
    if (a->v[i].mb != b->v[i].mb || task_bits(&a->v[i]) != task_bits(&b->v[i])) return false;
  return true;
}

_Static_assert(sizeof(sched_shape) == 40, "sched_shape_same and sched_shape_hash know every field");
bool sched_shape_same(const sched_shape *x, const sched_shape *y) {
  bool same = x->places == y->places && x->chunks == y->chunks && x->micro == y->micro &&
              x->group == y->group && x->backward == y->backward && x->paired == y->paired &&
              x->nedges == y->nedges && x->times == y->times;
  for (u32 k = 0; same && k < x->nedges; k++)
    same = x->edge[k].from == y->edge[k].from && x->edge[k].to == y->edge[k].to &&
           x->edge[k].no_gradient == y->edge[k].no_gradient;
  return same;
}

u64 sched_shape_hash(const sched_shape *x) {
  const u32 words[] = {x->places, x->chunks, x->micro, x->group, x->backward, x->paired, x->nedges};
  u64 h = hash_bytes(words, sizeof words, 0);
  for (u32 k = 0; k < x->nedges; k++)
    h = hash_step(h, (u64)x->edge[k].from << 32 | (u64)x->edge[k].to << 1 | x->edge[k].no_gradient);
  return h;
}

bool sched_equal(const sched *a, const sched *b) {
  if (a == b) return true;
  if (a->key != b->key || a->nstages != b->nstages || a->nplaces != b->nplaces || a->nmicro != b->nmicro ||
      a->nreplicas != b->nreplicas || npasses_of(a) != npasses_of(b) || a->nedges != b->nedges ||
      a->backward != b->backward || a->updates != b->updates || !same_places(a, b))
    return false;
  for (u32 r = 0; r < a->nreplicas; r++)
    if (sched_micro(a, r) != sched_micro(b, r)) return false;
  for (u32 k = 0; k < a->nedges; k++)
    if (edge_bits(&a->edge[k]) != edge_bits(&b->edge[k])) return false;
  for (u32 k = 0; k < a->nstages; k++)
    if (a->split[k] != b->split[k] || (a->forward && a->forward[k]) != (b->forward && b->forward[k]))
      return false;
  for (u32 p = 0; p < a->nplaces; p++)
    if (!same_tasks(&a->seq[p], &b->seq[p])) return false;
  return true;
}

// ---- whose it is --------------------------------------------------------------------------------------
bool sched_has_versions(const sched *s) {
  for (u32 p = 0; p < s->nplaces; p++)
    for (u32 i = 0; i < s->seq[p].n; i++)
      if (s->seq[p].v[i].version) return true;
  return s->updates > 0;
}

static task_name name_at(const sched *s, u32 place, u32 i) {
  return i < s->seq[place].n ? name_of(&s->seq[place].v[i]) : (task_name){"nothing"};
}

// The first task that is not the other one's; false: there is none.
static bool first_other(const sched *a, const sched *b, u32 *place, u32 *index) {
  for (u32 p = 0; p < a->nplaces; p++)
    for (u32 i = 0; i < MAX(a->seq[p].n, b->seq[p].n); i++) {
      const sched_task *v = &a->seq[p].v[i], *w = &b->seq[p].v[i];
      if (i < a->seq[p].n && i < b->seq[p].n && v->mb == w->mb && task_bits(v) == task_bits(w)) continue;
      *place = p, *index = i;
      return true;
    }
  return false;
}

const sched_row *sched_row_of_versions(ctx *c, const sched *s, const char *name, sched_shape *shape,
                                       loc where) {
  const sched_row *r = sched_row_find(s->updates == 1 ? "pipedream" : "pipedream-2bw");
  arena *a = arena_new();
  u32 place, i;
  shape->group = s->updates == 1 ? 0 : s->updates;
  const sched *made = sched_make(c, a, r->name, shape, where);
  bool same = made && sched_equal(s, made);
  if (made && !same) {
    if (made->nplaces == s->nplaces && first_other(s, made, &place, &i))
      diag(c, E_PLAN, where,
           "%s updates weights after every %u microbatches, and is not %s: place %u runs %s as its task %u, "
           "not %s",
           name, s->updates, r->name, place, name_at(s, place, i).s, i + 1, name_at(made, place, i).s);
    else
      diag(c, E_PLAN, where,
           "%s updates weights after every %u microbatches, and its stages are not those of %s", name,
           s->updates, r->name);
    if (shape->group)
      diag_hint(c, "schedule=%s group=%u", r->name, shape->group);
    else
      diag_hint(c, "schedule=%s", r->name);
  }
  arena_free(a);
  return same ? r : NULL;
}

// ---- making one ---------------------------------------------------------------------------------------
typedef struct {
  near_name near;
  arena *a; // keeps the words: aliases are no strings of their own
} guess;

static bool try_name(void *arg, const char *name, size_t n) {
  guess *g = arg;
  near_try(&g->near, arena_strndup(g->a, name, n));
  return false;
}

const char *sched_row_near(arena *a, const char *name) {
  guess g = {near_to(name, strlen(name)), a};
  for (u32 i = 0; i < COUNT_OF(rows); i++) near_try(&g.near, rows[i].row.name); // of equals before an alias
  for (u32 i = 0; i < COUNT_OF(rows); i++) any_name(&rows[i].row, try_name, &g);
  return g.near.name;
}

void unknown_schedule(ctx *c, const char *name, loc where) {
  arena *a = arena_new();
  const char *near = sched_row_near(a, name);
  strbuf all = {.a = a};
  for (u32 i = 0; i < COUNT_OF(rows); i++) sb_fmt(&all, "%s%s", i ? ", " : "", rows[i].row.name);
  diag(c, E_PLAN, where, "unknown schedule '%s'", name);
  if (near)
    diag_hint(c, "did you mean schedule=%s? There are %s", near, sb_str(&all));
  else
    diag_hint(c, "there are %s, and files whose names end in .csv", sb_str(&all));
  arena_free(a);
}

static bool check_versions(ctx *c, const sched_row *r, const sched_shape *s, loc where) {
  const u32 group = s->group ? s->group : s->places;
  if (r->weights == WEIGHTS_STASHED && s->places > UINT8_MAX) {
    diag(c, E_LIMIT, where, "%s: %u places keep %u versions of weights; at most %d", r->name, s->places,
         s->places, UINT8_MAX);
    return false;
  }
  if (r->weights != WEIGHTS_DOUBLE || !s->backward) return true;
  if (group < s->places) {
    diag(c, E_PLAN, where, "%s: an update of %u microbatches comes too late for %u places", r->name, group,
         s->places);
    diag_hint(c, "group=%u", s->places);
    return false;
  }
  if (s->micro % group == 0) return true;
  diag(c, E_PLAN, where, "%s: %u microbatches are not divisible by group=%u, those of an update", r->name,
       s->micro, group);
  diag_hint(c, "mb=%u", (s->micro / group + 1) * group);
  return false;
}

static bool refuse_multiple(ctx *c, const sched_row *r, u32 micro, loc where) {
  const u32 below = micro / r->multiple * r->multiple, above = below + r->multiple;
  diag(c, E_PLAN, where, "%s deals microbatches to %u directions, %u at a time; got %u, not a multiple of %u",
       r->name, sched_replicas(r), r->multiple / sched_replicas(r), micro, r->multiple);
  if (!below)
    diag_hint(c, "mb=%u", above);
  else
    diag_hint(c, "mb=%u or mb=%u", below, above);
  return false;
}

// The first row that takes any number of chunks.
static const char *any_chunks(void) {
  u32 i = 0;
  while (rows[i].row.chunks != CHUNKS_ANY) i++;
  return rows[i].row.name;
}

static bool check_sizes(ctx *c, const sched_row *r, const sched_shape *s, loc where) {
  const char *zero = !s->places ? "places" : !s->chunks ? "chunks" : !s->micro ? "microbatches" : NULL;
  if (zero) {
    diag(c, E_PLAN, where, "%s: %s must be 1 or more; got 0", r->name, zero);
    return false;
  }
  if (r->chunks && s->chunks != r->chunks) {
    char many[32];
    snprintf(many, sizeof many, "%u %s", r->chunks, sched_passes(r) > 1 ? "passes" : "chunks");
    diag(c, E_PLAN, where, "%s runs %s on each place; got %u", r->name, r->chunks == 1 ? "one chunk" : many,
         s->chunks);
    diag_hint(c, "v=%u, or schedule=%s", r->chunks, any_chunks());
    return false;
  }
  if (s->micro < (u64)r->least * s->places) {
    diag(c, E_PLAN, where, "%s needs %u microbatches for each place; got %u for %u places", r->name, r->least,
         s->micro, s->places);
    diag_hint(c, "mb=%llu", (unsigned long long)r->least * s->places);
    return false;
  }
  if (r->placement == PLACED_BOTH && s->places % 2) {
    diag(c, E_PLAN, where, "%s needs an even number of places; got %u", r->name, s->places);
    diag_hint(c, "pp=%u or pp=%u", s->places + 1, s->places > 1 ? s->places - 1 : 2);
    return false;
  }
  if (s->micro % r->multiple && !refuse_multiple(c, r, s->micro, where)) return false;
  if (sched_is_asynchronous(r) && !check_versions(c, r, s, where)) return false;
  u64 stages = sched_nstages(r, s->places, s->chunks),
      each = 1 + (s->backward ? 1 + (r->split != SPLIT_NO) : 0),
      all = (u64)s->places * (s->chunks + sched_nwide(r)); // tasks on several places stand on each
  if (stages > STAGES_MAX) {
    diag(c, E_LIMIT, where, "%s: places %u x chunks %u = %llu stages; at most %d", r->name, s->places,
         s->chunks, (unsigned long long)stages, STAGES_MAX);
    return false;
  }
  if (all * each > (u64)TASKS_MAX / s->micro) {
    diag(c, E_LIMIT, where, "%s: %llu stages x %u microbatches x %llu tasks each are more than %d tasks",
         r->name, (unsigned long long)stages, s->micro, (unsigned long long)each, TASKS_MAX);
    return false;
  }
  return true;
}

static int by_ends(const void *a, const void *b) {
  const sched_edge *x = a, *y = b;
  return x->from != y->from ? (int)x->from - y->from : (int)x->to - y->to;
}

// A chain, or the edges of the shape in order.
static bool set_edges(ctx *c, arena *a, const char *name, const sched_shape *shape, loc where, sched *s) {
  if (!shape->nedges) {
    sched_edge *e = NEWN(a, sched_edge, s->nstages);
    for (u32 k = 0; k + 1 < s->nstages; k++) e[k] = (sched_edge){.from = (u16)k, .to = (u16)(k + 1)};
    s->nedges = s->nstages - 1, s->edge = e;
    return true;
  }
  sched_edge *e = arena_dup(a, shape->edge, shape->nedges * sizeof *e);
  qsort(e, shape->nedges, sizeof *e, by_ends);
  for (u32 k = 0; k < shape->nedges; k++) {
    const char *why = e[k].to >= s->nstages             ? "there is no such stage"
                      : e[k].from >= e[k].to            ? "a stage reads earlier stages only"
                      : k && !by_ends(e + k - 1, e + k) ? "it is listed twice"
                                                        : NULL;
    if (!why) continue;
    diag(c, E_PLAN, where, "%s: stage %u reads stage %u of %u stages: %s", name, e[k].to, e[k].from,
         s->nstages, why);
    return false;
  }
  s->nedges = shape->nedges, s->edge = e;
  return true;
}

static void set_places(arena *a, const sched_shape *shape, const sched_row *row, sched *s) {
  sched_places *at = NEWN(a, sched_places, s->nreplicas * s->nstages);
  u16 *place = NEWN(a, u16, s->nplaces);
  bool *in_two = ZNEWN(a, bool, s->nstages);
  for (u32 r = 0; r < s->nplaces; r++) place[r] = (u16)r;
  for (u32 r = 0; r < s->nreplicas; r++)
    for (u32 k = 0; k < s->nstages; k++)
      at[r * s->nstages + k] = (sched_places){sched_is_wide(row, s->nplaces, k) ? s->nplaces : 1,
                                              &place[sched_place(row, s->nplaces, r, k)]};
  for (u32 k = 0; k < s->nstages; k++) in_two[k] = row->split != SPLIT_NO && shape->backward;
  s->at = at, s->split = in_two;
}

// Tasks of a place, at most.
static u32 tasks_of_place(u32 row, const sched_shape *shape) {
  const bool split = rows[row].row.split != SPLIT_NO;
  const u32 stages = shape->chunks + sched_nwide(&rows[row].row);
  if (sched_passes(&rows[row].row) > 1)
    return shape->micro * (sched_passes(&rows[row].row) + shape->backward);
  return stages * shape->micro * (1 + (shape->backward ? 1 + split : 0));
}

static sched_seq fill_place(u32 row, const sched_shape *shape, u32 place, sched_task *t) {
  const u32 most = tasks_of_place(row, shape), n = (u32)(rows[row].fill(shape, place, t) - t);
  assert(n == most || (rows[row].row.split == SPLIT_SOME && n < most));
  (void)most;
  return (sched_seq){n, t};
}

static void set_tasks(arena *a, u32 row, const sched_shape *shape, sched *s) {
  const u32 n = tasks_of_place(row, shape);
  sched_seq *seq = NEWN(a, sched_seq, s->nplaces);
  s->seq = seq;
  if (rows[row].fill_all) {
    sched_task *t = NEWN(a, sched_task, (size_t)n * s->nplaces);
    rows[row].fill_all(shape, t);
    for (u32 r = 0; r < s->nplaces; r++) seq[r] = (sched_seq){n, t + (size_t)n * r};
    return;
  }
  for (u32 r = 0; r < s->nplaces; r++) // each by itself: blocks of this size are kept by arenas
    seq[r] = fill_place(row, shape, r, NEWN(a, sched_task, n));
}

void sched_set_micro(arena *a, sched *s, const u32 *micro) {
  bool equal = true;
  for (u32 r = 0; r < s->nreplicas; r++) {
    s->nmicro = MAX(s->nmicro, micro[r]);
    equal = equal && micro[r] == micro[0];
  }
  s->micro = equal ? NULL : arena_dup(a, micro, s->nreplicas * sizeof *micro);
}

const sched *sched_of_replicas(arena *a, u32 nstages, u32 nplaces, u32 nreplicas, const u32 *micro,
                               const u16 *place, const sched_places *several, const sched_seq *seq) {
  sched *s = NEW(a, sched);
  const u32 all = nreplicas * nstages;
  *s = (sched){.name = "text", .nstages = nstages, .nplaces = nplaces, .nreplicas = nreplicas, .npasses = 1};
  sched_set_micro(a, s, micro);
  sched_places *at = NEWN(a, sched_places, all + 1);
  sched_edge *e = ZNEWN(a, sched_edge, nstages + 1);
  sched_seq *own = NEWN(a, sched_seq, nplaces + 1);
  bool *split = ZNEWN(a, bool, nstages + 1);
  const u16 *on = arena_dup(a, place, all * sizeof *place);
  for (u32 k = 0; k < all; k++)
    at[k] = !several ? (sched_places){1, on + k}
                     : (sched_places){several[k].n, arena_dup(a, several[k].v, several[k].n * sizeof *on)};
  for (u32 k = 1; k < nstages; k++) e[k - 1] = (sched_edge){.from = (u16)(k - 1), .to = (u16)k};
  for (u32 p = 0; p < nplaces; p++) {
    own[p] = (sched_seq){seq[p].n, arena_dup(a, seq[p].v, seq[p].n * sizeof *seq[p].v)};
    for (u32 i = 0; i < seq[p].n; i++) {
      const sched_task *t = &seq[p].v[i];
      s->backward |= t->kind != TASK_F;
      if (t->kind > TASK_B && t->stage < nstages) split[t->stage] = true;
    }
  }
  s->at = at, s->edge = e, s->nedges = nstages ? nstages - 1 : 0, s->seq = own, s->split = split;
  sched_seal(s);
  return s;
}

const sched *sched_with(arena *a, const sched *s, u32 nedges, const sched_edge *edge, const bool *forward) {
  sched *x = arena_dup(a, s, sizeof *s);
  x->nedges = nedges, x->edge = arena_dup(a, edge, nedges * sizeof *edge);
  x->forward = forward ? arena_dup(a, forward, s->nstages * sizeof *forward) : NULL;
  sched_seal(x);
  return x;
}

static sched *draft(arena *a, u32 row, const sched_shape *shape) {
  sched *s = NEW(a, sched);
  *s = (sched){.name = rows[row].row.name,
               .nstages = (u32)sched_nstages(&rows[row].row, shape->places, shape->chunks),
               .nplaces = shape->places,
               .nmicro = shape->micro / sched_replicas(&rows[row].row),
               .nreplicas = sched_replicas(&rows[row].row),
               .npasses = sched_passes(&rows[row].row),
               .updates = sched_update_group(&rows[row].row, shape),
               .backward = shape->backward};
  set_places(a, shape, &rows[row].row, s);
  return s;
}

// The fewest microbatches in a group that never deadlock: as many as there are places, without a short group
// at the end.
static u32 good_group(const sched_shape *s) {
  u32 g = s->places;
  while (g < s->micro && s->micro % g) g++;
  return g;
}

// With groups smaller than the places a place may wait for a gradient that needs its own next forward. That
// depends on the figures, so the schedule is tried; tests/unit/test_sched.c tries every small one.
static bool may_deadlock(const sched_row *r, const sched_shape *x) {
  const u32 rest = x->micro % x->group;
  const bool leaves = x->micro > x->group && rest && rest < x->places;
  return r->group && x->backward && x->chunks > 1 && (x->group < x->places || leaves);
}

static bool check_groups(ctx *c, const sched_row *r, const sched_shape *shape, loc where, const sched *s) {
  const u32 rest = shape->micro % shape->group;
  const bool small = shape->group < shape->places;
  if (!may_deadlock(r, shape) || sched_runs(s, NULL)) return true;
  if (small)
    diag(c, E_DEADLOCK, where, "%s: groups of %u microbatches, fewer than the %u places, deadlock with %u",
         r->name, shape->group, shape->places, shape->micro);
  else
    diag(c, E_DEADLOCK, where,
         "%s: %u microbatches in groups of %u leave %u, fewer than the %u places: deadlock", r->name,
         shape->micro, shape->group, rest, shape->places);
  if (small)
    diag_hint(c, "group=%u", good_group(shape));
  else
    diag_hint(c, "mb=%u or mb=%u, or group=%u", shape->micro - rest, shape->micro - rest + shape->group,
              good_group(shape));
  return false;
}

bool sched_possible(ctx *c, const sched_row *r, const sched_shape *x, loc where) {
  if (!check_sizes(c, r, x, where)) return false;
  if (!x->group || r->group) return true;
  diag(c, E_PLAN, where, "%s has no groups of microbatches; got group=%u", r->name, x->group);
  diag_hint(c, "leave out group");
  return false;
}

// All but the sequences. shape: with its group.
static sched *form_of(ctx *c, arena *a, const char *name, const sched_shape *given, loc where, u32 *of,
                      sched_shape *filled) {
  const u32 row = *of = row_number(name);
  if (row == COUNT_OF(rows)) {
    unknown_schedule(c, name, where);
    return NULL;
  }
  const sched_row *r = &rows[row].row;
  if (!sched_possible(c, r, given, where)) return NULL;
  sched_shape shape = *given;
  if (!r->group) shape.group = shape.micro;
  if (!shape.group) shape.group = shape.places;
  sched *s = draft(a, row, &shape);
  *filled = shape;
  return set_edges(c, a, r->name, &shape, where, s) ? s : NULL;
}

const sched *sched_make(ctx *c, arena *a, const char *name, const sched_shape *given, loc where) {
  sched_shape shape;
  u32 row;
  sched *s = form_of(c, a, name, given, where, &row, &shape);
  if (!s) return NULL;
  set_tasks(a, row, &shape, s);
  sched_seal(s);
  return check_groups(c, &rows[row].row, &shape, where, s) ? s : NULL;
}

const sched *sched_make_on(ctx *c, arena *a, const char *name, const sched_shape *given, loc where,
                           u32 nedges, const sched_edge *edge) {
  sched_shape shape;
  u32 row;
  sched *s = form_of(c, a, name, given, where, &row, &shape);
  if (!s) return NULL;
  set_tasks(a, row, &shape, s);
  s->nedges = nedges, s->edge = edge;
  return s;
}

bool sched_can_make(ctx *c, const char *name, const sched_shape *given, loc where) {
  arena *a = arena_new();
  sched_shape shape;
  u32 row;
  sched *s = form_of(c, a, name, given, where, &row, &shape);
  const bool tried = s && may_deadlock(&rows[row].row, &shape);
  if (tried) set_tasks(a, row, &shape, s);
  const bool ok = s && (!tried || check_groups(c, &rows[row].row, &shape, where, s));
  arena_free(a);
  return ok;
}

u64 sched_make_key(ctx *c, const char *name, const sched_shape *given, loc where,
                   void (*each)(void *arg, const sched_seq *seq), void *arg) {
  arena *a = arena_new();
  sched_shape shape;
  u32 row;
  sched *s = form_of(c, a, name, given, where, &row, &shape);
  const bool whole = s && (rows[row].fill_all || may_deadlock(&rows[row].row, &shape));
  if (whole) set_tasks(a, row, &shape, s);
  bool ok = s && (!whole || check_groups(c, &rows[row].row, &shape, where, s));
  u64 h = ok ? hash_form(s) : 0;
  sched_task *v = ok && !whole ? NEWN(a, sched_task, tasks_of_place(row, &shape)) : NULL;
  for (u32 p = 0; ok && p < s->nplaces; p++) {
    const sched_seq seq = whole ? s->seq[p] : fill_place(row, &shape, p, v);
    each(arg, &seq);
    h = hash_step(h, hash_seq(&seq));
  }
  arena_free(a);
  return ok ? hash_u64(h, 0) : 0;
}
