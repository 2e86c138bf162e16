// test_trace_kineto.c - the reader of Kineto files on small inputs of all versions, damaged ones, and recorded ones.
#include "test.h"
#include "trace/trace.h"
#include <stdlib.h>
#include <unistd.h>

typedef struct {
  ctx *c;
  arena *a;
  trace *t;
  trace_read_about about;
  bool ok;
} result;

static result read_path(const char *path, u32 kinds) {
  result r = {.c = ctx_new(), .a = arena_new()};
  const trace_want want = {.kinds = kinds};
  r.t = NEW(r.a, trace);
  r.ok = trace_read(r.c, r.a, path, TRACE_FORMAT_kineto, &want, TRACE_NONE, r.t, &r.about);
  return r;
}
static result read_kinds(const char *text, u32 kinds) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/heddle-kineto-%d.json", (int)getpid());
  FILE *f = fopen(path, "wb");
  REQUIRE(f);
  CHECK(fwrite(text, 1, strlen(text), f) == strlen(text) && !fclose(f));
  const result r = read_path(path, kinds);
  unlink(path);
  return r;
}
static result read_text(const char *text) { return read_kinds(text, TRACE_ALL); }
static void done(result *r) {
  arena_free(r->a);
  ctx_free(r->c);
}
static const char *name(const result *r, u32 e) { return sym_str(r->c, trace_name(r->t, e)); }
static const trace_lane *lane(const result *r, u32 e) { return &r->t->lanes.v[r->t->lane[e]]; }
static const trace_comm *comm(const result *r, u32 e) {
  static const trace_comm none;
  return r->t->comm[e] == TRACE_NONE ? &none : &r->t->comms.v[r->t->comm[e]];
}

// Members of the document and of events in an order that Kineto does not have; metadata after the events.
TEST(kineto_reads_members_in_any_order) {
  result r = read_text("{\"baseTimeNanoseconds\": 1700000000000000000, \"traceEvents\": [\n"
                       "{\"args\": {\"correlation\": 5, \"stream\": 7, \"device\": 3}, \"dur\": 2.5, \"ts\": "
                       "1000.001, \"tid\": 7,"
                       " \"pid\": 3, \"name\": \"k\", \"cat\": \"kernel\", \"ph\": \"X\"},\n"
                       "{\"args\": {\"correlation\": 5}, \"ts\": 990, \"dur\": 4, \"name\": "
                       "\"cudaLaunchKernel\", \"pid\": 77, \"tid\": 78,"
                       " \"ph\": \"X\", \"cat\": \"cuda_runtime\"},\n"
                       "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 77, \"tid\": 78, \"args\": "
                       "{\"name\": \"main \"}}],\n"
                       "\"deviceProperties\": [{\"name\": \"A\", \"id\": 0}, {\"id\": 3, \"name\": \"B\"}],\n"
                       "\"distributedInfo\": {\"world_size\": 8, \"backend\": \"nccl\", \"rank\": 3}}");
  REQUIRE(r.ok && r.t->n == 2 && r.t->processes.n == 1);
  const trace_process *p = r.t->processes.v;
  CHECK_EQ_I64(p->rank, 3);
  CHECK_EQ_I64(p->world_size, 8);
  CHECK_EQ_I64(p->pid, 77);
  CHECK_EQ_I64(p->base_ns, 1700000000000990000);
  CHECK_STR(sym_str(r.c, p->device), "B");
  CHECK_EQ_I64(r.t->start_ps[0], 10001000);
  CHECK_EQ_I64(r.t->dur_ps[0], 2500000);
  CHECK_EQ_I64(r.t->start_ps[1], 0);
  CHECK_EQ_I64(r.t->cause[0], 1);
  CHECK(lane(&r, 0)->device && lane(&r, 0)->of == 3 && lane(&r, 0)->id == 7);
  CHECK_STR(sym_str(r.c, lane(&r, 1)->name), "main");
  CHECK_EQ_I64(diag_count(r.c), 0);
  done(&r);
}

// Files of 2021: other categories, numbers in strings, streams with a word, absolute microseconds.
TEST(kineto_reads_files_of_2021) {
  result r = read_text(
      "{\"schemaVersion\": 1, \"traceEvents\": ["
      "{\"ph\": \"X\", \"cat\": \"Operator\", \"name\": \"ProfilerStep#12\", \"pid\": 5, \"tid\": \"5\","
      " \"ts\": 1623212388426902, \"dur\": 35, \"args\": {\"Device\": 5}},"
      "{\"ph\": \"X\", \"cat\": \"Runtime\", \"name\": \"cudaMemcpyAsync\", \"pid\": 5, \"tid\": \"5\", "
      "\"ts\": 1623212388426903,"
      " \"dur\": 3, \"args\": {\"cbid\": 41, \"correlation\": 9, \"external id\": 43}},"
      "{\"ph\": \"X\", \"cat\": \"Memcpy\", \"name\": \"Memcpy HtoD\", \"pid\": 0, \"tid\": \"stream 7\","
      " \"ts\": 1623212388426910, \"dur\": 1, \"args\": {\"correlation\": 9, \"external id\": 43}},"
      "{\"ph\": \"f\", \"id\": 9, \"pid\": 0, \"tid\": \"stream 7\", \"ts\": 1623212388426910, \"cat\": "
      "\"async\"}]}");
  REQUIRE(r.ok && r.t->n == 3);
  CHECK(r.t->is[0] == TRACE_STEP && r.t->step[0] == 12);
  CHECK(r.t->is[1] == TRACE_CALL && r.t->is[2] == TRACE_COPY);
  CHECK(lane(&r, 2)->device && lane(&r, 2)->of == 0 && lane(&r, 2)->id == 7);
  CHECK_EQ_I64(lane(&r, 0)->id, 5);
  CHECK_EQ_I64(r.t->cause[2], 1);
  CHECK_EQ_I64(r.t->processes.v[0].base_ns, 1623212388426902000);
  CHECK_EQ_I64(r.about.events, 3);
  done(&r);
}

TEST(kineto_times_are_exact) {
  result r = read_text(
      "{\"traceEvents\": ["
      "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"pid\":0,\"tid\":7,\"ts\":1706850122846038.123456,"
      "\"dur\":0.000001},"
      "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"b\",\"pid\":0,\"tid\":7,\"ts\":1.706850122846039e15,"
      "\"dur\":1e-3},"
      "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"c\",\"pid\":0,\"tid\":7,\"ts\":1706850122846038.9999999,"
      "\"dur\":\"7\"},"
      "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"d\",\"pid\":0,\"tid\":7,\"ts\":1706850122846039,\"dur\":-"
      "1},"
      "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"e\",\"pid\":0,\"tid\":7,\"ts\":1706850122846039}]}");
  REQUIRE(r.ok && r.t->n == 5);
  CHECK_EQ_I64(r.t->processes.v[0].base_ns, 1706850122846038123);
  CHECK_EQ_I64(r.t->start_ps[0], 456);
  CHECK_EQ_I64(r.t->dur_ps[0], 1);
  CHECK_EQ_I64(r.t->start_ps[1], 877000);
  CHECK_EQ_I64(r.t->dur_ps[1], 1000);
  CHECK_EQ_I64(r.t->start_ps[2], 876999);
  CHECK_EQ_I64(r.t->dur_ps[2], 7000000);
  CHECK_EQ_I64(r.t->dur_ps[3], -1);
  CHECK_EQ_I64(r.t->dur_ps[4], -1);
  done(&r);
}

#define OP(n, cat, ts, dur, args)                                                                            \
  "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" n "\",\"pid\":1,\"tid\":2,\"ts\":" ts ",\"dur\":" dur      \
  ",\"args\":{" args "}},"
#define LAST "{\"ph\":\"i\",\"name\":\"end\",\"pid\":1,\"tid\":2,\"ts\":100}]}"

// What a kernel says itself, then what was recorded around its launch, then what its name says.
TEST(kineto_communications) {
  result r = read_text(
      "{\"distributedInfo\":{\"rank\":0,\"world_size\":4,\"pg_config\":[{\"pg_name\":\"7\",\"pg_size\":4,"
      "\"ranks\":[0,1,2,3]}]},"
      "\"traceEvents\":[" OP("record_param_comms", "cpu_op", "10", "10",
                             "\"External id\":3,\"Collective name\":\"_allgather_base\",\"In msg "
                             "nelems\":10,\"Out msg nelems\":40,"
                             "\"dtype\":\"BFloat16\",\"Process Group Name\":\"7\",\"Seq\":5")
          OP("cudaLaunchKernelExC", "cuda_runtime", "12", "1", "\"correlation\":100")
              OP("ncclDevKernel_AllGather_RING_LL(ncclDevComm*)", "kernel", "30", "5",
                 "\"correlation\":100,\"device\":0,\"stream\":9") OP("record_param_comms", "cpu_op", "20",
                                                                     "1", "\"Collective name\":\"wait\"")
                  OP("nccl:send 0->1", "user_annotation", "22", "2",
                     "\"Input Dims\":[[4, 8],[2]],\"Input type\":[\"c10::Half\"]")
                      OP("cudaLaunchKernel", "cuda_runtime", "23", "1", "\"correlation\":101")
                          OP("ncclDevKernel_SendRecv(ncclDevComm*)", "kernel", "36", "5",
                             "\"correlation\":101,\"device\":0,\"stream\":9")
                              OP("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWork*)", "kernel", "41", "5",
                                 "\"correlation\":102,\"device\":0,\"stream\":9,\"Collective "
                                 "name\":\"broadcast\",\"In msg nelems\":53,"
                                 "\"Out msg nelems\":53,\"dtype\":\"Long\",\"Group size\":2,\"Process Group "
                                 "Ranks\":\"[0, 3]\"") OP("ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
                                                          "kernel", "46", "5", "\"correlation\":103")
                                  OP("record_param_comms", "cpu_op", "70", "1",
                                     "\"Collective name\":\"all_to_allv\",\"In msg nelems\":8,\"Out msg "
                                     "nelems\":6,\"dtype\":\"float\","
                                     "\"Global rank start\":1,\"Global rank stride\":2,\"Group "
                                     "size\":2,\"Process Group Ranks\":\"[1, ...]\"")
                                      OP("gemm", "kernel", "50", "5", "\"correlation\":104") LAST);
  REQUIRE(r.ok && r.t->n == 12);
  const trace_comm *m = comm(&r, 2);
  CHECK_STR(sym_str(r.c, m->op), "all_gather");
  CHECK_STR(sym_str(r.c, m->type), "bf16");
  CHECK_STR(sym_str(r.c, m->group), "7");
  CHECK_STR(sym_str(r.c, m->members), "0,1,2,3");
  CHECK(m->size == 4 && m->seq == 5 && m->in == 10 && m->out == 40 && m->bytes == 80);
  CHECK(r.t->flags[2] == TRACE_COMM && r.t->comm[0] == TRACE_NONE && r.t->comm[3] == TRACE_NONE);
  m = comm(&r, 6);
  CHECK_STR(sym_str(r.c, m->op), "send");
  CHECK(m->in == 34 && m->bytes == 68);
  m = comm(&r, 7);
  CHECK_STR(sym_str(r.c, m->members), "0,3");
  CHECK_STR(sym_str(r.c, m->type), "i64");
  CHECK_EQ_I64(m->bytes, 424);
  CHECK_STR(sym_str(r.c, comm(&r, 8)->op), "all_reduce");
  CHECK_STR(sym_str(r.c, comm(&r, 8)->type), "f32");
  CHECK_EQ_I64(comm(&r, 8)->bytes, -1);
  m = comm(&r, 9); // no kernel: the host's event has it
  CHECK_STR(sym_str(r.c, m->op), "all_to_all");
  CHECK_STR(sym_str(r.c, m->members), "1,3");
  CHECK(r.t->flags[10] == 0 && r.t->comm[10] == TRACE_NONE);
  CHECK_EQ_I64(r.t->comms.n, 5);
  done(&r);
}

// Without correlation ids arrows say what launched what; those from forward to backward say something else.
TEST(kineto_causes_from_flows) {
  result r = read_text("{\"traceEvents\":[" OP("x", "cuda_runtime", "10", "1", "") OP(
      "y", "cuda_runtime", "12", "1", "") OP("k", "kernel", "20.5", "1", "\"stream\":7,\"device\":0")
                           OP("l", "kernel", "30", "1",
                              "\"stream\":7,\"device\":0") "{\"ph\":\"s\",\"cat\":\"ac2g\",\"id\":3,\"pid\":"
                                                           "1,\"tid\":2,\"ts\":12},"
                                                           "{\"ph\":\"f\",\"cat\":\"ac2g\",\"id\":3,\"pid\":"
                                                           "0,\"tid\":7,\"ts\":20.5,\"bp\":\"e\"},"
                                                           "{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"id\":4,"
                                                           "\"pid\":1,\"tid\":2,\"ts\":10},"
                                                           "{\"ph\":\"f\",\"cat\":\"fwdbwd\",\"id\":4,"
                                                           "\"pid\":0,\"tid\":7,\"ts\":30}," LAST);
  REQUIRE(r.ok && r.t->n == 5);
  CHECK_EQ_I64(r.t->cause[2], 1);
  CHECK_EQ_I64(r.t->cause[3], TRACE_NONE);
  done(&r);
}

// Communications are known even where only kernels are wanted; steps where only steps are.
TEST(kineto_reads_what_is_wanted) {
  static const char text[] = "{\"traceEvents\":[" OP("ProfilerStep#4", "user_annotation", "1", "90", "")
      OP("aten::mm", "cpu_op", "2", "3", "\"External id\":1")
          OP("record_param_comms", "cpu_op", "10", "10",
             "\"Collective name\":\"allreduce\",\"In msg nelems\":10,\"dtype\":\"Float\"")
              OP("cudaLaunchKernel", "cuda_runtime", "12", "1", "\"correlation\":100")
                  OP("ncclDevKernel_Generic(x)", "kernel", "30", "5",
                     "\"correlation\":100,\"device\":0,\"stream\":9")
                      OP("f.py(3): g", "python_function", "1", "2", "")
                          OP("ProfilerStep#4", "gpu_user_annotation", "30", "5", "") LAST;
  result r = read_kinds(text, 1 << TRACE_KERNEL);
  REQUIRE(r.ok && r.t->n == 1 && r.t->lanes.n == 1);
  CHECK_STR(sym_str(r.c, comm(&r, 0)->op), "all_reduce");
  CHECK_EQ_I64(comm(&r, 0)->bytes, 40);
  CHECK(r.t->cause[0] == TRACE_NONE);
  CHECK_EQ_I64(r.about.events, 8);
  done(&r);
  r = read_kinds(text, 1 << TRACE_STEP);
  REQUIRE(r.ok && r.t->n == 1);
  CHECK_EQ_I64(r.t->step[0], 4);
  done(&r);
  r = read_kinds(text, 0);
  REQUIRE(r.ok && r.t->n == 7);
  CHECK_STR(name(&r, 5), "ProfilerStep#4");
  CHECK(r.t->is[5] == TRACE_NOTE && lane(&r, 5)->device && r.t->step[5] == 4);
  done(&r);
}

#define K(n, ts)                                                                                             \
  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" n "\",\"pid\":0,\"tid\":7,\"ts\":" ts                       \
  ",\"dur\":1,\"args\":{}}"

TEST(kineto_reads_damaged_files) {
  static const struct {
    const char *text;
    u32 events, skipped;
    const char *diagnostic; // code; "": none
    bool ok, truncated;
  } files[] = {
      {"", 0, 0, "E0106", false, false},
      {"[]", 0, 0, "E0106", false, false},
      {"{\"traceEvents\"", 0, 0, "E0106", false, false},
      {"{\"schemaVersion\": 1, \"deviceProperties\": []}", 0, 0, "E0106", false, false},
      {"{\"traceEvents\": 7}", 0, 0, "E0106", false, false},
      {"{\"traceEvents\": []}", 0, 0, "", true, false},
      {"\xef\xbb\xbf{\"traceEvents\": [" K("a", "1") ",]}", 1, 0, "", true, false},
      {"{\"traceEvents\": [" K("a", "1") "," K("b", "2"), 2, 0, "W0102", true, true},
      {"{\"traceEvents\": [" K("a", "1") ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"cut", 1, 0, "W0102",
       true, true},
      {"{\"traceEvents\": [" K("a", "1") ",{\"ph\":\"X\",\"na" K("b", "2") "," K("c", "3") "]}", 2, 1,
       "W0103", true, false},
      {"{\"traceEvents\": [" K("a", "nan") "," K("a", "\"x\"") "," K("b", "1e300") "," K("c", "3") "]}", 1, 3,
       "", true, false},
      {"{\"traceEvents\": [3, null, [{}], {}, \"x\"," K("c", "3") "]}", 1, 5, "", true, false},
      {"{\"traceEvents\": [" K("a", "1") "," K("b", "2") "," K("a", "1") "]}", 2, 1, "", true,
       false}, // twice
      {"{\"traceEvents\": [" K("a", "0") "," K("b", "1706850122846038") "," K("c", "1706850122846039") "]}",
       2, 1, "", true, false},
  };
  for (u32 k = 0; k < COUNT_OF(files); k++) {
    result r = read_text(files[k].text);
    CHECK_MSG(r.ok == files[k].ok, "file %u", k);
    CHECK_MSG(r.t->n == files[k].events, "file %u: %u events", k, r.t->n);
    CHECK_MSG(r.about.skipped == files[k].skipped, "file %u: %llu skipped", k,
              (unsigned long long)r.about.skipped);
    CHECK_MSG(r.about.truncated == files[k].truncated, "file %u", k);
    const char *code = diag_count(r.c) ? diag_row_of(diag_get(r.c, 0).id)->code : "";
    CHECK_MSG(!strcmp(code, files[k].diagnostic), "file %u: %s", k, code);
    done(&r);
  }
}

// Names longer than any buffer, deep nesting, escapes, bytes beyond the ends of blocks.
TEST(kineto_reads_hostile_text) {
  strbuf b = {.a = arena_new()};
  sb_put(&b, "{\"x\": ");
  for (u32 k = 0; k < 100000; k++) sb_char(&b, k % 3 ? '[' : '{');
  sb_put(&b, "\"}]\\\"}\"");
  for (u32 k = 100000; k-- > 0;) sb_char(&b, k % 3 ? ']' : '}');
  sb_put(&b, ", \"traceEvents\": "
             "[{\"ph\":\"X\",\"cat\":\"kernel\",\"pid\":0,\"tid\":7,\"ts\":1,\"dur\":2,\"name\":\"");
  for (u32 k = 0; k < 300000; k++) sb_put(&b, k % 7 ? "x" : "\\\"");
  sb_put(&b, "\"},{\"ph\":\"X\",\"cat\":\"kernel\",\"pid\":0,\"tid\":7,\"ts\":5,\"dur\":2,\"name\":"
             "\"a\\u00e9\\ud83d\\ude00\\n\\q\\ud800\"}]}");
  result r = read_text(sb_str(&b));
  REQUIRE(r.ok && r.t->n == 2);
  CHECK(strlen(name(&r, 0)) > 50000 && strlen(name(&r, 0)) <= 65536 && name(&r, 0)[0] == '"');
  CHECK_STR(name(&r, 1), "a\xc3\xa9\xf0\x9f\x98\x80\nq\xef\xbf\xbd");
  CHECK_EQ_I64(diag_count(r.c), 0);
  done(&r);
  arena_free(b.a);
}

// The same file wherever buffers end: spaces before the events shift it.
TEST(kineto_does_not_depend_on_where_buffers_end) {
  strbuf b = {.a = arena_new()};
  sb_put(&b, "{");
  sb_fmt(&b, "%*s", (1 << 17) - 400, "");
  const size_t before = b.n;
  for (u32 shift = 0; shift < 260; shift++) {
    b.n = before;
    sb_fmt(&b, "%*s", (int)shift, "");
    sb_put(
        &b,
        "\"skipped\": {\"a\\\\\": \"}\\\"\", \"b\": [1, {\"c\": \"]\"}, -2.5e-3, true]}, \"traceEvents\": "
        "[" OP("a\\\"b", "kernel", "1234.5", "3", "\"x\":{},\"correlation\":12345,\"stream\":7,\"device\":0")
            OP("call", "cuda_runtime", "1000", "2", "\"correlation\":12345,\"y\":[[],[\"\\\\\"]]") LAST);
    result r = read_text(sb_str(&b));
    CHECK_MSG(r.ok && r.t->n == 3 && !strcmp(name(&r, 0), "a\"b") && r.t->cause[0] == 1 &&
                  r.t->start_ps[0] == 1134500000 && !diag_count(r.c),
              "shift %u", shift);
    done(&r);
  }
  arena_free(b.a);
}

// Counted apart from this, with a JSON library: events of every kind, those on a device whose launch is there,
// kernels of NCCL, ps in kernels, from the first event to the last end but for stacks, ns of the first.
static const struct {
  const char *file;
  u32 kinds[TRACE_KINDS];
  u32 causes, comms;
  i64 kernel_ps, span_ps, base_ns;
} recorded[] = {
    {"astrasim_24S/megatron_kineto_5.json.gz",
     {690, 6, 81, 0, 5337, 4025, 86, 1, 0, 3},
     777,
     84,
     622472000000,
     657568000000,
     1706850122815794000},
    {"hta/tests__data__critical_path__cuda_event_sync__event_sync_trace.json.gz",
     {4, 1, 0, 4, 10, 12, 0, 1, 0, 3},
     5,
     0,
     49000000,
     3287000000,
     1707417525509335000},
    {"hta/tests__data__df_index_resolver__df_index_resolver.json.gz",
     {19370, 2040, 880, 0, 56680, 42373, 2030, 5, 0, 28013},
     22290,
     2020,
     977859000000,
     1829319000000,
     1669783687352244000},
    {"hta/tests__data__nccl_parser_config__nccl_data.json.gz",
     {2700, 960, 114, 0, 14346, 8740, 69, 3, 0, 3},
     3774,
     21,
     162532340000,
     729030976000,
     1716423322388068751},
    {"hta/tests__data__trace_diff__control__control.json.gz",
     {8568, 228, 654, 0, 40506, 24692, 282, 6, 0, 3},
     9450,
     60,
     446813000000,
     540795000000,
     1661203462584767000},
    {"hta/tests__data__trace_filter__sampled_rank-0.json.gz",
     {1154, 40, 10, 0, 2329, 1204, 71, 2, 0, 1},
     1204,
     10,
     606519000000,
     3367344000000,
     1682725897226747000},
    {"kineto/tb_resnet50_234cf25df597fb99765ee2a49978f5f3c4bbbaf9.json.gz",
     {8868, 12, 378, 0, 20556, 12085, 0, 6, 0, 10983},
     9258,
     0,
     594868000000,
     939328000000,
     1623212388426602000},
    {"param/et_replay__tests__inputs__resnet_kineto.json.gz",
     {9628, 123, 362, 0, 39416, 25928, 90, 0, 0, 3},
     10113,
     0,
     4103141000000,
     16210847000000,
     1689179597340511000},
    {"tracelens/tests__traces__h100__gaunernst_bert-small-uncased__1016001.json.gz",
     {60, 1, 0, 0, 479, 132, 1, 1, 1385, 239},
     61,
     0,
     307197000,
     8391682000,
     1752830083332500684},
    {"tracelens/tests__traces__mi300__resnet_act_checkpoint.json.gz",
     {2995, 550, 108, 0, 8004, 3100, 42, 3, 34405, 3},
     2685,
     17,
     97255826000,
     109877196000,
     1770932723222487063},
};

TEST(kineto_recorded_files) {
  for (u32 k = 0; k < COUNT_OF(recorded); k++) {
    char path[256];
    snprintf(path, sizeof path, "traces/%s", recorded[k].file);
    const char *file = test_data(path); // may leave
    result r = read_path(file, 0);
    CHECK_MSG(r.ok && !diag_count(r.c), "%s", file);
    u32 kinds[TRACE_KINDS] = {0}, causes = 0, comms = 0;
    i64 kernel_ps = 0, span_ps = 0;
    for (u32 e = 0; e < r.t->n; e++) {
      kinds[r.t->is[e]]++;
      span_ps = MAX(span_ps, r.t->start_ps[e] + MAX(r.t->dur_ps[e], 0));
      causes += (TRACE_ON_DEVICE >> r.t->is[e] & 1) && r.t->cause[e] != TRACE_NONE;
      comms += (r.t->flags[e] & TRACE_COMM) && r.t->comm[e] != TRACE_NONE;
      if (r.t->is[e] == TRACE_KERNEL) kernel_ps += r.t->dur_ps[e];
    }
    for (u32 i = 0; i < TRACE_KINDS; i++)
      CHECK_MSG(kinds[i] == (i == TRACE_STACK ? 0 : recorded[k].kinds[i]), "%s: %u of %s", file, kinds[i],
                trace_is_name((trace_is)i));
    CHECK_EQ_I64(causes, recorded[k].causes);
    CHECK_EQ_I64(comms, recorded[k].comms);
    CHECK_EQ_I64(kernel_ps, recorded[k].kernel_ps);
    CHECK_EQ_I64(span_ps, recorded[k].span_ps);
    CHECK_EQ_I64(r.t->processes.v[0].base_ns, recorded[k].base_ns);
    done(&r);
  }
}

// A page of another program's tests: 21 kernels of NCCL, the longest all-reduce is of 2,049,000 elements.
TEST(kineto_recorded_communications) {
  result r =
      read_path(test_data("traces/hta/tests__data__nccl_parser_config__nccl_data.json.gz"), TRACE_ON_DEVICE);
  REQUIRE(r.ok);
  u32 n = 0, longest = TRACE_NONE;
  for (u32 e = 0; e < r.t->n; e++) {
    if (r.t->comm[e] == TRACE_NONE) continue;
    n++;
    if (!strcmp(sym_str(r.c, comm(&r, e)->op), "all_reduce") &&
        (longest == TRACE_NONE || r.t->dur_ps[e] > r.t->dur_ps[longest]))
      longest = e;
  }
  CHECK_EQ_I64(n, 21);
  REQUIRE(longest != TRACE_NONE);
  CHECK_EQ_I64(comm(&r, longest)->in, 2049000);
  CHECK_STR(sym_str(r.c, comm(&r, longest)->members), "0,1");
  done(&r);
}

// Pages of the same program: 93 events lie whole between two times; three waits are of no stream.
TEST(kineto_recorded_ranges) {
  result r = read_path(test_data("traces/hta/tests__data__trace_filter__sampled_rank-0.json.gz"), 0);
  REQUIRE(r.ok);
  const i64 base = r.t->processes.v[0].base_ns, from = 1682725898237042000, to = 1682725898240570000;
  u32 inside = 0, loose = 0;
  for (u32 e = 0; e < r.t->n; e++)
    inside +=
        r.t->start_ps[e] >= (from - base) * 1000 && r.t->start_ps[e] + r.t->dur_ps[e] <= (to - base) * 1000;
  CHECK_EQ_I64(inside, 93);
  done(&r);
  r = read_path(test_data("traces/hta/tests__data__critical_path__cuda_event_sync__event_sync_trace.json.gz"),
                0);
  REQUIRE(r.ok);
  for (u32 e = 0; e < r.t->n; e++) loose += r.t->is[e] == TRACE_WAIT && lane(&r, e)->id == -1;
  CHECK_EQ_I64(loose, 3);
  done(&r);
}
