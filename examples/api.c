// api.c - the C interface in one page: plans a model, checks the plan's numbers, tells what it costs.
//
//   cc examples/api.c $(pkg-config --cflags --libs heddle) -o api && ./api
#include <heddle.h>
#include <stdio.h>

int main(void) {
  heddle_session *s = heddle_session_new();
  if (!s) return 1;
  heddle_load_options load = {.batch = 32, .seq = 32, .loss = true};
  heddle_program *model = heddle_program_load(s, "gpt2:layers=4,hidden=64,heads=4,vocab=256", &load);
  heddle_machine *machine = heddle_machine_load(s, "dgx-2 usable=28GB");

  // Search over data, tensor and pipeline parallelism, microbatches and recomputing; of ZeRO two stages only.
  heddle_search_options search = {
      .strategy = "zero=0,1", .train = true, .optimizer = {.name = "adam"}, .top = 5};
  heddle_search *found = heddle_search_run(model, machine, &search);
  heddle_plan *best = heddle_search_plan(found, 0);

  // Two ways of looking at the winner: how long a step takes, and whether it computes the same.
  heddle_result *result = heddle_result_run(heddle_plan_apply(best), machine, NULL);
  heddle_check *check = heddle_check_run(best, NULL);

  // A failure anywhere above comes out here as NULL, with diagnostics in the session.
  if (result && check)
    printf("%s: %.3f ms a step, %.1f MB on the fullest device, %s\n", heddle_plan_name(best),
           (double)heddle_result_time_ps(result) * 1e-9, (double)heddle_result_peak_bytes(result) * 1e-6,
           heddle_check_passed(check) ? "the same numbers" : "other numbers");
  else
    fputs(heddle_session_messages(s), stderr);
  int status = result && check && heddle_check_passed(check) ? 0 : 1;
  heddle_session_free(s);
  return status;
}
