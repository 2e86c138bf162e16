// measure.c - exported programs that measure events: run on one and two gloo processes, what they write is imported, and a
// simulation then has the measured time of every event. Needs python3 with torch (Debian: python3-torch).
#include "export/export.h"
#include "heddle.h"
#include "machine/machine.h"
#include "test.h"
#include "torch.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPT "gpt2:layers=2,hidden=16,heads=2,vocab=33"
#define MLP "mlp-xs:layers=2,hidden=16"
typedef struct {
  const char *model;
  int64_t batch, seq;
  const char *strategy, *optimizer, *dtype, *machine;
  int ranks, nodes; // of the job
  bool scaled;      // members are more than its processes
} one;
static const one all[] = {
    {GPT, 4, 8, "dp=1", "adam", NULL, "1x1 cpu-core", 1, 1, false},
    {GPT, 4, 8, "dp=2 zero=2", "adam", NULL, "1x2 cpu-core", 2, 1, false},
    {GPT, 4, 8, "tp=2 sp mb=2", "sgd", NULL, "1x2 cpu-core", 2, 1, false}, // 33 rows in uneven pieces
    {GPT, 4, 8, "pp=2 mb=2 recompute=full", "momentum", NULL, "2x1 cpu-core ib=10Gb/s", 2, 2, false},
    {MLP, 8, 0, "dp=4 zero=3", "sgd", "bf16", "1x4 cpu-core", 2, 1, true},
    {"moe-8x125m:layers=2,hidden=16,heads=2,vocab=32,experts=2", 4, 8, "tp=2", "sgd", NULL, "1x2 cpu-core", 2,
     1, false},
};

static bool put_text(const char *folder, const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  if (!f) return false;
  fputs(text, f);
  return !fclose(f);
}

typedef struct {
  heddle_session *s;
  heddle_machine *m;
  heddle_program *d;
} bed;

static bed open_bed(const one *c) {
  bed b = {.s = heddle_session_new()};
  const heddle_load_options load = {.batch = c->batch, .seq = c->seq, .loss = true, .dtype = c->dtype};
  heddle_plan_options o = {.train = true};
  heddle_program *p = heddle_program_load(b.s, c->model, &load);
  heddle_optimizer_find(b.s, c->optimizer, &o.optimizer);
  b.m = heddle_machine_load(b.s, c->machine);
  heddle_plan *pn = heddle_plan_make(p, c->strategy, &o);
  if (heddle_plan_on(pn, b.m, NULL)) b.d = heddle_plan_apply(pn);
  CHECK_MSG(b.d, "%s | %s: %s", c->model, c->strategy, heddle_session_messages(b.s));
  return b;
}

static bool prepare(const one *c, const char *folder) {
  char ranks[32];
  bed b = open_bed(c);
  const char *text = heddle_program_export(b.d, "profile-pytorch", b.m);
  snprintf(ranks, sizeof ranks, "%d %d", c->ranks, c->nodes);
  mkdir(folder, 0755);
  const bool ok = text && put_text(folder, "program.py", text) && put_text(folder, "ranks", ranks);
  CHECK_MSG(ok, "%s | %s: %s", c->model, c->strategy, heddle_session_messages(b.s));
  heddle_session_free(b.s);
  return ok;
}

// What was measured is there for every event, and is what the step is made of.
static void import_and_simulate(const one *c, const char *folder) {
  char file[256], db[256];
  bed b = open_bed(c);
  snprintf(file, sizeof file, "%s/times.jsonl", folder);
  snprintf(db, sizeof db, "%s/times.db", folder);
  const char *said = heddle_profile_report(heddle_profile_import(b.s, file, db, b.m, b.d), HEDDLE_JSON);
  CHECK_MSG(said && strstr(said, "\"left\": 0,") && strstr(said, "\"failed\": 0,"), "%s | %s: %s%s", c->model,
            c->strategy, said ? said : "", heddle_session_messages(b.s));
  CHECK_MSG(said && !strstr(said, "\"scaled\": 0,") == c->scaled, "%s: %s", c->strategy, said);
  const bool has = heddle_machine_profiles(b.m, db);
  const char *sim = has ? heddle_result_report(heddle_result_run(b.d, b.m, NULL), HEDDLE_TEXT) : NULL;
  const char *sources = sim ? strstr(sim, "\ncost source") : NULL;
  CHECK_MSG(sources, "%s: %s", c->strategy, heddle_session_messages(b.s));
  u32 n = 0;
  for (const char *s = sources ? strchr(sources + 1, '\n') : NULL; s && s[1] && s[1] != '\n';
       s = strchr(s + 1, '\n'), n++)
    CHECK_MSG(!strncmp(s + 1, "measured ", 9) || (c->scaled && !strncmp(s + 1, "scaled ", 7)), "%s: %.40s",
              c->strategy, s + 1);
  CHECK(n);
  heddle_session_free(b.s);
}

// Every communication that there is, between two.
static const char moves[] =
    "mesh @m [x=2]\n"
    "main @moves on @m(%w: f32[64] weight, %s: f32[64{x}] weight, %q: f32[8,8{x}] weight, %r: f32[64] "
    "@m[x=0] weight, "
    "%h: f32[64{x:0-32|32-64}] weight) -> (f32[64], f32[64{x}], f32[64], f32[8{x},8], f32[64], f32[64] "
    "@m[x=0], "
    "f32[64] @m[x=0], f32[64{x}], f32[8{x},8], f32[64{x:0-36|28-64}], f32[64], f32[64] @m[x=1]) {\n"
    "  %p = partial %w over x : f32[64]+x\n"
    "  %1 = all_reduce %p over x : f32[64]\n"
    "  %2 = reduce_scatter %p over x : f32[64{x}]\n"
    "  %3 = all_gather %s over x : f32[64]\n"
    "  %4 = all_to_all %q over x : f32[8{x},8]\n"
    "  %5 = broadcast %r {root=0} over x : f32[64]\n"
    "  %6 = reduce %p {root=0} over x : f32[64] @m[x=0]\n"
    "  %7 = gather_to %s {root=0} over x : f32[64] @m[x=0]\n"
    "  %8 = scatter_from %r {root=0} over x : f32[64{x}]\n"
    "  %9 = permute %q over x : f32[8{x},8]\n"
    "  %10 = halo_exchange %h over x : f32[64{x:0-36|28-64}]\n"
    "  %11 = exchange %s over x : f32[64]\n"
    "  %12 = send %r @m[x=0] : f32[64] @m[x=1]\n"
    "  return %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12\n}\n";

static bool prepare_moves(const char *folder) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  prog *p = ir_parse(c, sym_of(c, "moves"), moves, strlen(moves));
  machine *m = machine_load(c, a, "1x2 cpu-core");
  const export_about about = {.model = "moves", .machine = "1x2 cpu-core", .on = m};
  const char *text = p && m ? export_program(p, a, "profile-pytorch", &about) : NULL;
  mkdir(folder, 0755);
  const bool ok = text && put_text(folder, "program.py", text) && put_text(folder, "ranks", "2 1");
  CHECK_MSG(ok, "%s", diag_render(c, a));
  for (u32 op = 1; op < OP_COUNT && ok; op++) {
    const op_row *row = op_row_of((opcode)op);
    const char *event = arena_printf(a, "Event(\"%s f32 ", row->name);
    if (row->flags & OPF_COMM && op != OP_shard && op != OP_partial && op != OP_copy && op != OP_part &&
        op != OP_join)
      CHECK_MSG(strstr(text, event), "no event of %s", row->name);
  }
  prog_free(p);
  ctx_free(c);
  return ok;
}

TEST(measured_elsewhere_and_imported) {
  char dir[] = "/tmp/heddle-measure-XXXXXX", folders[2048] = "", line[1024] = "", command[128], folder[64];
  size_t n = 0, at = 0;
  FILE *f = torch_driver("measure.py", "", line, sizeof line);
  if (!f) SKIP("no python3 with torch (Debian: python3-torch)");
  pclose(f);
  REQUIRE(mkdtemp(dir));
  for (; n <= COUNT_OF(all); n++) {
    snprintf(folder, sizeof folder, "%s/%zu", dir, n);
    REQUIRE(n < COUNT_OF(all) ? prepare(&all[n], folder) : prepare_moves(folder));
    at += (size_t)snprintf(folders + at, sizeof folders - at, " %s", folder);
  }
  f = torch_driver("measure.py", folders, line, sizeof line);
  REQUIRE(f);
  for (size_t k = 0; k < n; k++) {
    if (!fgets(line, sizeof line, f)) snprintf(line, sizeof line, "no answer");
    line[strcspn(line, "\n")] = 0;
    CHECK_MSG(!strcmp(line, "ok"), "%s: %s", k < COUNT_OF(all) ? all[k].strategy : "moves", line);
    snprintf(folder, sizeof folder, "%s/%zu", dir, k);
    if (k < COUNT_OF(all) && !strcmp(line, "ok")) import_and_simulate(&all[k], folder);
  }
  CHECK(!pclose(f));
  snprintf(command, sizeof command, "rm -rf %s", dir);
  if (!getenv("HEDDLE_KEEP")) CHECK(!system(command));
}
