// trace.c - reading recordings: megabytes of JSON a second of one core, packed with gzip and not.
#include "bench.h"
#include "trace/trace.h"
#include <unistd.h>
#include <zlib.h>

enum { RUNS = 5, OPS = 60000 };

// What a profiler writes for an operator: itself with shapes, two functions of Python, its launch, an arrow, its kernel.
static void put_op(strbuf *b, u32 k) {
  const u32 ts = 1000 + 20 * k;
  sb_fmt(b,
         "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::op_%u\", \"pid\": 77, \"tid\": "
         "77,\n    \"ts\": %u.%03u, "
         "\"dur\": 9.125,\n    \"args\": {\n      \"External id\": %u,\"Record function id\": 0, \"Concrete "
         "Inputs\": "
         "[\"\", \"[1, 0]\", \"False\"], \"Input type\": [\"float\", \"ScalarList\", \"Scalar\"], \"Input "
         "Strides\": "
         "[[%u, 1], [], []], \"Input Dims\": [[32, %u], [], []], \"Ev Idx\": %u\n    }\n  },\n",
         k % 97, ts, k % 1000, k, k % 512, k % 512, k);
  for (u32 f = 0; f < 2; f++)
    sb_fmt(b,
           "  {\n    \"ph\": \"X\", \"cat\": \"python_function\", \"name\": "
           "\"torch/nn/modules/module.py(%u): _call_impl\", \"pid\": "
           "77, \"tid\": 77,\n    \"ts\": %u.%03u, \"dur\": 15.5,\n    \"args\": {\n      \"Python parent "
           "id\": %u, \"Python id\": %u, "
           "\"Python module id\": %u, \"Ev Idx\": %u\n    }\n  },\n",
           k % 1700, ts, k % 1000, k, k + 1, k % 77, k);
  sb_fmt(b,
         "  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 77, "
         "\"tid\": 77,\n    \"ts\": "
         "%u.250, \"dur\": 4.5,\n    \"args\": {\n      \"External id\": %u, \"cbid\": 211, \"correlation\": "
         "%u\n    }\n  },\n"
         "  {\n    \"ph\": \"s\", \"id\": %u, \"pid\": 77, \"tid\": 77, \"ts\": %u.250,\n    \"cat\": "
         "\"ac2g\", \"name\": \"ac2g\"\n  },\n",
         ts + 2, k, k, k, ts + 2);
  sb_fmt(b,
         "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void "
         "at::native::vectorized_elementwise_kernel<4, "
         "at::native::functor_%u<float>, at::detail::Array<char*, 3> >(int, "
         "at::native::functor_%u<float>)\", \"pid\": 0, \"tid\": 7,\n"
         "    \"ts\": %u.5, \"dur\": 12.031,\n    \"args\": {\n      \"External id\": %u, \"queued\": 0, "
         "\"device\": 0, \"context\": 1,\n"
         "      \"stream\": 7, \"correlation\": %u,\n      \"registers per thread\": 32,\n      \"shared "
         "memory\": 0,\n      "
         "\"blocks per SM\": 1.5,\n      \"warps per SM\": 6,\n      \"grid\": [162, 1, 1],\n      "
         "\"block\": [128, 1, 1],\n      "
         "\"est. achieved occupancy %%\": 9\n    }\n  },\n",
         k % 61, k % 61, ts + 9, k, k);
}

static double read_rate(const char *path, u32 kinds) {
  double ms[RUNS], bytes = 0;
  for (u32 i = 0; i < RUNS; i++) {
    ctx *c = ctx_new();
    arena *a = arena_new();
    trace *t = NEW(a, trace);
    trace_read_about about;
    const double start = bench_ms();
    if (!trace_read(c, a, path, TRACE_FORMAT_kineto, &(trace_want){.kinds = kinds}, TRACE_NONE, t, &about) ||
        !t->n)
      abort();
    ms[i] = bench_ms() - start, bytes = (double)about.bytes;
    arena_free(a);
    ctx_free(c);
  }
  return bytes / bench_fastest(ms, RUNS) / 1e3;
}

int main(void) {
  arena *a = arena_new();
  strbuf b = {.a = a};
  sb_put(&b, "{\"schemaVersion\": 1, \"traceEvents\": [\n");
  for (u32 k = 0; k < OPS; k++) put_op(&b, k);
  sb_put(&b, "  {\"ph\": \"i\", \"name\": \"end\", \"pid\": 77, \"tid\": 77, \"ts\": 1}]}\n");
  const char *packed = arena_printf(a, "/tmp/heddle-bench-%d.json.gz", (int)getpid());
  const char *plain = arena_printf(a, "/tmp/heddle-bench-%d.json", (int)getpid());
  gzFile z = gzopen(packed, "wb");
  FILE *f = fopen(plain, "wb");
  if (!z || !f || gzwrite(z, b.v, (unsigned)b.n) != (int)b.n || fwrite(b.v, 1, b.n, f) != b.n) abort();
  gzclose(z), fclose(f);
  bench_add(
      (bench_row){"read a Kineto file, gzip, all but stacks", "MB/s", read_rate(packed, 0), 300, "", true});
  bench_add((bench_row){"read a Kineto file, gzip, events of devices", "MB/s",
                        read_rate(packed, TRACE_ON_DEVICE), 300, "", true});
  bench_add((bench_row){"read a Kineto file, all but stacks", "MB/s", read_rate(plain, 0), 0, "", true});
  bench_add((bench_row){"read a Kineto file, events of devices", "MB/s", read_rate(plain, TRACE_ON_DEVICE), 0,
                        "", true});
  unlink(packed), unlink(plain);
  arena_free(a);
  return bench_end();
}
