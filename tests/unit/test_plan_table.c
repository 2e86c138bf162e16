// test_plan_table.c - the published parallel plans, one row each: made on a small model, verified against one device, and
// written down. docs/plans.md has the table as it comes out here; HEDDLE_BLESS=1 writes it anew. A strategy that does nothing
// is no plan: each is held against the one without it, which has other memory, communication or time in the way that is known of it.
//
// A row that needs a choice or a schedule that does not exist says no. When there is one, it is tried.
#include "front/front.h"
#include "plan/plan.h"
#include "test.h"
#include <stdio.h>
#include <stdlib.h>

#define GPT  "gpt2:layers=4,hidden=32,heads=4,vocab=64,positions=16"
#define MOE  "moe-8x125m:layers=2,hidden=32,heads=4,head_dim=8,ffn=64,vocab=64,positions=16,experts=4"
#define BART "mbart-large:layers=2,hidden=32,heads=4,head_dim=8,ffn=64,vocab=96,positions=16"
#define FOLD "alphafold2:layers=4,hidden=16,heads=2,head_dim=8,ffn=32,pair=16,msa=4,positions=8"

static const char *const file = "docs/plans.md",
                         *const begin = "<!-- table of plans, from tests/unit/test_plan_table.c -->\n",
                         *const end = "<!-- end of table -->\n";
// The experts of every layer lie over the ranks that share the batch, and tokens go to them.
#define EXPERTS "heddle-annotate: 1\ndefault: {replicate: all}\nscopes: [{match: \"*experts\", split: all}]\n"
typedef struct {
  const char *plan, *model;
  i64 seq;
  const char *strategy;
  const char *needs, *schedule; // choice and schedule that it needs; NULL: none
  u32 devices;                  // so many that EXPERTS is for, beside the strategy; 0: no annotations
  const char *without;          // the same plan without it
  enum { LESS_MEMORY, MORE_MEMORY, LESS_TIME, OTHER_TIME } does;
} row;
static const row rows[] = {
    {"data parallelism", GPT, 16, "dp=4", NULL, NULL, 0, "dp=1", LESS_MEMORY},
    {"tensor parallelism", GPT, 16, "tp=4", NULL, NULL, 0, "tp=1", LESS_MEMORY},
    {"pipeline: GPipe", GPT, 16, "pp=4 mb=4 schedule=gpipe", NULL, "gpipe", 0, "pp=1 mb=4", LESS_MEMORY},
    {"pipeline: 1F1B", GPT, 16, "pp=4 mb=8", NULL, "1f1b", 0, "pp=4 mb=8 schedule=gpipe", LESS_MEMORY},
    {"pipeline: interleaved 1F1B", GPT, 16, "pp=2 mb=4 v=2 schedule=interleaved", NULL, "interleaved", 0,
     "pp=2 mb=4", LESS_TIME},
    {"pipeline: Chimera", GPT, 16, "pp=4 mb=4 schedule=chimera", NULL, "chimera", 0, "pp=4 mb=4", LESS_TIME},
    {"pipeline: PipeDream", "mlp-xs:layers=8,hidden=32", 16, "pp=4 mb=4 schedule=pipedream", NULL,
     "pipedream", 0, "pp=4 mb=4", MORE_MEMORY},
    {"sequence parallelism", GPT, 16, "tp=4 sp", "sp", NULL, 0, "tp=4", LESS_MEMORY},
    {"Megatron-LM's hybrid", GPT, 16, "dp=2 tp=2 pp=2 mb=4 sp", "sp", NULL, 0, "dp=2 tp=2 pp=2 mb=4",
     LESS_MEMORY},
    {"ZeRO 1", GPT, 16, "dp=4 zero=1", "zero", NULL, 0, "dp=4", LESS_MEMORY},
    {"ZeRO 2", GPT, 16, "dp=4 mb=2 zero=2", "zero", NULL, 0, "dp=4 mb=2 zero=1", LESS_MEMORY},
    {"ZeRO 3", GPT, 16, "dp=4 mb=2 zero=3", "zero", NULL, 0, "dp=4 mb=2 zero=2", LESS_MEMORY},
    {"ZeRO-Offload", GPT, 16, "dp=2 mb=2 zero=2 offload=grads+states update=host", "offload", NULL, 0,
     "dp=2 mb=2 zero=2", LESS_MEMORY},
    {"recomputation", GPT, 16, "dp=2 recompute=full", "recompute", NULL, 0, "dp=2", LESS_MEMORY},
    {"co-shard", GPT, 16, "dp=2 coshard=4", "coshard", NULL, 0, "dp=2", LESS_MEMORY},
    {"interlaced pipeline", BART, 8, "pp=4 mb=4 schedule=interlaced", NULL, "interlaced", 0, "pp=4 mb=4",
     OTHER_TIME},
    {"3F1B", FOLD ",recycle=3", 8, "pp=2 mb=4 schedule=3f1b", NULL, "3f1b", 0, "pp=1 mb=4", LESS_MEMORY},
    {"DAP", FOLD, 8, "dp=2 tp=4 axial", "axial", NULL, 0, "dp=2", LESS_MEMORY},
    {"mixture of experts", MOE, 8, "zero=0", NULL, NULL, 2, "dp=2", LESS_MEMORY},
    {"mixture of experts", MOE, 8, "zero=1", NULL, NULL, 4, "dp=4 zero=1", LESS_MEMORY},
    {"mixture of experts", MOE, 8, "dp=2 tp=2", NULL, NULL, 0, "dp=4", LESS_MEMORY},
    {"swap", GPT, 16, "dp=2 offload=acts", "offload", NULL, 0, "dp=2", LESS_MEMORY},
};

static bool exists(const row *r) {
  bool found = !r->needs;
  u32 word;
  for (u32 k = 0; k < CHOICE_COUNT && !found; k++) found = !strcmp(choice_get((choice_id)k)->name, r->needs);
  return found && (!r->schedule || policy_schedule_named(r->schedule, &word));
}

typedef struct {
  u32 ranks;
  u64 elements;
  i64 bytes, ps; // of the fullest rank, of a step
} made;
enum { BATCH = 8 };

static plan *plan_of(const row *r, const char *line, planner *pl, arena *a, strategy_set *said,
                     hybrid_opts *h) {
  ctx *c = planner_source(pl)->c;
  if (!strategy_parse(c, a, line, said) || !strategy_one(c, said, &h->s)) return NULL;
  if (r->devices && line == r->strategy)
    return policy_annotated(pl, a, sym_of(c, "experts"), EXPERTS, strlen(EXPERTS), h, r->devices);
  return strategy_settle(c, said, BATCH, true, &h->s) ? policy_hybrid(pl, a, h) : NULL;
}

// Does some function exchange pieces between ranks?
static bool exchanges(const prog *d) {
  bool any = false;
  for (u32 j = 1; j < d->funcs.n; j++)
    for (u32 k = 0; k < d->funcs.v[j]->body.n; k++) any |= d->funcs.v[j]->body.v[k].op == OP_all_to_all;
  return any;
}

static bool simulate(ctx *c, arena *a, const prog *p, made *out) {
  cost_model *k = cost_model_new(c, a, machine_load(c, a, "1x8 v100 hostmem=64GiB hostbw=64GB/s"), NULL);
  sim_result r;
  if (!sim_run(c, a, p, k, &(sim_opts){.mode = SIM_FOLDED, .bytes = SIM_BYTES_HEDDLE}, &r)) return false;
  out->bytes = r.peak_bytes, out->ps = r.makespan_ps;
  return true;
}

static bool make(const row *r, const char *line, bool verified, made *out) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  prog *p = front_load(c, r->model, &(front_opts){.batch = BATCH, .seq = r->seq, .loss = true});
  planner *pl = p ? planner_new(p) : NULL;
  strategy_set said;
  hybrid_opts h = {.said = &said, .train = true, .optim = optim_default(OPTIM_ADAM), .keep_gradients = true};
  verify_report v = {0};
  plan *pn = p ? plan_of(r, line, pl, a, &said, &h) : NULL;
  prog *d = pn ? plan_apply(pl, pn, NULL) : NULL;
  const bool ok = d && simulate(c, a, d, out) && plan_validate(d) &&
                  (!verified || (plan_verify(pl, pn, NULL, &(verify_opts){.seed = 7}, a, &v) && v.passed));
  CHECK_MSG(ok, "%s: %s: %s", r->plan, line, diag_render(c, a));
  const bool experts = r->devices && line == r->strategy;
  CHECK_MSG(!ok || !experts || exchanges(d), "%s on %u devices: no all_to_all", r->plan, r->devices);
  if (ok) out->ranks = mesh_get(d->sp, (mesh){1})->nranks;
  for (u32 k = 0; ok && k < v.nrows; k++) out->elements += (u64)v.row[k].elems;
  prog_free(d);
  planner_free(pl);
  prog_free(p);
  arena_free(a);
  ctx_free(c);
  return ok;
}

static bool does(const row *r, const made *x, const made *without) {
  switch (r->does) {
  case LESS_MEMORY: return x->bytes < without->bytes;
  case MORE_MEMORY: return x->bytes > without->bytes;
  case LESS_TIME: return x->ps < without->ps;
  default: return x->ps != without->ps;
  }
}

static char *read_all(arena *a) {
  ctx *c = ctx_new();
  file_view f;
  char *s = NULL;
  if (file_map(c, file, &f)) {
    s = arena_strndup(a, (const char *)f.data, f.size);
    file_unmap(&f);
  }
  ctx_free(c);
  return s;
}

static void write_between(const char *doc, const char *from, const char *to, const char *text) {
  FILE *f = fopen(file, "wb");
  REQUIRE(f != NULL);
  fwrite(doc, 1, (size_t)(from - doc), f);
  fputs(text, f);
  fputs(to, f);
  fclose(f);
}

TEST(plan_table_is_what_the_document_says) {
  arena *a = arena_new();
  strbuf b = {.a = a};
  u32 have = 0, all = 0;
  sb_put(&b, "| plan | Heddle | strategy | of | ranks | elements compared | held against | memory | time |\n"
             "|---|---|---|---|---|---|---|---|---|\n");
  for (u32 k = 0; k < COUNT_OF(rows); k++) {
    const row *r = &rows[k];
    made x = {0}, without = {0};
    const bool first = !k || strcmp(r->plan, rows[k - 1].plan) != 0;
    all += first;
    if (exists(r) && make(r, r->strategy, true, &x) && make(r, r->without, false, &without)) {
      have += first;
      CHECK_MSG(does(r, &x, &without), "%s: `%s`: %lld bytes, %lld ps, `%s`: %lld, %lld", r->plan,
                r->strategy, (long long)x.bytes, (long long)x.ps, r->without, (long long)without.bytes,
                (long long)without.ps);
      sb_fmt(&b, "| %s | yes | %s`%s` | %.*s | %u | %llu | `%s` | %.2fx | %.2fx |\n", r->plan,
             r->devices ? "experts over all ranks, " : "", r->strategy, (int)strcspn(r->model, ":"), r->model,
             x.ranks, (unsigned long long)x.elements, r->without, (double)x.bytes / (double)without.bytes,
             (double)x.ps / (double)without.ps);
    } else {
      sb_fmt(&b, "| %s | no: there is no %s `%s` | | | | | | | |\n", r->plan,
             r->schedule ? "schedule" : "choice", r->schedule ? r->schedule : r->needs);
    }
  }
  sb_fmt(&b, "\n%u of %u; SuperScaler has 15 of the 18 that it lists.\n", have, all);
  sb_fmt(&b, "Models: `%s`, `%s`, `%s`, `%s`; 3F1B with `recycle=3`.\n", GPT, BART, FOLD, MOE);
  const char *doc = read_all(a);
  REQUIRE(doc != NULL);
  const char *from = strstr(doc, begin), *to = from ? strstr(from, end) : NULL;
  REQUIRE(to != NULL);
  from += strlen(begin);
  if (getenv("HEDDLE_BLESS"))
    write_between(doc, from, to, sb_str(&b));
  else
    CHECK_STR(arena_strndup(a, from, (size_t)(to - from)), sb_str(&b));
  arena_free(a);
}
