// pass.c - a graph pass of your own: what if the gradients of large kernels were compressed? The optimizer tries it beside
// its own passes and keeps the proposals that make the step shorter.
//
//   cc examples/pass.c $(pkg-config --cflags --libs heddle) -o pass && ./pass examples/traces/ddp
#include <heddle.h>
#include <stdio.h>

// PowerSGD, say: 2 % of the bytes, for 20 microseconds more on the device.
static bool compress(void *arg, uint32_t number, heddle_tuning *t) {
  heddle_kernel k;
  (void)arg;
  if (!heddle_tuning_kernel(t, number, &k)) return false;
  if (k.gradient_bytes > 1 << 20) {
    heddle_tuning_set_gradient(t, number, k.gradient_bytes / 50);
    heddle_tuning_set_time(t, number, k.time_ps + 20000000);
  }
  return true;
}

int main(int argc, char **argv) {
  heddle_session *s = heddle_session_new();
  const heddle_pass pass = {"compress", compress, NULL};
  const heddle_trace_options o = {.npasses = 1, .passes = &pass};
  const char *path = argc > 1 ? argv[1] : "examples/traces/ddp";
  const char *answer = heddle_trace_ask(s, "optimize", 1, &path, &o, HEDDLE_TEXT);
  fputs(answer ? answer : heddle_session_messages(s), answer ? stdout : stderr);
  heddle_session_free(s);
  return !answer;
}
