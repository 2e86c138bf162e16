// test_nsight.c - exports of Nsight Systems: small ones made here, with and without tables, and a real one.
#include "test.h"
#include "trace/trace.h"
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

typedef struct {
  ctx *c;
  arena *a;
  trace *t;
  trace_read_about about;
  bool ok;
} read_file;
static read_file read_path(const char *path, u32 kinds) {
  read_file x = {.c = ctx_new(), .a = arena_new()};
  x.t = NEW(x.a, trace);
  const trace_want w = {.kinds = kinds};
  const trace_format f = trace_format_of(x.c, path);
  x.ok = f == TRACE_FORMAT_nsight && trace_read(x.c, x.a, path, f, &w, TRACE_NONE, x.t, &x.about);
  return x;
}
static void done(read_file *x) {
  arena_free(x->a);
  ctx_free(x->c);
}

// A database of these statements, in a file of its own.
static const char *database(const char *sql) {
  static char path[200];
  snprintf(path, sizeof path, "%s/nsight-%d.sqlite", test_build(), (int)getpid());
  remove(path);
  sqlite3 *db;
  if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
    CHECK_MSG(false, "%s", sqlite3_errmsg(db));
    path[0] = 0;
  }
  sqlite3_close(db);
  return path;
}

static const char strings[] =
    "CREATE TABLE StringIds (id INTEGER, value TEXT);"
    "INSERT INTO StringIds VALUES (1,'kernel_A'),(2,'kernel_B'),(3,'nccl_AllReduce_kernel'),"
    "(4,'nccl_ReduceScatter_kernel'),(5,'cudaLaunchKernel_v7000'),(6,'forward');";

TEST(nsight_kernels_of_an_old_export) { // no process, no demangled names
  char sql[2000];
  snprintf(
      sql, sizeof sql,
      "%sCREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, "
      "correlationId INT, shortName INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000000,2000000,0,7,1,1),(3000000,4000000,0,7,2,2),"
      "(2500000,3500000,0,8,3,3),(4500000,5500000,0,7,4,4),(8000000,9000000,0,7,5,1),(7,5,0,7,6,1),"
      "(NULL,5,0,7,7,1);",
      strings);
  const char *path = database(sql);
  read_file x = read_path(path, 0);
  remove(path);
  REQUIRE(x.ok);
  CHECK_EQ_I64(x.t->n, 5);
  CHECK_EQ_I64((i64)x.about.events, 7);
  CHECK_EQ_I64((i64)x.about.skipped, 2);
  CHECK(x.t->lanes.n == 2 && x.t->lanes.v[1].id == 8 && x.t->lanes.v[1].device && x.t->processes.n == 1);
  CHECK_STR(sym_str(x.c, trace_name(x.t, 2)), "nccl_AllReduce_kernel");
  CHECK(x.t->start_ps[2] == 2500000000 && x.t->dur_ps[2] == 1000000000 && x.t->cause[2] == TRACE_NONE);
  CHECK(!(x.t->flags[0] & TRACE_COMM) && x.t->flags[2] & TRACE_COMM);
  CHECK_STR(sym_str(x.c, x.t->comms.v[x.t->comm[3]].op), "reduce_scatter");
  done(&x);
}

TEST(nsight_launches_and_ranges_of_two_processes) {
  char sql[3000];
  snprintf(
      sql, sizeof sql,
      "%sCREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT);"
      "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);"
      "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT); INSERT INTO TARGET_INFO_GPU VALUES "
      "(0,'H100'),(1,'H100');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, "
      "nameId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10,20,%lld,77,5),(30,40,%lld,77,5);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, "
      "correlationId INT, "
      "globalPid INT, demangledName INT, shortName INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (50,60,0,7,77,%lld,1,2),(70,80,1,7,77,%lld,NULL,2);"
      "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT);"
      "INSERT INTO NVTX_EVENTS VALUES "
      "(5,45,59,'step',NULL,%lld),(6,44,60,NULL,6,%lld),(1,2,34,'mark',NULL,0);",
      strings, (100LL << 24) + 3, (200LL << 24) + 4, 100LL << 24, 200LL << 24, (100LL << 24) + 3,
      (200LL << 24) + 4);
  const char *path = database(sql);
  read_file x = read_path(path, 0);
  remove(path);
  REQUIRE(x.ok);
  CHECK(x.t->processes.n == 2 && x.t->processes.v[1].pid == 200);
  CHECK_EQ_I64(x.t->processes.v[0].base_ns, 1700000000000000000);
  CHECK_STR(sym_str(x.c, x.t->processes.v[0].device), "H100");
  REQUIRE(x.t->n == 6);
  CHECK_STR(sym_str(x.c, trace_name(x.t, 0)), "cudaLaunchKernel");
  CHECK(x.t->cause[2] == 0 && x.t->cause[3] == 1); // one correlation, two processes
  CHECK_STR(sym_str(x.c, trace_name(x.t, 2)), "kernel_A");
  CHECK_STR(sym_str(x.c, trace_name(x.t, 3)), "kernel_B");
  CHECK(x.t->is[4] == TRACE_NOTE && !strcmp(sym_str(x.c, trace_name(x.t, 5)), "forward"));
  done(&x);
}

TEST(nsight_refuses_other_databases) {
  const char *path = database("CREATE TABLE t (a INT);");
  read_file x = read_path(path, 0);
  CHECK(!x.ok && diag_errors(x.c) == 1);
  done(&x);
  FILE *f = fopen(path, "r+"); // the pages behind the header are damaged
  REQUIRE(f != NULL);
  fseek(f, 100, SEEK_SET);
  for (int k = 0; k < 8000; k++) fputc(0xff, f);
  fclose(f);
  x = read_path(path, 0);
  CHECK(!x.ok && diag_errors(x.c) == 1);
  done(&x);
  remove(path);
}

TEST(nsight_real_file) {
  const char *path = test_data("traces/nsys/mfu_2gpu_before.sqlite");
  read_file x = read_path(path, TRACE_ON_DEVICE);
  REQUIRE(x.ok);
  i64 kernels = 0, first[2] = {INT64_MAX, INT64_MAX}, last[2] = {0};
  u32 sends = 0, flash = 0;
  for (u32 e = 0; e < x.t->n; e++) {
    if (x.t->is[e] != TRACE_KERNEL) continue;
    const char *name = sym_str(x.c, trace_name(x.t, e));
    const i64 device = x.t->lanes.v[x.t->lane[e]].of;
    REQUIRE(device >= 0 && device < 2);
    kernels += x.t->dur_ps[e];
    first[device] = MIN(first[device], x.t->start_ps[e]);
    last[device] = MAX(last[device], x.t->start_ps[e] + x.t->dur_ps[e]);
    sends += strstr(name, "SendRecv") != NULL;
    flash += strstr(name, "flash_fwd_kernel") != NULL;
  }
  CHECK_EQ_I64(sends, 66);
  CHECK_EQ_I64(flash, 68);
  CHECK_MSG(kernels / 1000000 >= 535190 && kernels / 1000000 <= 535210, "%lld us of kernels",
            (long long)kernels / 1000000);
  const i64 spans = (last[0] - first[0] + last[1] - first[1]) / 1000000;
  CHECK_MSG(spans >= 598490 && spans <= 598530, "spans of %lld us", (long long)spans);
  done(&x);
}
