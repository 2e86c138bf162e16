// test_trace_graphs.c - readers of execution traces (Chakra, PyTorch) and of Horovod's timeline: small files of the
// test's own, damaged ones, and recorded ones.
#include "test.h"
#include "trace/trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
  ctx *c;
  arena *a;
  trace *t;
  trace_read_about about;
  bool ok;
} result;
static result read_path(const char *path, trace_format f) {
  result r = {.c = ctx_new(), .a = arena_new()};
  r.t = NEW(r.a, trace);
  CHECK(trace_format_of(r.c, path) == f);
  r.ok = trace_read(r.c, r.a, path, f, NULL, TRACE_NONE, r.t, &r.about);
  return r;
}
static const char *written(const void *data, size_t n) {
  static char path[200];
  snprintf(path, sizeof path, "%s/graph-%d", test_build(), (int)getpid());
  FILE *f = fopen(path, "wb");
  REQUIRE(f != NULL);
  CHECK(fwrite(data, 1, n, f) == n && !fclose(f));
  return path;
}
static result read_bytes(const void *data, size_t n, trace_format f) {
  const char *path = written(data, n);
  const result r = read_path(path, f);
  unlink(path);
  return r;
}
static void done(result *r) {
  arena_free(r->a);
  ctx_free(r->c);
}
static const char *name(const result *r, u32 e) { return sym_str(r->c, trace_name(r->t, e)); }

// ---- Chakra ---------------------------------------------------------------------------------------------
typedef struct {
  u8 v[4000];
  size_t n;
} message;
static void put_varint(message *m, u64 v) {
  for (; v > 127; v >>= 7) m->v[m->n++] = (u8)(v | 128);
  m->v[m->n++] = (u8)v;
}
static void put_number(message *m, u32 number, u64 v) { put_varint(m, number << 3), put_varint(m, v); }
static void put_bytes(message *m, u32 number, const void *p, size_t n) {
  put_varint(m, number << 3 | 2), put_varint(m, n);
  memcpy(m->v + m->n, p, n), m->n += n;
}
static void put_attr(message *m, const char *key, u64 v) {
  message a = {.n = 0};
  put_bytes(&a, 1, key, strlen(key)), put_number(&a, 13, v);
  put_bytes(m, 10, a.v, a.n);
}
static void put_message(message *file, const message *m) {
  put_varint(file, m->n);
  memcpy(file->v + file->n, m->v, m->n), file->n += m->n;
}
static message chakra_file(void) {
  message file = {.n = 0}, head = {.n = 0}, a = {.n = 0}, b = {.n = 0};
  put_bytes(&head, 1, "0.0.4", 5), put_message(&file, &head);
  put_number(&a, 1, 10), put_bytes(&a, 2, "gemm", 4), put_number(&a, 3, 4);
  put_number(&a, 6, 100), put_number(&a, 7, 30), put_attr(&a, "is_cpu_op", 0), put_attr(&a, "stream", 7);
  put_number(&b, 1, 11), put_bytes(&b, 2, "nccl", 4), put_number(&b, 3, 7), put_number(&b, 4, 10);
  put_bytes(&b, 5, "\x0a\x63", 2), put_number(&b, 6, 130), put_number(&b, 7, 5), put_attr(&b, "comm_type", 2);
  put_attr(&b, "comm_size", 4096), put_number(&b, 99, 1); // a field of a later version
  put_message(&file, &a), put_message(&file, &b);
  return file;
}

TEST(chakra_nodes_and_dependencies) {
  const message m = chakra_file();
  result r = read_bytes(m.v, m.n, TRACE_FORMAT_chakra);
  REQUIRE(r.ok && r.t->n == 2);
  CHECK(!strcmp(name(&r, 0), "gemm") && r.t->start_ps[0] == 100000000 && r.t->dur_ps[0] == 30000000);
  CHECK(r.t->lanes.v[r.t->lane[0]].device && r.t->lanes.v[r.t->lane[0]].id == 7);
  REQUIRE(r.t->comm[1] != TRACE_NONE && r.t->comm[0] == TRACE_NONE);
  CHECK_STR(sym_str(r.c, r.t->comms.v[r.t->comm[1]].op), "all_gather");
  CHECK_EQ_I64(r.t->comms.v[r.t->comm[1]].bytes, 4096);
  REQUIRE(r.t->edges.n == 3);
  CHECK(r.t->edges.v[0].event == 1 && r.t->edges.v[0].after == 0 && !r.t->edges.v[0].data);
  CHECK(r.t->edges.v[1].after == 0 && r.t->edges.v[1].data &&
        r.t->edges.v[2].after == TRACE_NONE); // 99 is nobody
  done(&r);
}

// Cut off after any byte: what came before is there, and nothing is made up.
TEST(chakra_cut_off) {
  const message m = chakra_file();
  for (size_t n = 7; n < m.n; n++) {
    const char *path = written(m.v, n);
    result r = {.c = ctx_new(), .a = arena_new()};
    r.t = NEW(r.a, trace);
    r.ok = trace_read(r.c, r.a, path, TRACE_FORMAT_chakra, NULL, 0, r.t, &r.about);
    CHECK(r.ok && r.t->n <= 2 && r.t->n + 1 >= r.about.events && diag_errors(r.c) == 0);
    done(&r);
    unlink(path);
  }
}

TEST(chakra_damaged_nodes_are_left_out) {
  message m = chakra_file();
  message bad = {.n = 0};
  put_number(&bad, 3, 4); // no id
  put_message(&m, &bad);
  bad = (message){.n = 0};
  put_number(&bad, 1, 5), bad.v[bad.n++] = 0x0f; // wire type 7
  put_message(&m, &bad);
  result r = read_bytes(m.v, m.n, TRACE_FORMAT_chakra);
  CHECK(r.ok && r.t->n == 2 && r.about.events == 4 && r.about.skipped == 2 && diag_count(r.c) == 1);
  done(&r);
}

// The archive's one file, unpacked into the build folder.
static const char *unpacked(const char *archive, const char *member) {
  static char path[300];
  char command[900];
  snprintf(path, sizeof path, "%s/unpacked-%d", test_build(), (int)getpid());
  snprintf(command, sizeof command, "tar -xzOf %s %s > %s 2>/dev/null", archive, member, path);
  return system(command) == 0 ? path : NULL;
}

TEST(chakra_real_file) {
  const char *path =
      unpacked(test_data("traces/chakra/tests__data__feeder_tests_trace.tar.gz"), "tests/data/chakra.0.et");
  REQUIRE(path != NULL);
  result r = read_path(path, TRACE_FORMAT_chakra);
  unlink(path);
  REQUIRE(r.ok);
  u32 control = 0, data = 0, comms = 0;
  i64 sum = 0;
  for (u32 k = 0; k < r.t->edges.n; k++) r.t->edges.v[k].data ? data++ : control++;
  for (u32 e = 0; e < r.t->n; e++) comms += r.t->comm[e] != TRACE_NONE, sum += r.t->dur_ps[e] / 1000000;
  CHECK_EQ_I64(r.t->n, 3664);
  CHECK_EQ_I64(comms, 21);
  CHECK_EQ_I64(control, 3664);
  CHECK_EQ_I64(data, 181878);
  CHECK_EQ_I64(sum, 381795);
  u32 after_first[3] = {0},
      n = 0; // what has data of the first node, 216: 217, 430 and 435, in the order of the file
  for (u32 k = 0; k < r.t->edges.n && n < 3; k++)
    if (r.t->edges.v[k].data && r.t->edges.v[k].after == 0) after_first[n++] = r.t->edges.v[k].event;
  CHECK(n == 3 && after_first[0] == 1 && after_first[1] == 2);
  done(&r);
}

// ---- nodes ----------------------------------------------------------------------------------------------
TEST(nodes_of_all_versions) {
  static const char flat[] =
      "{\"schema\": \"1.0.1\", \"pid\": 17, \"nodes\": ["
      "{\"name\": \"aten::mm\", \"id\": 5, \"parent\": 2, \"tid\": 3, \"inputs\": [[1,2],\"x\"]},"
      "{\"id\": 2, \"name\": \"nccl:all_reduce\", \"parent\": 1}, 7, {\"name\": \"no id\"}]}";
  static const char later[] = "{\"schema\": \"1.1.0-chakra.0.0.4\", \"nodes\": [{\"id\": 9, \"name\": \"x\", "
                              "\"ctrl_deps\": 4, \"attrs\": [{\"name\": \"rf_id\", \"value\": 8}, "
                              "{\"name\": \"tid\", \"type\": \"uint64\", \"value\": 6}]}]}";
  static const char graph[] =
      "{\"workload_graph\": [{\"Id\": 1, \"Name\": \"a\", \"NodeType\": 4, \"ctrlDeps\": [3], "
      "\"runtime\": 318, \"is_cpu_op\": false}, {\"Id\": 3, \"NodeType\": 7, \"data_deps\": [1]}]}";
  result r = read_bytes(flat, sizeof flat - 1, TRACE_FORMAT_nodes);
  CHECK(r.ok && r.t->n == 2 && r.about.events == 4 && r.about.skipped == 2 && r.t->processes.v[0].pid == 17);
  CHECK(r.t->lanes.v[r.t->lane[0]].id == 3 && r.t->edges.n == 2 && r.t->edges.v[0].after == 1);
  CHECK(r.t->comm[0] == TRACE_NONE && r.t->comm[1] != TRACE_NONE && r.t->dur_ps[0] < 0);
  done(&r);
  r = read_bytes(later, sizeof later - 1, TRACE_FORMAT_nodes);
  CHECK(r.ok && r.t->n == 1 && r.t->lanes.v[0].id == 6 && r.t->edges.n == 1 &&
        r.t->edges.v[0].after == TRACE_NONE);
  done(&r);
  r = read_bytes(graph, sizeof graph - 1, TRACE_FORMAT_nodes);
  CHECK(r.ok && r.t->n == 2 && r.t->dur_ps[0] == 318000000 && r.t->is[0] == TRACE_KERNEL &&
        r.t->comm[1] != TRACE_NONE);
  CHECK(r.t->edges.n == 2 && r.t->edges.v[0].after == 1 && r.t->edges.v[1].after == 0 &&
        r.t->edges.v[1].data);
  done(&r);
  r = read_bytes(flat, sizeof flat - 20, TRACE_FORMAT_nodes); // cut off
  CHECK(r.ok && r.about.truncated && r.t->n == 2 && diag_errors(r.c) == 0);
  done(&r);
}

static void counts(const char *path, u32 all, u32 params, u32 comms) {
  result r = read_path(path, TRACE_FORMAT_nodes);
  u32 p = 0, n = 0;
  for (u32 e = 0; e < r.t->n; e++)
    p += !strcmp(name(&r, e), "record_param_comms"), n += !strncmp(name(&r, e), "nccl:", 5);
  CHECK_EQ_I64(r.t->n, all);
  CHECK_EQ_I64(p, params);
  CHECK_MSG(!comms || n == comms, "%u operations of nccl, not %u", n, comms);
  done(&r);
}
TEST(nodes_real_files) {
  counts(test_data("traces/astrasim_24S/megatron_et_0.json.gz"), 5424, 170, 85);
  counts(test_data("traces/param/et_replay__tests__inputs__1.1.0-chakra.0.0.4__resnet_2gpu_et.json.gz"),
         14392, 27, 0);
}

// ---- Horovod --------------------------------------------------------------------------------------------
TEST(horovod_tensors_and_phases) {
  static const char text[] =
      "[\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 0, \"args\": "
      "{\"start_time_since_epoch_in_micros\": "
      "1592860687560103}},\n"
      "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": \"grad/w\"}},\n"
      "{\"ph\": \"B\", \"name\": \"NEGOTIATE_ALLREDUCE\", \"ts\": 100, \"pid\": 1},\n"
      "{\"ph\": \"X\", \"name\": \"4\", \"ts\": 103, \"pid\": 1, \"dur\": 0},\n"
      "{\"ph\": \"E\", \"ts\": 110, \"pid\": 1},\n"
      "{\"ph\": \"B\", \"name\": \"ALLREDUCE\", \"ts\": 111, \"pid\": 1},\n"
      "{\"ph\": \"B\", \"name\": \"NCCL_ALLREDUCE\", \"ts\": 112.5, \"pid\": 1},\n"
      "{\"ph\": \"E\", \"ts\": 130, \"pid\": 1},\n{\"ph\": \"E\", \"ts\": 131, \"pid\": 1},\n"
      "{\"ph\": \"i\", \"name\": \"CYCLE_START\", \"ts\": 140, \"s\": \"g\"},\n{\"ph\": \"B\", \"name\": "
      "\"ALLREDUCE\", "
      "\"ts\": 150, \"pid\": 1},\n";
  result r = read_bytes(text, sizeof text - 1, TRACE_FORMAT_horovod); // never closed
  REQUIRE(r.ok && r.t->n == 6);
  CHECK(r.about.events == 6 && r.about.skipped == 0 && !r.about.truncated); // a pair is one
  CHECK_EQ_I64(r.t->processes.v[0].base_ns, 1592860687560103000);
  CHECK_STR(sym_str(r.c, r.t->lanes.v[r.t->lane[0]].name), "grad/w");
  CHECK(r.t->dur_ps[0] == 10000000 && r.t->is[1] == TRACE_NOTE && !strcmp(name(&r, 1), "4"));
  CHECK(r.t->start_ps[3] == 112500000 && r.t->dur_ps[3] == 17500000 && r.t->dur_ps[2] == 20000000);
  CHECK(r.t->comm[2] != TRACE_NONE && r.t->comm[0] == TRACE_NONE && r.t->dur_ps[5] < 0);
  done(&r);
}

TEST(horovod_real_file) {
  result r = read_path(test_data("traces/smdebug/tests__profiler__resources__horovod_timeline_small.json"),
                       TRACE_FORMAT_horovod);
  REQUIRE(r.ok);
  u32 tensors = 0;
  for (u32 l = 0; l < r.t->lanes.n; l++) tensors += r.t->lanes.v[l].name.i != 0;
  CHECK_EQ_I64((i64)r.about.events, 25); // of 57, 30 are names and 2 are ends
  CHECK_EQ_I64(tensors, 14);             // 15 have a name, one of them has no events
  done(&r);
}
