// plans.c - two plans as programs, out of trans, assign and order: data parallelism, and the interlaced pipeline of
// SuperScaler, whose large tables lie on all places between the layers.
//
//   cc examples/plans.c $(pkg-config --cflags --libs heddle) -o plans && ./plans
#include <heddle.h>
#include <stdio.h>
#include <string.h>

// Algorithm 1: the batch of every input is split, and every operator runs on all devices.
static heddle_plan *data_parallel(heddle_program *p, uint32_t devices) {
  heddle_draft *d = heddle_draft_new(p, "data parallel", &(heddle_plan_options){.train = true});
  heddle_draft_axis(d, "dp", devices);
  heddle_draft_mesh(d, "all", 0, 1, (const char *[]){"dp"});
  heddle_operator op;
  heddle_operand x;
  for (uint32_t i = 1; heddle_program_operator(p, NULL, i, &op); i++)
    for (uint32_t k = 0; heddle_program_operand(p, NULL, i, k, &x); k++)
      if (x.role && (!strcmp(x.role, "input") || !strcmp(x.role, "label")))
        heddle_draft_trans_input(d, x.name, 0, "dp");
  heddle_draft_assign(d, 1, heddle_program_operators(p, NULL), "all", NULL, 0);
  heddle_draft_order(d, 0, 'F', 0, 0);
  heddle_draft_order(d, 0, 'B', 0, 0);
  return heddle_draft_plan(d);
}

// Algorithm 2: layers go to one device each; what stands before and after them goes to all devices, its tables split by
// rows. Segment 0 is the embedding, 1 to n the layers, n + 1 the head.
static heddle_plan *interlaced(heddle_program *p, uint32_t devices, uint32_t microbatches) {
  heddle_draft *d = heddle_draft_new(p, "interlaced", &(heddle_plan_options){.train = true});
  const uint32_t n = heddle_program_operators(p, NULL);
  uint32_t first = 0, last = 0, f[64] = {0}, b[64] = {0};
  heddle_operator op;
  heddle_operand x;
  heddle_draft_axis(d, "pp", devices);
  heddle_draft_time(d, "mb", microbatches);
  heddle_draft_mesh(d, "m", 0, 1, (const char *[]){"pp"});
  for (uint32_t i = 1; heddle_program_operator(p, NULL, i, &op); i++) {
    if (op.calls) last = i, first = first ? first : i;
    for (uint32_t k = 0; heddle_program_operand(p, NULL, i, k, &x); k++) {
      if (x.role && (!strcmp(x.role, "input") || !strcmp(x.role, "label")))
        heddle_draft_trans_input(d, x.name, 0, "mb");
      if (x.role && !strcmp(x.role, "weight") && x.ndims == 2 && x.dims[0] >= 4096)
        heddle_draft_trans(d, &op, k, 0, "pp");
    }
  }
  heddle_draft_assign(d, 1, first - 1, "m", NULL, 0);
  for (uint32_t k = 0, at = first; k < devices; k++) { // layers in equal parts
    const uint32_t end = first + (last - first + 1) * (k + 1) / devices;
    heddle_draft_assign(d, at, end - 1, "m", "pp", k);
    at = end;
  }
  heddle_draft_assign(d, last + 1, n, "m", NULL, 0);
  // In every round a device runs at most one task of its layers; tasks of the tables are run by all.
  const uint32_t head = devices + 1;
  while (b[0] < microbatches) {
    uint32_t before_f[64], before_b[64];
    memcpy(before_f, f, sizeof f), memcpy(before_b, b, sizeof b);
    for (uint32_t k = 1; k <= devices; k++) {
      if (b[k] < before_b[k + 1])
        heddle_draft_order(d, k - 1, 'B', k, b[k]++);
      else if (f[k] < before_f[k - 1] && f[k] - b[k] <= devices - k)
        heddle_draft_order(d, k - 1, 'F', k, f[k]++);
    }
    const uint32_t wide = f[head] < before_f[devices] ? head : 0;
    const int back = wide ? 0 : b[0] < before_b[1];
    if (!wide && !back && (f[0] == microbatches || f[0] - b[0] > devices)) continue;
    for (uint32_t k = 0; k < devices; k++) {
      heddle_draft_order(d, k, back ? 'B' : 'F', wide, back ? b[0] : f[wide]);
      if (wide) heddle_draft_order(d, k, 'B', wide, f[wide]);
    }
    if (wide) b[wide]++;
    back ? b[0]++ : f[wide]++;
  }
  heddle_draft_set(d, "send-stream", "pp");
  heddle_draft_set(d, "send-channels", "4");
  return heddle_draft_plan(d);
}

static int tell(heddle_plan *b, heddle_machine *m) {
  heddle_result *r = heddle_result_run(heddle_plan_apply(b), m, NULL);
  heddle_check *c = heddle_check_run(b, NULL);
  if (!r || !c) return 1;
  printf("%s: %.3f ms a step, %s\n", heddle_plan_name(b), (double)heddle_result_time_ps(r) * 1e-9,
         heddle_check_passed(c) ? "the same numbers" : "other numbers");
  return !heddle_check_passed(c);
}

int main(void) {
  heddle_session *s = heddle_session_new();
  if (!s) return 1;
  heddle_load_options load = {.batch = 8, .seq = 16, .loss = true};
  heddle_program *p = heddle_program_load(s, "gpt2:layers=4,hidden=64,heads=4,vocab=4096", &load);
  heddle_machine *m = heddle_machine_load(s, "1x4 v100");
  const int status = tell(data_parallel(p, 4), m) || tell(interlaced(p, 4, 4), m);
  fputs(heddle_session_messages(s), stderr);
  heddle_session_free(s);
  return status;
}
