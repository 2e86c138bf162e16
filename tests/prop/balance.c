// balance.c - stages of random problems against enumeration from the definitions. Shares: shares.c.
#include "balance/balance.h"
#include "test.h"
#include <stdlib.h>

static u64 R;
static i64 few(i64 n) { return (i64)(rng_next(&R) % (u64)n); }

// ---- stages -------------------------------------------------------------------------------------------
enum { KINDS = 3, LAYERS = 9, DEVICES = 6 };
typedef struct {
  u32 n, kind[LAYERS], end[LAYERS]; // by stage
  i64 tau, total;
} plan;
typedef struct {
  balance_line in;
  balance_devices kind[KINDS];
  i64 time[KINDS][LAYERS], fixed[LAYERS], kept[LAYERS];
  const i64 *times[KINDS];
  i64 cut_bytes[LAYERS], link[KINDS][KINDS];
} model;

static i64 link_time(const void *arg, u32 cut, u32 from, u32 to) {
  const model *m = arg;
  assert(cut > 0 && cut < m->in.nlayers);
  return m->cut_bytes[cut] * m->link[from][to];
}

static void make_model(model *m) {
  *m = (model){.in = {.nlayers = few(6) ? 5 + (u32)few(5) : 1 + (u32)few(4),
                      .nkinds = 1 + (u32)few(KINDS),
                      .micro = 1 + (u32)few(6)}};
  i64 range = few(2) ? 4 : 1000, slack = 2 + few(12);
  for (u32 l = 0; l < m->in.nlayers; l++) {
    m->fixed[l] = few(8), m->kept[l] = few(4), m->cut_bytes[l] = few(range);
    for (u32 k = 0; k < m->in.nkinds; k++) m->time[k][l] = few(8) ? 1 + few(range) : 0;
  }
  bool alike = few(2); // layers as much faster on a kind as all are
  for (u32 k = 0; k < m->in.nkinds; k++) {
    i64 slower = 1 + few(4);
    for (u32 l = 0; alike && l < m->in.nlayers; l++) m->time[k][l] = m->time[0][l] * slower;
    m->kind[k] = (balance_devices){few(6) ? 1 + (u32)few(3) : 0, few(5) ? slack * (2 + few(4)) : 1000};
    m->times[k] = m->time[k];
    for (u32 j = 0; j < m->in.nkinds; j++) m->link[k][j] = few(4);
  }
  m->in.kind = m->kind, m->in.time_ps = m->times;
  if (few(8)) m->in.fixed_bytes = m->fixed, m->in.kept_bytes = m->kept;
  if (few(2)) m->in.send = link_time, m->in.arg = m;
  if (!few(3)) m->in.stages = 1 + (u32)few(4);
  if (few(2)) m->in.aim = BALANCE_BOTTLENECK;
}

// Times and bytes of a plan from the definition. False: a stage does not fit.
static bool price(const model *m, plan *p) {
  i64 sum = 0;
  p->tau = 0;
  for (u32 i = 0, l = 0; i < p->n; i++) {
    u32 keeps = MIN(p->n - i, m->in.micro);
    i64 time = 0, bytes = 0;
    for (; l < p->end[i]; l++) {
      time += m->time[p->kind[i]][l];
      if (m->in.fixed_bytes) bytes += m->fixed[l] + keeps * m->kept[l];
    }
    if (bytes > m->kind[p->kind[i]].memory_bytes) return false;
    i64 send = m->in.send && i + 1 < p->n ? m->cut_bytes[l] * m->link[p->kind[i]][p->kind[i + 1]] : 0;
    sum += time + send;
    p->tau = MAX(p->tau, MAX(time, send));
  }
  p->total = (m->in.micro - 1) * p->tau + sum;
  return true;
}

// balance.h's order of plans: below 0 if x comes before y.
static int in_order(const model *m, const plan *x, const plan *y) {
#define BY(a, b)                                                                                             \
  if ((a) != (b)) return (a) < (b) ? -1 : 1
  if (m->in.aim == BALANCE_BOTTLENECK) BY(x->tau, y->tau);
  BY(x->total, y->total);
  BY(x->tau, y->tau);
  BY(x->n, y->n);
  for (u32 k = m->in.nkinds; k-- > 0;) {
    u32 of_x = 0, of_y = 0;
    for (u32 i = 0; i < x->n; i++) of_x += x->kind[i] == k, of_y += y->kind[i] == k;
    BY(of_x, of_y);
  }
  for (u32 i = 0; i < x->n; i++) {
    BY(x->kind[i], y->kind[i]);
    BY(x->end[i], y->end[i]);
  }
#undef BY
  return 0;
}

typedef struct {
  const model *m;
  u32 left[KINDS];
  plan at, best; // best.n 0: none yet
  u32 most;      // layers that some plan has placed, counted from the last
  bool any;      // there is a plan with any number of stages
} brute;

// All devices, orders and cuts.
static void try_stages(brute *b, u32 from) {
  const model *m = b->m;
  plan *p = &b->at;
  if (from == m->in.nlayers) {
    if (!price(m, p)) return;
    b->any = true;
    if (m->in.stages && p->n != m->in.stages) return;
    if (!b->best.n || in_order(m, p, &b->best) < 0) b->best = *p;
    return;
  }
  for (u32 k = 0; k < m->in.nkinds; k++) {
    if (!b->left[k]) continue;
    b->left[k]--, p->kind[p->n] = k;
    for (u32 e = from + 1; e <= m->in.nlayers; e++) {
      p->end[p->n++] = e;
      try_stages(b, e);
      p->n--;
    }
    b->left[k]++;
  }
}
static plan brute_force(const model *m, bool *any) {
  brute b = {.m = m};
  for (u32 k = 0; k < m->in.nkinds; k++) b.left[k] = m->kind[k].count;
  try_stages(&b, 0);
  *any = b.any;
  return b.best;
}

// The layers from `from` on as a model of their own.
static bool some_hold(const model *m, u32 from) {
  model part = *m;
  part.in.nlayers -= from, part.in.stages = 0, part.in.send = NULL;
  for (u32 l = 0; l < part.in.nlayers; l++) {
    part.fixed[l] = m->fixed[l + from], part.kept[l] = m->kept[l + from];
    for (u32 k = 0; k < KINDS; k++) part.time[k][l] = m->time[k][l + from];
  }
  bool any;
  if (!m->in.stages) return brute_force(&part, &any).n > 0;
  for (part.in.stages = 1; part.in.stages <= m->in.stages; part.in.stages++)
    if (brute_force(&part, &any).n) return true;
  return false;
}

static void check_refusal(const model *m, balance_fault f, const balance_cuts *c, bool any) {
  u32 devices = 0, first = m->in.nlayers; // the first layer that fits nowhere
  i64 largest = 0;
  for (u32 k = 0; k < m->in.nkinds; k++) {
    devices += m->kind[k].count;
    if (m->kind[k].count) largest = MAX(largest, m->kind[k].memory_bytes);
  }
  for (u32 l = m->in.nlayers; l-- > 0;)
    if (m->in.fixed_bytes && m->fixed[l] + m->kept[l] > largest) first = l;
  if (!devices || m->in.stages > MIN(devices, m->in.nlayers)) {
    CHECK_EQ_I64(f, BALANCE_STAGES);
  } else if (first < m->in.nlayers) {
    CHECK_EQ_I64(f, BALANCE_LAYER);
    CHECK_EQ_I64(c->layer, first);
    CHECK_EQ_I64(c->need_bytes, m->fixed[first] + m->kept[first]);
    CHECK_EQ_I64(c->have_bytes, largest);
  } else if (some_hold(m, 0)) {
    CHECK_EQ_I64(f, BALANCE_STAGES);
    CHECK(any);
  } else {
    CHECK_EQ_I64(f, BALANCE_MEMORY);
    u32 placed = m->in.nlayers - 1;
    while (placed && !some_hold(m, m->in.nlayers - placed)) placed--;
    CHECK_EQ_I64(c->placed, placed);
  }
}

static void check_plan(const balance_cuts *c, const plan *want) {
  CHECK_EQ_I64(c->tau_ps, want->tau);
  CHECK_EQ_I64(c->total_ps, want->total);
  if (!CHECK_EQ_I64(c->nstages, want->n)) return;
  for (u32 i = 0; i < want->n; i++) {
    CHECK_EQ_I64(c->kind[i], want->kind[i]);
    CHECK_EQ_I64(c->end[i], want->end[i]);
  }
}

TEST(stages_are_optimal) {
  R = 4;
  u32 done = 0, binding = 0, bound = 0, refused[BALANCE_STATES + 1] = {0};
  for (u32 tries = 0; tries < 8000; tries++) {
    model m;
    make_model(&m);
    u32 devices = 0;
    for (u32 k = 0; k < m.in.nkinds; k++) devices += m.kind[k].count;
    if (devices > DEVICES) continue;
    arena *a = arena_new();
    balance_cuts c;
    bool any;
    balance_fault f = balance_stages(a, &m.in, &c);
    plan want = brute_force(&m, &any);
    if (!want.n) {
      check_refusal(&m, f, &c, any);
      refused[f]++;
    } else if (CHECK_EQ_I64(f, BALANCE_OK)) {
      check_plan(&c, &want);
      CHECK(c.tau_bound_ps <= want.tau && c.total_bound_ps <= want.total);
      bound += c.tau_bound_ps == want.tau && c.total_bound_ps == want.total, done++;
      for (u32 k = 0; k < m.in.nkinds; k++) m.kind[k].memory_bytes = 1000;
      binding += in_order(&m, (plan[]){brute_force(&m, &any)}, &want) < 0;
    }
    arena_free(a);
  }
  CHECK_MSG(done >= 4000 && binding >= 600 && bound >= 1000,
            "only %u of the problems were possible; memory mattered in %u, the bound was met in %u", done,
            binding, bound);
  CHECK_MSG(refused[BALANCE_LAYER] > 50 && refused[BALANCE_MEMORY] > 50 && refused[BALANCE_STAGES] > 50,
            "refused: %u layers, %u for memory, %u for stages", refused[BALANCE_LAYER],
            refused[BALANCE_MEMORY], refused[BALANCE_STAGES]);
}

// ---- larger models, by a table of everything ----------------------------------------------------------
enum { MANY_LAYERS = 14, MANY_KINDS = 3, MANY_OF_KIND = 3, MANY_STATES = 64 };
typedef struct {
  balance_line in;
  balance_devices kind[MANY_KINDS];
  i64 time[MANY_KINDS][MANY_LAYERS], fixed[MANY_LAYERS], kept[MANY_LAYERS];
  const i64 *times[MANY_KINDS];
  i64 tau, sum[MANY_STATES][MANY_LAYERS + 1][MANY_KINDS]; // of the layers from a cut on; -1: not known yet
} large;

static i64 large_send(const void *arg, u32 cut, u32 from, u32 to) {
  (void)arg;
  return 3 * (cut % 4) * (1 + (from + 2 * to) % 3);
}

// The least sum of stages on the devices left, `depth` of which are used, in front of a stage on kind `next`
// that begins at `cut`: the layers before it are still to be placed.
static i64 least_rest(large *x, u32 left[MANY_KINDS], u32 depth, u32 cut, u32 next) {
  if (!cut) return x->in.stages && depth != x->in.stages ? INT64_MAX : 0;
  i64 *known = &x->sum[left[0] + 4 * left[1] + 16 * left[2]][cut][next];
  if (*known >= 0) return *known;
  i64 least = INT64_MAX;
  for (u32 k = 0; k < MANY_KINDS; k++) {
    if (!left[k]) continue;
    i64 send = depth && x->in.send ? large_send(x, cut, k, next) : 0, time = 0, bytes = 0;
    if (send > x->tau) continue;
    left[k]--;
    for (u32 s = cut; s-- > 0;) {
      time += x->time[k][s], bytes += x->fixed[s] + MIN(depth + 1, x->in.micro) * x->kept[s];
      if (time > x->tau || bytes > x->kind[k].memory_bytes) break;
      i64 rest = least_rest(x, left, depth + 1, s, k);
      if (rest < INT64_MAX) least = MIN(least, rest + time + send);
    }
    left[k]++;
  }
  return *known = least;
}
static i64 least_under(large *x, i64 tau) {
  u32 left[MANY_KINDS];
  for (u32 k = 0; k < MANY_KINDS; k++) left[k] = x->kind[k].count;
  memset(x->sum, -1, sizeof x->sum);
  x->tau = tau;
  return least_rest(x, left, 0, x->in.nlayers, 0);
}

static void make_large(large *x) {
  *x = (large){.in = {.nlayers = MANY_LAYERS, .nkinds = MANY_KINDS, .kind = x->kind, .time_ps = x->times}};
  x->in.micro = 1 + (u32)few(12), x->in.fixed_bytes = x->fixed, x->in.kept_bytes = x->kept;
  i64 base = few(2) ? 10 : 0;
  for (u32 l = 0; l < MANY_LAYERS; l++) {
    x->fixed[l] = few(8), x->kept[l] = few(4);
    i64 work = few(8) ? base + few(10) : 3 * base + few(60);
    for (u32 k = 0; k < MANY_KINDS; k++) x->time[k][l] = work * (2 + k) / 2 + few(2);
  }
  for (u32 k = 0; k < MANY_KINDS; k++) {
    x->kind[k] = (balance_devices){1 + (u32)few(MANY_OF_KIND), few(3) ? 20 + few(60) : 1000};
    x->times[k] = x->time[k];
  }
  if (few(2)) x->in.send = large_send;
  if (!few(3)) x->in.stages = 3 + (u32)few(4);
}

TEST(stages_of_larger_models_are_optimal) {
  R = 5;
  large *x = calloc(1, sizeof *x);
  REQUIRE(x);
  u32 done = 0, traded = 0;
  for (u32 tries = 0; tries < 120; tries++) {
    make_large(x);
    i64 tau = -1, tau_of_total = -1, sum = 0, total = INT64_MAX, longest = 0;
    for (u32 k = 0; k < MANY_KINDS; k++) {
      i64 time = 0;
      for (u32 l = 0; l < MANY_LAYERS; l++) time += x->time[k][l];
      longest = MAX(longest, time);
    }
    for (i64 t = 0; t <= longest; t++) {
      i64 least = least_under(x, t);
      if (least == INT64_MAX) continue;
      if (tau < 0) tau = t, sum = least;
      if (least + (x->in.micro - 1) * t < total) total = least + (x->in.micro - 1) * t, tau_of_total = t;
    }
    arena *a = arena_new();
    balance_cuts c;
    x->in.aim = BALANCE_BOTTLENECK;
    balance_fault f = balance_stages(a, &x->in, &c);
    CHECK_EQ_I64(f == BALANCE_OK, tau >= 0);
    if (!f) {
      CHECK_EQ_I64(c.tau_ps, tau);
      CHECK_EQ_I64(c.total_ps, sum + (x->in.micro - 1) * tau);
      x->in.aim = BALANCE_TOTAL;
      CHECK_EQ_I64(balance_stages(a, &x->in, &c), BALANCE_OK);
      CHECK_EQ_I64(c.tau_ps, tau_of_total);
      CHECK_EQ_I64(c.total_ps, total);
      done++, traded += tau_of_total > tau;
    }
    arena_free(a);
  }
  free(x);
  CHECK_MSG(done >= 60 && traded >= 15, "%u problems were possible, %u with a longer bottleneck", done,
            traded);
}

// ---- several chunks on a place ------------------------------------------------------------------------
typedef struct {
  const balance_passes *in;
  u32 n, end[LAYERS];   // by stage
  i64 longest, squares; // of the cuts with the least longest chunk, then squares
  i64 tau, tau_of_best; // the least of all cuts; of those with the least longest chunk
  i64 total;            // the least of all cuts, for in->micro microbatches
  bool any;
} chunk_brute;
typedef struct {
  i64 longest, squares, tau, total, work[LAYERS];
} chunk_price;

static u32 alive_chunks(const balance_passes *in, u32 s) {
  const u32 left = in->nplaces - s;
  return in->alive ? in->alive[s] : in->micro && in->micro < left ? in->micro : left;
}

static chunk_price price_chunks(const balance_passes *in, const u32 *end) {
  chunk_price p = {0};
  i64 before[LAYERS * LAYERS];
  i64 behind = 0;
  for (u32 s = 0, l = 0; s < in->nplaces * in->nchunks; s++) {
    u32 place = in->place ? in->place[s] : s % in->nplaces;
    i64 time = 0, once = 0, others = MAX(in->micro, 1) - 1;
    for (; l < end[s]; l++) {
      time += in->time_ps[in->kind[place]][l];
      once += in->once_ps ? in->once_ps[in->kind[place]][l] : 0;
    }
    const i64 send = in->send_ps && s + 1 < in->nplaces ? in->send_ps[place][end[s]] : 0;
    before[s] = p.total;
    p.longest = MAX(p.longest, MAX(time, send)), p.squares += time * time, p.work[place] += time;
    p.tau = MAX(p.tau, p.work[place]), p.total += time + in->ways * send;
    behind = MAX(behind, MAX(others * time + once, others * send));
  }
  for (u32 s = 0; in->waits && s < in->nplaces; s++)
    if (alive_chunks(in, s) < in->micro)
      behind = MAX(behind, (in->micro - 1) * (p.total - before[s]) / alive_chunks(in, s));
  p.total += behind;
  return p;
}

// One chunk on a place.
static bool fit_chunks(const balance_passes *in, const u32 *end) {
  for (u32 s = 0, l = 0; in->memory_bytes && s < in->nplaces; s++) {
    const u32 place = in->place ? in->place[s] : s, alive = alive_chunks(in, s);
    i64 bytes = 0, most = 0;
    for (; l < end[s]; l++)
      bytes += in->fixed_bytes[l] + alive * in->kept_bytes[l], most = MAX(most, in->work_bytes[l]);
    if (bytes + most > in->memory_bytes[place]) return false;
  }
  return true;
}

static void try_chunks(chunk_brute *b, u32 i) {
  const balance_passes *in = b->in;
  if (i < b->n) {
    for (u32 e = i ? b->end[i - 1] + 1 : 1; e <= in->nlayers; e++) {
      b->end[i] = e;
      try_chunks(b, i + 1);
    }
    return;
  }
  if (b->end[b->n - 1] != in->nlayers || !fit_chunks(in, b->end)) return;
  chunk_price p = price_chunks(in, b->end);
  b->tau = b->any ? MIN(b->tau, p.tau) : p.tau;
  b->total = b->any ? MIN(b->total, p.total) : p.total;
  if (b->any && (p.longest > b->longest || (p.longest == b->longest && p.squares >= b->squares))) return;
  b->any = true, b->longest = p.longest, b->squares = p.squares, b->tau_of_best = p.tau;
}

static void check_chunks(const balance_passes *in, const balance_chunked *c, u32 n) {
  for (u32 i = 0; i < n; i++) CHECK(c->end[i] > (i ? c->end[i - 1] : 0));
  CHECK_EQ_I64(c->end[n - 1], in->nlayers);
  chunk_price p = price_chunks(in, c->end);
  CHECK_EQ_I64(p.longest, c->longest_ps);
  CHECK_EQ_I64(p.tau, c->tau_ps);
}

// Cuts with the least total of all that fit, where sends take time and memory is short.
TEST(chunks_of_places_with_sends_and_memory) {
  R = 11;
  u32 done = 0, none = 0, sent = 0, held = 0, waited = 0;
  for (u32 tries = 0; tries < 4000; tries++) {
    model m;
    make_model(&m);
    i64 send[LAYERS][LAYERS + 1], once[LAYERS][LAYERS], fixed[LAYERS], kept[LAYERS], work[LAYERS],
        memory[LAYERS];
    const i64 *sends[LAYERS], *onces[LAYERS];
    u32 kind[LAYERS], alive[LAYERS];
    balance_passes in = {.nlayers = m.in.nlayers,
                         .nkinds = m.in.nkinds,
                         .nplaces = 1 + (u32)few(MIN(m.in.nlayers, 4)),
                         .nchunks = 1,
                         .kind = kind,
                         .time_ps = m.times,
                         .micro = 1 + (u32)few(5),
                         .ways = 1 + (u32)few(2)};
    for (u32 r = 0; r < in.nplaces; r++) {
      kind[r] = (u32)few(in.nkinds), sends[r] = send[r], memory[r] = 20 + few(100);
      for (u32 e = 0; e <= in.nlayers; e++) send[r][e] = few(30);
    }
    for (u32 k = 0; k < in.nkinds; k++) {
      onces[k] = once[k];
      for (u32 l = 0; l < in.nlayers; l++) once[k][l] = few(40);
    }
    for (u32 r = 0; r < in.nplaces; r++) alive[r] = 1 + (u32)few(4);
    if (few(2)) in.once_ps = onces;
    if (few(2)) in.alive = alive;
    for (u32 l = 0; l < in.nlayers; l++) fixed[l] = few(20), kept[l] = few(8), work[l] = few(10);
    arena *a = arena_new();
    balance_chunked c;
    chunk_brute free_of = {.in = &in, .n = in.nplaces};
    try_chunks(&free_of, 0);
    if (few(4)) in.send_ps = sends;
    chunk_brute sending = {.in = &in, .n = in.nplaces};
    try_chunks(&sending, 0);
    if (few(4)) in.memory_bytes = memory, in.fixed_bytes = fixed, in.kept_bytes = kept, in.work_bytes = work;
    chunk_brute going = {.in = &in, .n = in.nplaces};
    try_chunks(&going, 0);
    in.waits = few(2);
    chunk_brute b = {.in = &in, .n = in.nplaces};
    try_chunks(&b, 0);
    const balance_fault f = balance_chunks(a, &in, &c);
    CHECK_EQ_I64(f, b.any ? BALANCE_OK : BALANCE_MEMORY);
    if (!f) {
      check_chunks(&in, &c, b.n);
      CHECK(fit_chunks(&in, c.end));
      CHECK_EQ_I64(price_chunks(&in, c.end).total, b.total);
    }
    done += !f, none += f == BALANCE_MEMORY, sent += sending.total > free_of.total,
        held += !f && b.total > sending.total, waited += !f && b.total > going.total;
    arena_free(a);
  }
  CHECK_MSG(done >= 2000 && none >= 100 && sent >= 1000 && held >= 100 && waited >= 100,
            "%u done, %u do not fit, %u, %u, %u", done, none, sent, held, waited);
}

TEST(chunks_keep_places_even) {
  R = 9;
  u32 least = 0, met = 0, improved = 0, done = 0, sooner = 0;
  double above = 0, worst = 0;
  for (u32 tries = 0; tries < 3000; tries++) {
    model m;
    make_model(&m);
    u32 kind[LAYERS];
    balance_passes in = {.nlayers = m.in.nlayers,
                         .nkinds = m.in.nkinds,
                         .nplaces = 1 + (u32)few(4),
                         .nchunks = 1 + (u32)few(3),
                         .kind = kind,
                         .time_ps = m.times};
    for (u32 r = 0; r < in.nplaces; r++) kind[r] = (u32)few(in.nkinds);
    u32 place[LAYERS * LAYERS]; // there and back
    for (u32 s = 0; s < in.nplaces * in.nchunks; s++)
      place[s] = s / in.nplaces % 2 ? in.nplaces - 1 - s % in.nplaces : s % in.nplaces;
    if (few(2)) in.place = place;
    arena *a = arena_new();
    balance_chunked c;
    balance_fault f = balance_chunks(a, &in, &c);
    CHECK_EQ_I64(f == BALANCE_OK, in.nplaces * in.nchunks <= in.nlayers);
    if (!f) {
      chunk_brute b = {.in = &in, .n = in.nplaces * in.nchunks};
      try_chunks(&b, 0);
      check_chunks(&in, &c, b.n);
      const chunk_price own = price_chunks(&in, c.end);
      CHECK(c.tau_bound_ps <= b.tau && b.tau <= c.tau_ps && c.tau_ps <= b.tau_of_best);
      if (in.nchunks == 1) {
        CHECK(c.longest_ps == b.longest && own.squares == b.squares);
        in.micro = 1 + (u32)few(5);
        chunk_brute some = {.in = &in, .n = b.n};
        try_chunks(&some, 0);
        CHECK_EQ_I64(balance_chunks(a, &in, &c), BALANCE_OK);
        check_chunks(&in, &c, b.n);
        CHECK_EQ_I64(price_chunks(&in, c.end).total, some.total);
        sooner += c.tau_ps > b.tau;
      }
      const bool several = in.nchunks > 1;
      least += several && c.tau_ps == b.tau, met += c.tau_bound_ps == b.tau;
      improved += c.tau_ps < b.tau_of_best, done += several;
      if (several)
        above += (double)c.tau_ps / (double)b.tau - 1,
            worst = MAX(worst, (double)c.tau_ps / (double)b.tau - 1);
    }
    arena_free(a);
  }
  printf(
      "  several chunks: the least busiest place in %u of %u, on average %.2f %% above it, at most %.1f %%\n",
      least, done, 100 * above / done, 100 * worst);
  CHECK_MSG(done >= 500 && met >= 100 && improved >= 50 && sooner >= 50 && least >= done * 9 / 10,
            "%u done, bound met in %u, improved in %u, least in %u", done, met, improved, least);
}

// ---- Whale's pipelines --------------------------------------------------------------------------------
TEST(stages_are_no_worse_than_whales) {
  R = 8;
  u32 better = 0, same = 0, none = 0;
  for (u32 tries = 0; tries < 4000; tries++) {
    model m;
    make_model(&m);
    u32 n = m.in.nkinds;
    i64 DF[KINDS], DM[KINDS], flop[LAYERS];
    memcpy(flop, m.time[0], sizeof flop);
    for (u32 k = 0; k < n; k++) {
      DF[k] = 1 + few(4), DM[k] = m.kind[k].memory_bytes, m.kind[k].count = 1;
      for (u32 l = 0; l < m.in.nlayers; l++) m.time[k][l] = flop[l] * 12 / DF[k];
    }
    m.in.send = NULL, m.in.stages = 0, m.in.aim = BALANCE_BOTTLENECK;
    arena *a = arena_new();
    balance_whale_cuts w;
    balance_cuts c;
    balance_whale_line in = {.n = n,
                             .DF = DF,
                             .DM = DM,
                             .nlayers = m.in.nlayers,
                             .micro = m.in.micro,
                             .flop = flop,
                             .fixed_bytes = m.in.fixed_bytes,
                             .kept_bytes = m.in.kept_bytes};
    balance_fault f = balance_whale_stages(a, &in, &w);
    if (n > m.in.nlayers) {
      CHECK_EQ_I64(f, BALANCE_STAGES);
    } else {
      plan p = {.n = n};
      for (u32 i = 0; i < n; i++) {
        p.kind[i] = w.device[i], p.end[i] = w.end[i];
        CHECK(w.end[i] > (i ? w.end[i - 1] : 0));
        CHECK(!i || DM[w.device[i - 1]] > DM[w.device[i]] ||
              (DM[w.device[i - 1]] == DM[w.device[i]] && w.device[i - 1] < w.device[i]));
      }
      CHECK_EQ_I64(w.end[n - 1], m.in.nlayers);
      CHECK_EQ_I64(price(&m, &p), f == BALANCE_OK);
      CHECK_EQ_I64(w.noom > 0, f == BALANCE_MEMORY);
      if (f) {
        none++;
      } else if (CHECK_EQ_I64(balance_stages(a, &m.in, &c), BALANCE_OK)) {
        CHECK(c.tau_ps <= p.tau);
        better += c.tau_ps < p.tau, same += c.tau_ps == p.tau;
      }
    }
    arena_free(a);
  }
  CHECK_MSG(better >= 300 && same >= 300 && none >= 300, "better %u times, as good %u, none %u", better, same,
            none);
}

// ---- what must not matter -----------------------------------------------------------------------------
static i64 longer_link(const void *arg, u32 cut, u32 from, u32 to) {
  return 7919 * link_time(arg, cut, from, to);
}

// A kind in two kinds: the same plan.
static void check_kind_in_two(const model *m, const balance_cuts *want) {
  model x = *m;
  u32 k = (u32)few(m->in.nkinds), n = m->in.nkinds;
  if (n == KINDS) return;
  for (u32 j = n; j > k; j--) {
    x.kind[j] = x.kind[j - 1];
    memcpy(x.time[j], x.time[j - 1], sizeof x.time[j]);
  }
  u32 was[KINDS];
  for (u32 j = 0; j <= n; j++) was[j] = j - (j > k), x.times[j] = x.time[j];
  for (u32 i = 0; i <= n; i++)
    for (u32 j = 0; j <= n; j++) x.link[i][j] = m->link[was[i]][was[j]];
  x.kind[k].count = (u32)few(m->kind[k].count + 1), x.kind[k + 1].count -= x.kind[k].count;
  x.in.nkinds = n + 1, x.in.kind = x.kind, x.in.time_ps = x.times, x.in.arg = &x;
  if (m->in.fixed_bytes) x.in.fixed_bytes = x.fixed, x.in.kept_bytes = x.kept;
  arena *a = arena_new();
  balance_cuts c;
  CHECK_EQ_I64(balance_stages(a, &x.in, &c), BALANCE_OK);
  CHECK_EQ_I64(c.tau_ps, want->tau_ps);
  CHECK_EQ_I64(c.total_ps, want->total_ps);
  CHECK_EQ_I64(c.tau_bound_ps, want->tau_bound_ps);
  CHECK_EQ_I64(c.total_bound_ps, want->total_bound_ps);
  if (CHECK_EQ_I64(c.nstages, want->nstages))
    for (u32 i = 0; i < c.nstages; i++) {
      CHECK_EQ_I64(was[c.kind[i]], want->kind[i]);
      CHECK_EQ_I64(c.end[i], want->end[i]);
    }
  arena_free(a);
}

// Kinds in another order, and all times longer.
static void check_kinds_turned(const model *m, const balance_cuts *want) {
  model x = *m;
  for (u32 k = 0; k < m->in.nkinds; k++) {
    u32 was = (k + 1) % m->in.nkinds;
    x.kind[k] = m->kind[was];
    for (u32 l = 0; l < m->in.nlayers; l++) x.time[k][l] = 7919 * m->time[was][l];
    for (u32 j = 0; j < m->in.nkinds; j++) x.link[k][j] = m->link[was][(j + 1) % m->in.nkinds];
    x.times[k] = x.time[k];
  }
  x.in.kind = x.kind, x.in.time_ps = x.times, x.in.arg = &x;
  if (x.in.send) x.in.send = longer_link;
  arena *a = arena_new();
  balance_cuts c;
  CHECK_EQ_I64(balance_stages(a, &x.in, &c), BALANCE_OK);
  CHECK_EQ_I64(c.tau_ps, 7919 * want->tau_ps);
  CHECK_EQ_I64(c.total_ps, 7919 * want->total_ps);
  CHECK_EQ_I64(c.nstages, want->nstages);
  arena_free(a);
}

TEST(stages_do_not_depend_on_names_and_units) {
  R = 6;
  u32 done = 0;
  for (u32 tries = 0; tries < 4000; tries++) {
    model m;
    make_model(&m);
    arena *a = arena_new();
    balance_cuts c;
    if (balance_stages(a, &m.in, &c) == BALANCE_OK) {
      check_kind_in_two(&m, &c);
      check_kinds_turned(&m, &c);
      done++;
    }
    arena_free(a);
  }
  CHECK_MSG(done >= 2000, "only %u of the problems were possible", done);
}
