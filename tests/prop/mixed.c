// mixed.c - unequal shares on machines of several kinds of devices: random plans with shares of the batch, of
// tensor splits and of layers, said or `auto`, must compute what one device computes, be valid, deal every
// sample to one rank, and be simulated alike in every way. PLANS=n makes more, SEED=n one.
#include "mixed.h"

TEST(mixed_shares_are_reduced) {
  static const char *const said[][2] = {
      {"4/2", "2/1"}, {"3/3", "1/1"}, {"6x4/9", "2x4/3"}, {"7", "1"}, {"5x2000", "1x2000"}};
  arena *a = arena_new();
  for (u32 k = 0; k < COUNT_OF(said); k++) {
    strbuf b = {.a = a};
    choice_value x;
    REQUIRE(choice_read(CHOICE_tp_shares, a, said[k][0], strlen(said[k][0]), &x));
    choice_print(CHOICE_tp_shares, x, &b);
    CHECK_STR(sb_str(&b), said[k][1]);
  }
  arena_free(a);
}

// ---- what shares mean -------------------------------------------------------------------------------------

// Of every input whose first dimension is dealt out over dp: each index is on one data rank and in one
// microbatch, and every rank has its part.
static const char *samples_once(const plan *pn, const prog *p, arena *a) {
  space *sp = p->sp;
  const func_info *f = func_get(p, p->main);
  const u8 mb = axis_find(sp, sym_of(p->c, "mb"));
  const u32 nmb = mb ? axis_get(sp, mb)->size : 1;
  u32 checked = 0, n = 1;
  for (u32 i = 0; i < f->nparams; i++) {
    const type_info *t = val_type(p, f, i + 1);
    if ((f->params.v[i].r != ROLE_INPUT && f->params.v[i].r != ROLE_LABEL) || t->tuple || !t->s.nd) continue;
    const sym on = mesh_get(sp, group_get(sp, t->g)->m)->name;
    u32 of = 0; // the mesh of the plan
    while (pn->meshes[of].name.i != on.i) of++;
    const plan_axis *data = &pn->axes[pn->meshes[of].axis[1] - 1],
                    *tensor = &pn->axes[pn->meshes[of].axis[2] - 1];
    const u8 dp = axis_find(sp, data->name), tp = axis_find(sp, tensor->name);
    n = MAX(n, data->size);
    const lay_split *split = dp ? layout_split_of(sp, t->lay, dp) : NULL;
    if (!split || split->dim) continue;
    const i64 extent = t->s.dim[0];
    u32 *seen = ZNEWN(a, u32, extent);
    const group_info *g = group_get(sp, t->g);
    for (u32 r = 0; r < g->nranks; r++)
      for (u32 k = 0; k < nmb; k++) {
        coords at, now = {0};
        if (mb) now.at[mb] = (u16)k;
        coords_of(sp, t->g, r, &now, &at);
        if (tp && at.at[tp]) continue; // tensor ranks have copies, or parts of other dimensions
        i64 *index = NEWN(a, i64, extent);
        const i64 have = layout_index(sp, t->lay, 0, extent, &at, index);
        const u32 *share = data->shares;
        const bool timed = mb && layout_split_of(sp, t->lay, mb) && layout_split_of(sp, t->lay, mb)->dim == 0;
        if (!timed && k) continue;
        if (have * plan_parts(data) * (timed ? nmb : 1) != extent * (share ? share[at.at[dp]] : 1))
          return "a rank has more or less than its share";
        for (i64 x = 0; x < have; x++) seen[index[x]]++;
      }
    for (i64 x = 0; x < extent; x++)
      if (seen[x] != 1) return "a sample is on no data rank, or on two";
    checked++;
  }
  return checked || n == 1 ? NULL : "no input is dealt out";
}

// Stages cover main once, with as many calls as the plan's name says.
static const char *layers_once(const model *m, const plan *pn) {
  const func_info *f = func_get(m->src, m->src->main);
  strategy_set set;
  strategy s;
  ctx *c = ctx_new();
  const char *wrong = NULL;
  REQUIRE(strategy_parse(c, ctx_arena(c), sym_str(m->c, pn->name), &set) && strategy_one(c, &set, &s));
  u32 next = 1;
  for (u32 k = 0; k < pn->nsegments; k++) {
    const plan_segment *seg = &pn->segments[k];
    u32 calls = 0;
    if (seg->from != next || seg->to < seg->from) wrong = "stages do not follow one another";
    for (u32 i = seg->from; i <= seg->to; i++) calls += f->body.v[i - 1].op == OP_call;
    if (s.layers.nparts && (s.layers.nparts != pn->nsegments || s.layers.part[k] != calls))
      wrong = "a stage has other layers than its number says";
    next = seg->to + 1;
  }
  if (next != f->body.n + 1) wrong = "not all is in stages";
  for (u32 k = 0; k < pn->nsegments; k++) // shares as they are called, each place in turn
    for (u32 x = 1; x < 3; x++) {
      const choice_id id = x == 1 ? CHOICE_dp_shares : CHOICE_tp_shares;
      const plan_axis *axis = &pn->axes[pn->meshes[pn->segments[k].on.mesh].axis[x] - 1];
      const u32 each = s.of[id].nparts / axis->size; // numbers that make one share
      u64 all = 0;
      for (u32 j = 0; j < s.of[id].nparts; j++) all += s.of[id].part[j];
      for (u32 j = 0; axis->shares && j < axis->size; j++) {
        u64 sum = 0;
        for (u32 i = 0; i < each; i++) sum += s.of[id].part[x == 1 ? j * each + i : j + i * axis->size];
        if (sum * plan_parts(axis) != axis->shares[j] * all) wrong = "shares are called something else";
      }
      if (choice_is(id, s.of[id], "auto")) wrong = "auto is no number";
    }
  ctx_free(c);
  return wrong;
}

// ---- simulation -------------------------------------------------------------------------------------------
static bool same_simulation(const sim_result *x, const sim_result *y) {
  if (x->makespan_ps != y->makespan_ps || x->nranks != y->nranks || x->nstreams != y->nstreams ||
      x->peak_bytes != y->peak_bytes)
    return false;
  for (u32 r = 0; r < x->nranks; r++) {
    const u32 u = x->class_of_rank[r], v = y->class_of_rank[r];
    const size_t n = x->nstreams * sizeof(i64);
    if (x->cls[u].peak_bytes != y->cls[v].peak_bytes ||
        memcmp(x->end_ps + u * x->nstreams, y->end_ps + v * y->nstreams, n) ||
        memcmp(x->busy_ps + u * x->nstreams, y->busy_ps + v * y->nstreams, n))
      return false;
  }
  return true;
}

static u32 staged;

static const char *simulated_alike(const model *m, const plan *pn, const prog *p, cost_model *k, arena *a) {
  static const sim_mode modes[] = {SIM_FLAT, SIM_COMPOSED, SIM_FLAT_FOLDED, SIM_FOLDED};
  sim_result r[4];
  for (u32 i = 0; i < COUNT_OF(modes); i++) {
    if (!sim_run(m->c, a, p, k, &(sim_opts){.mode = modes[i]}, &r[i])) return "is not simulated";
    if (!same_simulation(&r[0], &r[i])) return "is simulated differently";
  }
  plan_probed about;
  const sim_order *order;
  sim_pipe_result by;
  u32 n;
  prog *probe = plan_probe(m->pl, pn, k, a, false, &about);
  if (!probe) return "has no probe";
  const sim_opts so = {.mode = SIM_FOLDED, .peak_only = true};
  const sim_stages *st = sim_stages_of(m->c, a, probe, k, &so, &about.pipeline);
  prog_free(probe);
  if (!st) return NULL;
  if (!plan_line(m->c, a, pn, &about.graph, &n, &order)) return "has no line";
  sim_pipe(st, a, sim_line_new(a, st, order, n), &by);
  staged++;
  if (by.makespan_ps != r[3].makespan_ps) return "takes another time by its stages";
  if (by.peak_bytes != r[3].peak_bytes) return "has other bytes by its stages";
  if (by.over_bytes != sim_over_bytes(&r[3], cost_model_machine(k))) return "fits by its stages alone";
  return NULL;
}

// ---- plans ------------------------------------------------------------------------------------------------
static u32 ran, refused, with_data, with_tensor, with_both, with_degrees, with_layers, with_zero[4],
    kinds_used[MOST_KINDS + 1];

static bool has_shares(const plan *pn, u32 x) { // of the data or tensor axis of any mesh
  for (u32 k = 0; k < pn->nmeshes; k++)
    if (pn->axes[pn->meshes[k].axis[x] - 1].shares) return true;
  return false;
}

static const char *verified(const model *m, const plan *pn, cost_model *k, arena *a) {
  verify_report r;
  const verify_opts o = {.seed = 11};
  if (!plan_verify(m->pl, pn, k, &o, a, &r)) return "is not verified";
  return r.passed ? NULL : "computes something else";
}

// Every message that some rank gives, and takes away every one that some rank gets: 0 if they are the same
// ones.
static u32 messages;
static u64 messages_of(const prog *p, func f, u32 rank) {
  static const attr_key keys[] = {A_gives, A_gets};
  const func_info *fi = func_get(p, f);
  u64 sum = 0;
  for (u32 i = 0; i < fi->body.n; i++) {
    const instr *in = &fi->body.v[i];
    if (in->op == OP_call) sum += messages_of(p, in->callee, rank);
    for (u32 k = 0; k < 2; k++) {
      const attr *at = attr_get(attrs_get(p, in->at), keys[k]);
      const char *text = at ? sym_str(p->c, at->u.s) : "";
      while (*text) { // "12 [0-4,*], 13 [4-8,*]"
        const u32 to = (u32)strtoul(text, NULL, 10);
        const char *extents = strchr(text, '['), *end = extents ? strchr(extents, ']') : NULL;
        if (!end) return 1;
        const u64 h = hash_bytes(extents, (size_t)(end - extents), hash_u64(k ? to : rank, k ? rank : to));
        sum += k ? -h : h, messages++;
        text = end + 1 + strspn(end + 1, ", ");
      }
    }
  }
  return sum;
}

static const char *lowered(const prog *p) {
  const u32 n = plan_ranks(p);
  u64 sum = 0;
  for (u32 r = 0; r < n; r++) {
    prog *one = plan_lower(p, r);
    if (!one) return "has no program of a rank";
    const bool ok = ir_verify(one);
    sum += messages_of(one, one->main, r);
    prog_free(one);
    if (!ok) return "has a program of a rank that is none";
  }
  return sum ? "has messages that nobody gives or gets" : NULL;
}

// Devices of a kind in a node change places.
static const char *moved_alike(const model *m, const plan *pn, cost_model *k, u64 *rng, arena *a) {
  const machine *mach = cost_model_machine(k);
  u32 *to = NEWN(a, u32, mach->nranks);
  sim_result r[2];
  for (u32 i = 0; i < mach->nranks; i++) to[i] = i;
  for (u32 i = 0; i < 4 * mach->nranks; i++) {
    const u32 x = pick(rng, mach->nranks), y = pick(rng, mach->nranks), t = to[x];
    if (mach->dev[x].kind == mach->dev[y].kind && mach->dev[x].node == mach->dev[y].node)
      to[x] = to[y], to[y] = t;
  }
  for (u32 i = 0; i < 2; i++) {
    prog *p = plan_apply(m->pl, i ? plans_relabelled(pn, to, a) : pn, k);
    const bool ok = p && sim_run(m->c, a, p, k, &(sim_opts){.mode = SIM_FOLDED}, &r[i]);
    prog_free(p);
    if (!ok) return "cannot be moved to other devices";
  }
  return r[0].makespan_ps == r[1].makespan_ps && r[0].peak_bytes == r[1].peak_bytes
             ? NULL
             : "is another on equal devices";
}

static void check_plan(const model *m, const hybrid_opts *h, const plan *pn, const char *machine_is, u64 seed,
                       arena *a) {
  u64 seed_of = seed;
  prog *p = plan_apply(m->pl, pn, h->k);
  const char *wrong = p ? NULL : "cannot be applied";
  if (p && !wrong && !ir_verify(p)) wrong = "is not a program";
  if (p && !wrong && !plan_validate(p)) wrong = "is not valid";
  if (p && !wrong) wrong = samples_once(pn, p, a);
  if (p && !wrong) wrong = layers_once(m, pn);
  if (p && !wrong) wrong = simulated_alike(m, pn, p, h->k, a);
  if (p && !wrong) wrong = moved_alike(m, pn, h->k, &seed_of, a);
  if (p && !wrong) wrong = lowered(p);
  if (p && !wrong) wrong = verified(m, pn, h->k, a);
  CHECK_MSG(!wrong || !p, "%s, seed %llu, %s, %s (%s): %s\n%s\n%s", models[m->index].name,
            (unsigned long long)seed, h->train ? "training" : "inference", strategy_str(a, &h->s),
            sym_str(m->c, pn->name), wrong, diag_render(m->c, a), machine_is);
  if (!p) {
    if (getenv("SEED")) printf("%s: %s", sym_str(m->c, pn->name), diag_render(m->c, a));
    refused++;
    return;
  }
  prog_free(p);
  ran++;
  const bool data = has_shares(pn, 1), tensor = has_shares(pn, 2);
  with_data += data, with_tensor += tensor, with_both += data && tensor;
  with_degrees += pn->nmeshes > 1 && (data || tensor);
  with_layers += choice_is(CHOICE_layers, h->s.layers, "auto") && h->s.pp.n > 1;
  with_zero[h->s.zero.n] += data || tensor;
}

static bool check_seed(const model *m, u64 seed) {
  static const u8 optims[] = {OPTIM_SGD, OPTIM_MOMENTUM, OPTIM_ADAM, OPTIM_ADAFACTOR};
  u64 rng = hash_u64(seed, m->index + 1);
  arena *a = arena_new();
  const u32 kinds = 2 + pick(&rng, MOST_KINDS - 1), before = ran;
  const figures x = random_figures(&rng, kinds, true);
  const char *text = machine_text(&x, 1, false, a);
  machine *mach = machine_of(m->c, a, text);
  hybrid_opts h = {
      .train = !chance(&rng, 5), .optim = optim_default(optims[pick(&rng, 4)]), .keep_gradients = true};
  h.k = cost_model_new(m->c, a, mach, &costs);
  h.s = random_strategy(m, mach->nranks, h.train, &rng, a);
  diag_clear(m->c);
  const plan *pn = policy_hybrid(m->pl, a, &h);
  if (getenv("SEED"))
    printf("%s\n%s %s: %s\n", text, models[m->index].name, strategy_str(a, &h.s),
           pn ? sym_str(m->c, pn->name) : diag_render(m->c, a));
  diag_clear(m->c);
  if (pn) check_plan(m, &h, pn, text, seed, a);
  refused += !pn;
  kinds_used[kinds] += ran > before;
  diag_clear(m->c);
  arena_free(a);
  return ran > before;
}

TEST(mixed_plans_are_one_device) {
  const char *only = getenv("MODEL"), *one = getenv("SEED");
  for (u32 i = 0; i < COUNT_OF(models); i++) {
    if (only && strcmp(only, models[i].name)) continue;
    model m = open_model(i);
    u32 done = 0;
    const u32 want = one ? 1 : wanted(EACH);
    for (u64 seed = one ? strtoull(one, NULL, 0) : 1; done < want && seed < 40 * EACH; seed++) {
      done += check_seed(&m, seed);
      if (one) break;
    }
    CHECK_MSG(done == want || one, "%s: %u of %u", models[i].name, done, want);
    close_model(&m);
  }
  printf("  %u plans (%u refused): %u with shares of the batch, %u of tensors, %u of both, %u by degrees, %u "
         "with "
         "layers by time; "
         "ZeRO 0 to 3 %u %u %u %u; %u by stages; machines of 2, 3, 4 kinds %u %u %u\n",
         ran, refused, with_data, with_tensor, with_both, with_degrees, with_layers, with_zero[0],
         with_zero[1], with_zero[2], with_zero[3], staged, kinds_used[2], kinds_used[3], kinds_used[4]);
  if (only || one || getenv("PLANS") || !test_all_cases()) return;
  CHECK_MSG(messages >= 1000, "%u messages", messages);
  CHECK(ran >= 200 && with_data >= 60 && with_tensor >= 40 && with_both >= 8 && with_degrees >= 8 &&
        with_layers >= 20 && staged >= 100);
  for (u32 z = 0; z < 4; z++) CHECK_MSG(with_zero[z] >= 8, "ZeRO %u: %u", z, with_zero[z]);
}
