// operators.c - operators of your own: what they compute, how they may be split, what they cost, and their gradients.
//
//   cc examples/operators.c $(pkg-config --cflags --libs heddle) -o operators && ./operators
//   cc -shared -fPIC -DROWS_ONLY examples/operators.c $(pkg-config --cflags heddle) -o operators.so
//   heddle plan examples/operators/model.heddle --operators operators.so --train --machine dgx-2 --devices 4
#include <heddle.h>
#include <math.h>
#include <stdio.h>

static double silu(double x) { return x / (1 + exp(-x)); }

// A kernel sees what one rank holds: floats are doubles, whatever the program says.
static bool swiglu(void *arg, const heddle_application *x) {
  (void)arg;
  const double *gate = x->operands[0].data, *up = x->operands[1].data;
  double *y = x->results[0].data;
  int64_t n = 1;
  for (uint32_t d = 0; d < x->results[0].ndims; d++) n *= x->results[0].dims[d];
  for (int64_t i = 0; i < n; i++) y[i] = silu(gate[i]) * up[i];
  return true;
}

// The same, and the product with w[k,n] in one go.
static bool swiglu_matmul(void *arg, const heddle_application *x) {
  (void)arg;
  const double *gate = x->operands[0].data, *up = x->operands[1].data, *w = x->operands[2].data;
  double *y = x->results[0].data;
  const int64_t m = x->operands[0].dims[0] * x->operands[0].dims[1], k = x->operands[2].dims[0],
                n = x->operands[2].dims[1];
  for (int64_t i = 0; i < m * n; i++) y[i] = 0;
  for (int64_t i = 0; i < m; i++)
    for (int64_t c = 0; c < k; c++) {
      const double h = silu(gate[i * k + c]) * up[i * k + c];
      for (int64_t j = 0; j < n; j++) y[i * n + j] += h * w[c * n + j];
    }
  return true;
}

static const heddle_operator_row rows[] = {
    {.name = "swiglu",
     .about = "silu(gate) up",
     .operands = "gate, up",
     .law = "bsh,bsh->bsh", // all may be split; silu is not linear, so sums of gate are completed before
     .linear = "-e",
     .reduction = "sum",
     .gradient = "%s = silu %gate\n"
                 "%d_up = mul %d_y, %s\n"
                 "%t = mul %d_y, %up\n"
                 "%d_gate = silu_dx %t, %gate\n",
     .flops = 7,
     .kernel = swiglu,
     .pytorch = "F.silu($0) * $1"},
    {.name = "swiglu_matmul",
     .about = "(silu(gate) up) w",
     .operands = "gate, up, w",
     .law = "bsk,bsk,kn->bsn", // the result lacks k: ranks that split it have parts of a sum
     .linear = "-ee",
     .reduction = "sum",
     .gradient = "%h = swiglu %gate, %up\n"
                 "%d_w = einsum %h, %d_y {law=\"bsk,bsn->kn\"}\n"
                 "%g = einsum %d_y, %w {law=\"bsn,kn->bsk\"}\n"
                 "%s = silu %gate\n"
                 "%d_up = mul %g, %s\n"
                 "%t = mul %g, %up\n"
                 "%d_gate = silu_dx %t, %gate\n",
     .product = true,
     .flops = 2,
     .kernel = swiglu_matmul,
     .pytorch = "(F.silu($0) * $1) @ $2"}};

// For --operators.
const heddle_operator_row *heddle_operators(uint32_t *n) {
  *n = sizeof rows / sizeof *rows;
  return rows;
}

#ifndef ROWS_ONLY
int main(int argc, char **argv) {
  heddle_session *s = heddle_session_new();
  if (!s) return 1;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) heddle_operator_register(s, &rows[k]);
  heddle_program *model = heddle_program_load(s, argc > 1 ? argv[1] : "examples/operators/model.heddle", NULL);
  heddle_machine *machine = heddle_machine_load(s, "dgx-2");
  heddle_plan_options o = {.train = true, .machine = machine};
  heddle_plan *plan = heddle_plan_make(model, "tp=4", &o);
  heddle_result *result = heddle_result_run(heddle_plan_apply(plan), machine, NULL);
  heddle_check *check = heddle_check_run(plan, NULL);
  if (result && check)
    printf("%s: %.3f ms a step, %s\n", heddle_plan_name(plan), (double)heddle_result_time_ps(result) * 1e-9,
           heddle_check_passed(check) ? "the same numbers" : "other numbers");
  else
    fputs(heddle_session_messages(s), stderr);
  const int status = result && check && heddle_check_passed(check) ? 0 : 1;
  heddle_session_free(s);
  return status;
}
#endif
