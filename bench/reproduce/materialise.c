// materialise.c - SuperScaler's communication: 18 conversions of a tensor by plain sends and receives, by collectives
// inside groups, and by what is found between groups too; then GPT-3's strong scaling under the three.
//
// What the summary does not say is assumed: a tensor of 8192 x 4096 in f16; groups of 8, on a node each; within a group, of
// 16 on two nodes; of different size, 8 and 4. A layout splits over all axes of its group that it splits over at all.
#include "run.h"

enum { RELATIONS = 3, KINDS = 6 };
static const char *const cluster = "4x8 v100 ib=100Gb/s";
static const char *const relation_name[RELATIONS] = {"within 16", "8 to 8", "8 to 4"};

// From and to by the axes a, b of the source group and c, d of the target; within a group they are the same.
typedef struct {
  const char *name, *from, *to;
} kind;
static const kind kinds[KINDS] = {
    {"R to D", "[X,Y]", "[X{c,d},Y]"},       {"D to R", "[X{a,b},Y]", "[X,Y]"},
    {"V to R", "[X,Y]+a,+b", "[X,Y]"},       {"V to D", "[X,Y]+a,+b", "[X{c,d},Y]"},
    {"D to D'", "[X{a,b},Y]", "[X,Y{c,d}]"}, {"D, V to D', R", "[X{a},Y]+b", "[X,Y{c}]"}};

typedef struct {
  prog *p;
  group g, h;
} scene;

static scene scene_of(ctx *c, u32 relation) {
  static const u32 sizes[RELATIONS][4] = {{2, 8, 0, 0}, {2, 4, 2, 4}, {2, 4, 2, 2}};
  static const char *const names[] = {"a", "b", "c", "d"};
  scene s = {.p = prog_new(c)};
  const u32 *n = sizes[relation];
  u8 axis[4];
  for (u32 k = 0; k < (n[2] ? 4u : 2u); k++) axis[k] = axis_add(s.p->sp, sym_of(c, names[k]), n[k], false);
  s.g = s.h = group_all(s.p->sp, mesh_add(s.p->sp, sym_of(c, "from"), axis, 2, 0, NULL));
  if (n[2]) s.h = group_all(s.p->sp, mesh_add(s.p->sp, sym_of(c, "to"), axis + 2, 2, 8, NULL));
  s.p->main = func_new(s.p, sym_of(c, "main"), (loc){0});
  return s;
}

// Of a text above, for extents x by y; within a group of its own axes.
static layout layout_read(ctx *c, const scene *s, const char *text, i64 x, i64 y) {
  strbuf b = {.a = ctx_arena(c)};
  for (; *text; text++) {
    const bool own = s->g.i == s->h.i && (*text == 'c' || *text == 'd');
    if (*text == 'X' || *text == 'Y')
      sb_i64(&b, *text == 'X' ? x : y);
    else
      sb_char(&b, own ? (char)(*text - 2) : *text);
  }
  u32 nd;
  i64 dims[DIMS_MAX];
  layout l;
  const char *at = sb_str(&b), *error;
  if (!layout_parse(s->p->sp, &at, &nd, dims, &l, &error)) {
    fprintf(stderr, "%s: %s\n", sb_str(&b), error);
    exit(1);
  }
  return l;
}

// What all ranks together are sent, collectives by the usual rings.
static double moved_bytes(prog *p) {
  const func_info *m = func_get(p, p->main);
  double bytes = 0;
  for (u32 i = 0; i < m->body.n; i++) {
    const instr *in = &m->body.v[i];
    const type_info *f = val_type(p, m, opd_of(m, in, 0)), *t = val_type(p, m, in->res);
    const attr *over = attr_get(attrs_get(p, in->at), A_over);
    const double own = (double)layout_local_elems(p->sp, f->lay, f->s.nd, f->s.dim),
                 into = (double)layout_local_elems(p->sp, t->lay, t->s.nd, t->s.dim);
    const u32 ranks = group_get(p->sp, f->g)->nranks,
              n = over ? group_offsets(p->sp, f->g, over->u.axes, over->n, NULL, 0) : 1;
    double elems = 0;
    switch (in->op) {
    case OP_send: bytes += plan_send_bytes(p, m, in); continue;
    case OP_all_gather: elems = into - own; break;
    case OP_reduce_scatter: elems = own - into; break;
    case OP_all_reduce: elems = 2 * own * (n - 1) / n; break;
    case OP_all_to_all: elems = own * (n - 1) / n; break;
    case OP_permute: elems = own; break;
    case OP_exchange:
      elems = (double)layout_exchanged_elems(p->sp, f->g, f->s.nd, f->s.dim, f->lay, t->lay, over->u.axes,
                                             over->n);
      break;
    default: break;
    }
    bytes += elems * ranks * (double)dtype_bytes(f->s.t);
  }
  return bytes;
}

typedef struct {
  double s, bytes;
  bool exact;
} made;

// Does it arrive, element by element? On a small tensor of the same layouts.
static bool arrives(u32 relation, const kind *k, materialise_way how, const machine *m) {
  enum { N = 64 };
  ctx *c = ctx_new();
  arena *a = arena_new();
  scene s = scene_of(c, relation);
  cost_model *cost = cost_model_new(c, a, m, NULL);
  const shape whole = {.t = DT_I64, .nd = 2, .dim = {N, N}};
  value v =
      func_param(s.p, s.p->main, type_tensor(s.p, &whole, (layout){0}, s.g), sym_of(c, "x"), ROLE_INPUT);
  v = plan_move(s.p, s.p->main, v, s.g, layout_read(c, &s, k->from, N, N), MATERIALISE_INTER, cost);
  v = v ? plan_move(s.p, s.p->main, v, s.h, layout_read(c, &s, k->to, N, N), how, cost) : 0;
  eval_array in = {whole, NEWN(a, i64, N * N)}, out;
  for (i64 i = 0; i < N * N; i++) ((i64 *)in.data)[i] = i * i + 7;
  if (v) func_return(s.p, s.p->main, &v, 1);
  const bool ok = v && ir_verify(s.p) && eval_run(s.p, &(eval_opts){.as_f64 = true}, &in, 1, &out, 1, a) &&
                  !memcmp(out.data, in.data, sizeof(i64) * N * N);
  prog_free(s.p);
  arena_free(a);
  ctx_free(c);
  return ok;
}

static made convert(u32 relation, const kind *k, materialise_way how, const machine *m) {
  enum { ROWS = 8192, COLUMNS = 4096 };
  made x = {.exact = arrives(relation, k, how, m)};
  ctx *c = ctx_new();
  arena *a = arena_new();
  scene s = scene_of(c, relation);
  cost_model *cost = cost_model_new(c, a, m, NULL);
  const shape whole = {.t = DT_F16, .nd = 2, .dim = {ROWS, COLUMNS}};
  const layout from = layout_read(c, &s, k->from, ROWS, COLUMNS),
               to = layout_read(c, &s, k->to, ROWS, COLUMNS);
  value v = func_param(s.p, s.p->main, type_tensor(s.p, &whole, from, s.g), sym_of(c, "x"), ROLE_INPUT);
  v = plan_move(s.p, s.p->main, v, s.h, to, how, cost);
  if (v) func_return(s.p, s.p->main, &v, 1);
  sim_result r;
  if (!v || !sim_run(c, a, s.p, cost, &(sim_opts){.mode = SIM_FOLDED}, &r)) {
    fputs(diag_render(c, a), stderr);
    exit(1);
  }
  x.s = (double)r.makespan_ps * 1e-12, x.bytes = moved_bytes(s.p);
  prog_free(s.p);
  arena_free(a);
  ctx_free(c);
  return x;
}

// Every summand of every sum to every reader of the other group, through one card: what is left of `p2p` if sums may travel.
static double summands_s(const machine *m) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  cost_model *k = cost_model_new(c, a, m, NULL);
  const double one = (double)cost_comm(k, OP_send, (i64)8192 * 4096 * 2, (u32[]){0, 8}, 2, DT_F16) * 1e-12;
  arena_free(a);
  ctx_free(c);
  return 8 * 8 * one;
}

static void conversions(ctx *c, verdict *v) {
  const machine *m = machine_load(c, ctx_arena(c), cluster);
  printf("== SuperScaler: 18 conversions of 8192 x 4096 in f16 on %s; ms and MB sent in all\n", cluster);
  printf("%-14s %-10s %18s %18s %18s %8s\n", "", "groups", "p2p", "intra", "inter", "gain");
  double best = 0, v_to_r = 0;
  u32 exact = 0, slower = 0;
  for (u32 k = 0; k < KINDS; k++)
    for (u32 r = 0; r < RELATIONS; r++) {
      made x[MATERIALISE_WAYS];
      printf("%-14s %-10s", kinds[k].name, relation_name[r]);
      for (u32 how = MATERIALISE_WAYS; how-- > 0;) {
        x[how] = convert(r, &kinds[k], (materialise_way)how, m);
        exact += x[how].exact;
        printf(" %9.3f %8.1f", x[how].s * 1e3, x[how].bytes / 1e6);
      }
      const double gain = x[MATERIALISE_P2P].s / x[MATERIALISE_INTER].s;
      slower += x[MATERIALISE_INTER].s > 1.01 * x[MATERIALISE_INTRA].s; // a route counts no copies
      printf(x[MATERIALISE_INTER].s > 0 ? " %7.2fx\n" : "       -\n", gain);
      if (r && gain > best) best = gain;
      if (r == 1 && k == 2) v_to_r = x[MATERIALISE_INTER].s;
    }
  require(v, exact == KINDS * RELATIONS * MATERIALISE_WAYS, "element-exact: %u of %u", exact,
          KINDS * RELATIONS * MATERIALISE_WAYS);
  require(v, !slower, "the search between groups is slower than without in none (1 %%): %u of 18", slower);
  printf("best gain of the search between groups over plain sends and receives: %.1f here, 57 in the paper; "
         "V to R between\n"
         "groups of 8 with every summand sent to every reader through one card: %.1f\n",
         best, summands_s(m) / v_to_r);
}

// ---- strong scaling ------------------------------------------------------------------------------------------
// The best hybrid of the within under one way; 0: none fits.
static double best_s(const prog *src, const machine *m, u32 ranks, i64 batch, const char *within,
                     const char *how, char *name, size_t n) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  search_opts o = {.ranks = ranks,
                   .pow2 = true,
                   .train = true,
                   .batch = batch,
                   .top = 1,
                   .plain = true,
                   .optim = optim_default(OPTIM_ADAM)};
  search_result r;
  double s = 0;
  if (strategy_parse(c, a, arena_printf(a, "dp=* %s mb=* materialise=%s", within, how), &o.space) &&
      search_run(c, a, src, m, NULL, &o, &r)) {
    s = (double)r.point[0].time_ps * 1e-12;
    snprintf(name, n, "%s", strategy_str(a, &r.point[0].s));
  }
  arena_free(a);
  ctx_free(c);
  return s;
}

// within NULL: several tensor ranks and several stages.
static void scaling(ctx *c, const char *what, const char *within) {
  enum { BATCH = 512 };
  static const char *const nodes[] = {"1x4 v100", "1x8 v100", "2x8 v100 ib=100Gb/s", "4x8 v100 ib=100Gb/s"};
  arena *a = arena_new();
  prog *src = front_load(c, "gpt3-1.3b", &(front_opts){.batch = BATCH, .t = DT_F16, .loss = true});
  printf("GPT-3 1.3B, batch %d, strong scaling, %s: samples a second, each at its own best plan\n", BATCH,
         what);
  printf("%-6s %10s %10s %10s   %s\n", "V100", "p2p", "intra", "inter", "the plan of inter");
  for (u32 k = 0; k < COUNT_OF(nodes); k++) {
    const machine *m = machine_load(c, a, nodes[k]);
    char name[160] = "";
    printf("%-6u", 4u << k);
    for (u32 how = MATERIALISE_WAYS; how-- > 0;) {
      const double s = best_s(src, m, 4u << k, BATCH,
                              within ? within
                              : k    ? "tp=2,4 pp=2,4"
                                     : "tp=2 pp=2",
                              plan_materialise_name[how], name, sizeof name);
      printf(s > 0 ? " %10.2f" : "          -", BATCH / s);
    }
    printf("   %s\n", name);
  }
  prog_free(src);
  arena_free(a);
}

void reproduce_materialise(ctx *c, verdict *v) {
  conversions(c, v);
  scaling(c, "any hybrid", "tp=* pp=*");
  scaling(c, "tensor and pipeline parallelism", NULL);
  printf("\n");
}
