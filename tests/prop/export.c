// export.c - exported PyTorch programs against the evaluator: after each of some steps the loss, and in the end every
// weight and state, on one, two and four gloo processes. Needs python3 with torch (Debian: python3-torch).
#include "base/base.h"
#include "eval/eval.h"
#include "export/export.h"
#include "heddle.h"
#include "test.h"
#include "torch.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPT "gpt2:layers=4,hidden=16,heads=2,vocab=32"
#define EVO                                                                                                  \
  "alphafold2:layers=2,hidden=16,heads=2,head_dim=8,ffn=24,vocab=12,msa=2,pair=16,positions=8,recycle=3"
#define MLP "mlp-xs:layers=4,hidden=16"
typedef struct {
  const char *model;
  int64_t batch, seq;
  const char *strategy, *optimizer, *dtype;
} one;
static const one all[] = {
    {MLP, 8, 0, "dp=1", "sgd", NULL},
    {MLP, 8, 0, "dp=2 tp=2", "momentum", NULL},
    {GPT, 8, 8, "dp=1 mb=2", "adafactor", NULL},
    {GPT, 8, 8, "dp=2 tp=2 mb=2", "sgd", NULL},
    {GPT, 8, 8, "tp=2 sp", "adam", NULL},
    {GPT, 8, 8, "tp=2 tables=whole recompute=selective", "sgd", NULL},
    {GPT, 8, 8, "pp=2 mb=4 schedule=gpipe", "sgd", NULL},
    {GPT, 8, 8, "dp=2 pp=2 mb=4", "adamw", NULL},
    {GPT, 8, 8, "pp=2 v=2 mb=4 schedule=interleaved", "sgd", NULL},
    {GPT, 8, 8, "pp=2 mb=4 schedule=chimera", "sgd", NULL},
    {GPT, 8, 8, "pp=2 mb=4 schedule=zb-h1", "adam", NULL},
    {GPT, 8, 8, "pp=2 mb=4 schedule=dualpipev", "sgd", NULL},
    {GPT, 8, 8, "pp=2 mb=4 schedule=interlaced", "sgd", NULL},
    {MLP, 8, 0, "pp=2 mb=4 schedule=pipedream", "sgd", NULL},
    {GPT, 8, 8, "dp=2 zero=1 mb=2 offload=params+grads+states+acts", "adam", NULL},
    {GPT, 8, 8, "pp=2 mb=2 offload=acts+states", "momentum", NULL},
    {GPT, 8, 8, "dp=2 zero=2 mb=2 offload=grads+states update=host", "adam", NULL},
    {GPT, 8, 8, "dp=2 zero=1 offload=states update=host", "adam", "bf16"},
    {GPT, 8, 8, "dp=2 zero=2 mb=2", "adam", NULL},
    {GPT, 8, 8, "dp=2 mb=2 overlap=dp", "adam", NULL},
    {GPT, 8, 8, "dp=2 pp=2 v=2 mb=4 schedule=interleaved zero=1 overlap=pp+dp", "adam", NULL},
    {GPT, 8, 8, "dp=2 tp=2 zero=3 sp mb=2", "adam", NULL},
    {GPT, 8, 8, "dp=2 pp=2 mb=2 zero=3 recompute=full", "momentum", NULL},
    {GPT, 8, 8, "dp=2 zero=3 grads=f32", "adam", "bf16"},
    {GPT, 8, 8, "dp=2 zero=2", "adafactor", NULL},
    {GPT, 8, 8, "tp=2 pp=2 mb=2 tp.stages=2/1", "sgd", NULL},
    {GPT, 8, 8, "replicas=2x1+1x1 mb=2", "sgd", NULL},
    {GPT, 8, 8, "dp=2 coshard=2", "sgd", NULL},
    {GPT, 8, 8, "dp=2 tp=2 sp attention=fused", "adam", NULL},
    {"t5-small:layers=2,hidden=16,heads=2,ffn=32,vocab=32", 4, 8, "tp=2 mb=2 attention=fused", "sgd", NULL},
    {GPT, 8, 8, "pp=2 mb=4 schedule=dualpipe", "sgd", NULL},
    {GPT, 8, 8, "pp=2 mb=4 schedule=gems", "sgd", NULL},
    {GPT, 8, 8, "pp=2 mb=4 schedule=interlaced-block", "sgd", NULL},
    {GPT, 8, 8, "pp=4 mb=8 schedule=pipedream", "momentum", NULL},
    {GPT, 8, 8, "pp=2 mb=4 schedule=pipedream-2bw", "adam", NULL},
    {GPT, 8, 8, "pp=2 dp=2 mb=2 materialise=intra", "sgd", NULL},
    {GPT, 8, 8, "pp=4 mb=4", "adam", NULL}, // two of four have the table
    {EVO, 8, 4, "tp=2 axial", "sgd", NULL},
    {EVO, 8, 4, "pp=2 mb=4 schedule=3f1b", "sgd", NULL},
    {"llama2-70b:layers=2,hidden=16,heads=4,ffn=32,vocab=32", 4, 8, "tp=2 sp", "sgd", NULL},
    {"moe-8x125m:layers=2,hidden=16,heads=2,vocab=32,experts=2", 4, 8, "tp=2", "sgd", NULL},
    {"resnet50:hidden=4,vocab=8", 4, 32, "dp=2", "sgd", NULL},
    {"resnet50:hidden=4,vocab=8", 4, 32, "pp=2 mb=2", "momentum", NULL},
    {GPT "3", 8, 8, "tp=2 sp", "sgd", NULL}, // 323 rows of the table in uneven pieces
    {"tests/golden/onnx/encoder.onnx", 4, 0, "tp=2", "sgd", NULL},
};
enum { STEPS = 3 };

static bool put_text(const char *folder, const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  if (!f) return false;
  fputs(text, f);
  return !fclose(f);
}

// What the step gives under "X.new" is X of the next one.
static void take_new(heddle_tensors *in, const heddle_tensors *out) {
  heddle_tensor old, new;
  for (uint32_t k = 0; heddle_tensors_get(in, k, &old); k++)
    for (uint32_t j = 0; heddle_tensors_get(out, j, &new); j++) {
      const size_t n = strlen(old.name);
      if (strncmp(new.name, old.name, n) || strcmp(new.name + n, ".new")) continue;
      int64_t elems = 1;
      for (uint32_t d = 0; d < new.ndims; d++) elems *= new.dims[d];
      const size_t each = strstr(new.dtype, "64") ? 8 : strstr(new.dtype, "16") ? 2 : 4;
      memcpy((void *)(uintptr_t)old.data, new.data, (size_t)elems * each);
    }
}

static double loss_of(const heddle_tensors *out) {
  heddle_tensor x;
  for (uint32_t k = 0; heddle_tensors_get(out, k, &x); k++)
    if (!x.ndims && !strcmp(x.dtype, "f32"))
      return (double)*(const float *)x.data;
    else if (!x.ndims && !strcmp(x.dtype, "bf16")) {
      const uint32_t bits = (uint32_t) * (const uint16_t *)x.data << 16;
      float v;
      memcpy(&v, &bits, sizeof v);
      return (double)v;
    }
  return -1;
}

// The program, what it reads and what it must give, in a folder.
static bool prepare(const one *c, const char *folder) {
  heddle_session *s = heddle_session_new();
  const heddle_load_options load = {.batch = c->batch, .seq = c->seq, .loss = true, .dtype = c->dtype};
  heddle_plan_options o = {.train = true};
  char path[256], losses[STEPS * 32] = "", ranks[64];
  mkdir(folder, 0755);
  heddle_program *p = heddle_program_load(s, c->model, &load);
  heddle_optimizer_find(s, c->optimizer, &o.optimizer);
  heddle_program *d = heddle_plan_apply(heddle_plan_make(p, c->strategy, &o));
  const char *text = heddle_program_export(d, "pytorch", NULL);
  heddle_tensors *in = heddle_tensors_random(d, 3);
  snprintf(path, sizeof path, "%s/arrays", folder);
  bool ok = text && put_text(folder, "program.py", text) && heddle_tensors_write(in, path);
  for (int k = 0; k < STEPS && ok; k++) {
    heddle_tensors *out = heddle_tensors_eval(d, in, false);
    ok = out;
    if (!ok) break;
    snprintf(losses + strlen(losses), 32, "%.9g\n", loss_of(out));
    take_new(in, out);
    heddle_tensors_free(out);
  }
  snprintf(path, sizeof path, "%s/want", folder);
  // bf16 rounds by 2^-9, and where it does torch and Heddle differ
  snprintf(ranks, sizeof ranks, "%u %g %g", heddle_program_ranks(d), c->dtype ? 0.02 : 1e-4,
           c->dtype ? 0.002 : 1e-4);
  ok = ok && heddle_tensors_write(in, path) && put_text(folder, "losses", losses) &&
       put_text(folder, "ranks", ranks);
  CHECK_MSG(ok, "%s | %s: %s", c->model, c->strategy, heddle_session_messages(s));
  heddle_session_free(s);
  return ok;
}

TEST(export_gives_the_same_losses_and_weights) {
  char dir[] = "/tmp/heddle-export-XXXXXX", folders[4096] = "", line[1024] = "", command[128];
  size_t ready[COUNT_OF(all)], n = 0, at = 0;
  FILE *f = torch_driver("export.py", "", line, sizeof line);
  if (!f) SKIP("no python3 with torch (Debian: python3-torch)");
  pclose(f);
  REQUIRE(mkdtemp(dir));
  for (size_t k = 0; k < COUNT_OF(all); k += test_step()) {
    char folder[64];
    snprintf(folder, sizeof folder, "%s/%zu", dir, k);
    if (!prepare(&all[k], folder)) continue;
    at += (size_t)snprintf(folders + at, sizeof folders - at, " %s", folder);
    ready[n++] = k;
  }
  f = torch_driver("export.py", folders, line, sizeof line);
  REQUIRE(f);
  for (size_t k = 0; k < n; k++) {
    const one *c = &all[ready[k]];
    if (!fgets(line, sizeof line, f)) snprintf(line, sizeof line, "no answer");
    line[strcspn(line, "\n")] = 0;
    CHECK_MSG(!strcmp(line, "ok"), "%s | %s: %s", c->model, c->strategy, line);
  }
  CHECK(!pclose(f));
  snprintf(command, sizeof command, "rm -rf %s", dir);
  if (!getenv("HEDDLE_KEEP")) CHECK(!system(command));
}

// ---- rows ----------------------------------------------------------------------------------------------
static const u16 rows[] = {
#define PT(op, ...) OP_##op,
#include "export/operators.def"
#undef PT
};

// Attributes that the examples do not have.
static const struct {
  u16 op;
  const char *attributes;
} others[] = {{OP_depth_to_space, "size=4, mode=\"CRD\""},
              {OP_lrn, "size=4, alpha=0.5"},
              {OP_scatter_nd, "scatter=\"add\""},
              {OP_scatter_nd, "scatter=\"max\""},
              {OP_reverse, "axis=2"},
              {OP_attention, "law=\"bshd,bthd,bthe->bshe\", alpha=0.2, causal=\"s\""},
              {OP_attention, "law=\"bshd,bthd,bthe->bshe\", causal=\"s\", value=-0.5"},
              {OP_attention_dx, "law=\"bshd,bthd,bthe->bshe\", alpha=0.2, causal=\"s\", value=-0.5"},
              {OP_hardmax, "axis=0"}};

// One operator with its example, or with other attributes, as a program of one process; its inputs and its results.
static bool prepare_row(opcode op, const char *attributes, const char *folder) {
  ctx *c = ctx_new();
  arena *a = ctx_arena(c);
  char path[256];
  const op_example e = op_example_of(a, op);
  const application_text text = {e.shapes, attributes ? attributes : e.attributes, DT_F32};
  prog *p = ir_application(c, op, &text);
  const char *py =
      p ? export_program(p, a, "pytorch", &(export_about){op_row_of(op)->name, NULL, NULL, NULL}) : NULL;
  bool ok = py;
  mkdir(folder, 0755);
  if (ok) {
    const func_info *m = func_get(p, p->main);
    eval_array *in = ZNEWN(a, eval_array, m->nparams + 1), *out = ZNEWN(a, eval_array, m->rets.n + 1);
    ok = put_text(folder, "program.py", py) && eval_random(p, 5, in, m->nparams, a) &&
         eval_run(p, &(eval_opts){0}, in, m->nparams, out, m->rets.n, a);
    snprintf(path, sizeof path, "%s/arrays", folder), mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/want", folder), mkdir(path, 0755);
    for (u32 k = 0; k < m->nparams && ok; k++) {
      snprintf(path, sizeof path, "%s/arrays/%u.npy", folder, k);
      ok = npy_write(c, path, &in[k]);
    }
    bool loss = false;
    for (u32 k = 0; k < m->rets.n && ok; k++) {
      const sym name = val(m, m->rets.v[k])->name;
      const bool scalar = !out[k].s.nd && dtype_kind_of(out[k].s.t) == DK_FLOAT && !loss;
      loss = loss || scalar;
      if (scalar)
        snprintf(path, sizeof path, "%s/want/loss.npy", folder);
      else if (name.i)
        snprintf(path, sizeof path, "%s/want/%s.npy", folder, sym_str(c, name));
      else
        snprintf(path, sizeof path, "%s/want/%u.npy", folder, k);
      ok = npy_write(c, path, &out[k]);
    }
  }
  CHECK_MSG(ok, "%s: %s", op_row_of(op)->name, diag_render(c, a));
  prog_free(p);
  ctx_free(c);
  return ok;
}

TEST(export_rows_give_what_the_kernels_give) {
  char dir[] = "/tmp/heddle-export-XXXXXX", folders[16384] = "--single", line[1024] = "", command[128];
  u16 ready[COUNT_OF(rows) + COUNT_OF(others)];
  size_t n = 0, at = strlen(folders);
  FILE *f = torch_driver("export.py", "", line, sizeof line);
  if (!f) SKIP("no python3 with torch (Debian: python3-torch)");
  pclose(f);
  REQUIRE(mkdtemp(dir));
  for (size_t k = 0; k < COUNT_OF(rows) + COUNT_OF(others); k += test_step()) {
    char folder[64];
    const bool other = k >= COUNT_OF(rows);
    const u16 op = other ? others[k - COUNT_OF(rows)].op : rows[k];
    if (k && !other && op == rows[k - 1]) continue;
    snprintf(folder, sizeof folder, "%s/%s.%zu", dir, op_row_of((opcode)op)->name, k);
    if (!prepare_row((opcode)op, other ? others[k - COUNT_OF(rows)].attributes : NULL, folder)) continue;
    at += (size_t)snprintf(folders + at, sizeof folders - at, " %s", folder);
    ready[n++] = op;
  }
  f = torch_driver("export.py", folders, line, sizeof line);
  REQUIRE(f);
  for (size_t k = 0; k < n; k++) {
    if (!fgets(line, sizeof line, f)) snprintf(line, sizeof line, "no answer");
    line[strcspn(line, "\n")] = 0;
    CHECK_MSG(!strcmp(line, "ok"), "%s: %s", op_row_of((opcode)ready[k])->name, line);
  }
  CHECK(!pclose(f));
  snprintf(command, sizeof command, "rm -rf %s", dir);
  if (!getenv("HEDDLE_KEEP")) CHECK(!system(command));
}

TEST(attention_is_that_of_the_gpu_where_it_has_a_kernel) {
  char line[1024] = "";
  u32 laws = 0;
  FILE *f = torch_driver("flash.py", "src/export/pytorch.py", line, sizeof line);
  if (!f) SKIP("no python3 with torch (Debian: python3-torch)");
  for (; fgets(line, sizeof line, f); laws++) CHECK_MSG(!strcmp(line, "ok\n"), "%s", line);
  CHECK(!pclose(f) && laws == 8);
}
