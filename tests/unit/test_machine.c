// test_machine.c - units, machine files, machines in one line, and what a machine gives to sets of ranks.
#include "machine/machine.h"
#include "test.h"
#include <stdlib.h>

// ---- units -------------------------------------------------------------------------------------------

TEST(machine_units_read) {
  static const struct {
    const char *text;
    unit_kind kind;
    double value;
  } good[] = {
      {"25 GB/s", UNIT_BYTES_PER_S, 25e9},
      {"200 Gb/s", UNIT_BYTES_PER_S, 25e9},
      {"200Gbps", UNIT_BYTES_PER_S, 25e9},
      {"200 Gbit/s", UNIT_BYTES_PER_S, 25e9},
      {"80 GiB", UNIT_BYTES, 80 * 0x1p30},
      {"80GB", UNIT_BYTES, 80e9},
      {"312 TFLOP/s", UNIT_FLOP_PER_S, 312e12},
      {"1979 TOP/s", UNIT_FLOP_PER_S, 1979e12},
      {"10 GFLOP", UNIT_FLOP, 1e10},
      {"5 us", UNIT_PS, 5e6},
      {"5 \xC2\xB5s", UNIT_PS, 5e6},
      {"1.5 ms", UNIT_PS, 1.5e9},
      {"3 s", UNIT_PS, 3e12},
      {"7ps", UNIT_PS, 7},
      {"0.75", UNIT_NUMBER, 0.75},
      {"75 %", UNIT_NUMBER, 0.75},
      {"5e3", UNIT_NUMBER, 5000},
      {"5 EB", UNIT_BYTES, 5e18},
      {" 8 Gb", UNIT_BITS, 8e9},
      {"512 B", UNIT_BYTES, 512},
  };
  static const char *const bad[] = {"",    "GB/s", "x",      "5 GBs",   "5 Ms",     "5 mB", "0x10 B",
                                    "inf", "nan",  "5..2 B", "1e999 B", "5 GB/s/s", "."};
  for (u32 i = 0; i < COUNT_OF(good); i++) {
    double x = 0;
    unit_kind kind = UNIT_KINDS;
    CHECK_MSG(unit_read(good[i].text, &x, &kind) && kind == good[i].kind, "'%s' is not read", good[i].text);
    CHECK_CLOSE(x, good[i].value, 1e-15);
  }
  for (u32 i = 0; i < COUNT_OF(bad); i++) {
    double x;
    unit_kind kind;
    CHECK_MSG(!unit_read(bad[i], &x, &kind), "'%s' is read", bad[i]);
  }
}

TEST(machine_units_print) {
  arena *a = arena_new();
  static const struct {
    double x;
    unit_kind kind;
    const char *text;
  } rows[] = {{80 * 0x1p30, UNIT_BYTES, "80 GiB"},
              {28e9, UNIT_BYTES, "28 GB"},
              {512, UNIT_BYTES, "512 B"},
              {5e6, UNIT_PS, "5 us"},
              {1, UNIT_PS, "1 ps"},
              {0, UNIT_PS, "0 ps"},
              {25e9, UNIT_BYTES_PER_S, "25 GB/s"},
              {0.92, UNIT_NUMBER, "0.92"},
              {989.4e12, UNIT_FLOP_PER_S, "989.4 TFLOP/s"},
              {1e10, UNIT_FLOP, "10 GFLOP"},
              {1536, UNIT_BYTES, "1.5 KiB"}};
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    strbuf b = {.a = a};
    unit_print(&b, rows[i].x, rows[i].kind);
    CHECK_STR(sb_str(&b), rows[i].text);
  }
  // Whatever is printed reads back the same.
  u64 rng = 1;
  for (u32 i = 0; i < 20000; i++) {
    const unit_kind kinds[] = {UNIT_NUMBER, UNIT_BYTES,      UNIT_BYTES_PER_S,
                               UNIT_FLOP,   UNIT_FLOP_PER_S, UNIT_PS};
    const unit_kind kind = kinds[rng_next(&rng) % COUNT_OF(kinds)];
    double x = rng_unit(&rng), back = 0;
    for (u64 k = rng_next(&rng) % 60; k; k--) x *= 2;
    if (kind == UNIT_PS || kind == UNIT_BYTES) x = (double)(i64)x;
    unit_kind got;
    strbuf b = {.a = a};
    unit_print(&b, x, kind);
    CHECK_MSG(unit_read(sb_str(&b), &back, &got) && got == kind && back == x, "%.17g is printed as %s", x,
              sb_str(&b));
  }
  arena_free(a);
}

// ---- reading and printing ----------------------------------------------------------------------------

static char *printed(const machine *m, arena *a) {
  strbuf b = {.a = a};
  machine_print(m, &b);
  return b.v;
}

TEST(machine_presets_read_back) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const char *const *names;
  const u32 n = machine_presets(a, &names);
  CHECK(n >= 6);
  for (u32 i = 0; i < n; i++) {
    machine *m = machine_load(c, a, names[i]);
    if (!CHECK_MSG(m, "%s: %s", names[i], diag_render(c, a))) continue;
    const char *text = printed(m, a);
    machine *back = machine_parse(c, a, sym_of(c, "printed"), text, strlen(text));
    if (!CHECK_MSG(back, "%s: %s", names[i], diag_render(c, a))) continue;
    CHECK_STR(printed(back, a), text);
    CHECK_EQ_I64(back->nranks, m->nranks);
  }
  CHECK_GOLDEN("machine/dgx-2.yaml", printed(machine_load(c, a, "dgx-2"), a));
  arena_free(a);
  ctx_free(c);
}

TEST(machine_sizes) {
  static const struct {
    const char *spec;
    u32 nranks, nnodes;
  } rows[] = {{"dgx-2", 16, 1},
              {"dgx-a100-80", 8, 1},
              {"dgx-h100*128", 1024, 128},
              {"a40-4x4", 16, 4},
              {"a10-4x4", 16, 4},
              {"laptop", 4, 1},
              {"v100-32-50g-eth*4", 32, 4},
              {"p100-16-50g-eth", 8, 1},
              {"2x8 h100 ib=400Gb/s", 16, 2},
              {"3 a40", 3, 1},
              {"2x8 h100 ib=8x400Gb/s + 4x4 a40 ib=100Gb/s", 32, 6},
              {"machines/dgx-2.yaml", 16, 1}};
  ctx *c = ctx_new();
  arena *a = arena_new();
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    machine *m = machine_load(c, a, rows[i].spec);
    if (!CHECK_MSG(m, "%s: %s", rows[i].spec, diag_render(c, a))) continue;
    CHECK_EQ_I64(m->nranks, rows[i].nranks);
    CHECK_EQ_I64(m->nnodes, rows[i].nnodes);
    CHECK(m->dev[m->nranks - 1].node == m->nnodes - 1);
  }
  machine *m = machine_load(c, a, "2x8 h100 ib=8x400Gb/s + 4x4 a40 ib=100Gb/s");
  CHECK_EQ_I64(m->nkinds, 2);
  CHECK_STR(sym_str(c, machine_kind_of(m, 15)->name), "h100");
  CHECK_STR(sym_str(c, machine_kind_of(m, 16)->name), "a40");
  CHECK_EQ_I64(m->dev[21].node, 3);
  CHECK_EQ_I64(m->dev[21].index, 1);
  CHECK(machine_load(c, a, "dgx-2 usable=28GB")->kind[0].usable_bytes == 28000000000);
  CHECK(machine_load(c, a, "dgx-2 usable=50%")->kind[0].usable_bytes == 17179869184);
  CHECK(machine_load(c, a, "dgx-2")->kind[0].usable_bytes == 29491ll << 20); // nine tenths
  CHECK(diag_count(c) == 0);
  arena_free(a);
  ctx_free(c);
}

// A device may be said with the memory that it is sold with.
// Nothing is assumed between nodes whose text does not say it; presets that state it are left alone.
TEST(machine_warns_of_nodes_that_nothing_connects) {
  static const struct {
    const char *spec;
    bool warns;
  } rows[] = {{"2x8 v100", true},
              {"1x8 v100 + 1x8 a100", true},
              {"1x8 v100 ib=50Gb/s + 1x8 a100", true},
              {"laptop*2", true},
              {"1x8 v100", false},
              {"2x8 v100 eth=50Gb/s", false},
              {"1x8 v100 + 1x8 a100 ib=50Gb/s", false},
              {"dgx-2*4", false},
              {"v100-32-50g-eth*4", false},
              {"laptop*2 eth=10Gb/s", false},
              {"laptop", false}};
  arena *a = arena_new();
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    ctx *c = ctx_new();
    CHECK(machine_load(c, a, rows[i].spec));
    CHECK_MSG(diag_count(c) == rows[i].warns && (!rows[i].warns || diag_get(c, 0).id == W_UNLINKED), "%s",
              rows[i].spec);
    ctx_free(c);
  }
  arena_free(a);
}

TEST(machine_kinds_by_whole_name) {
  static const struct {
    const char *spec, *whole;
  } rows[] = {{"2x8 a100 ib=200Gb/s", "2x8 a100-80gb ib=200Gb/s"}, {"1x8 h100", "1x8 h100-80gb"}};
  ctx *c = ctx_new();
  arena *a = arena_new();
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    machine *m = machine_load(c, a, rows[i].spec), *w = machine_load(c, a, rows[i].whole);
    if (!CHECK_MSG(m && w, "%s: %s", rows[i].whole, diag_render(c, a))) continue;
    device_kind *was = (device_kind *)machine_kind_of(m, 0);
    const device_kind *is = machine_kind_of(w, 0);
    CHECK_EQ_I64(is->mem_bytes, was->mem_bytes);
    was->name = is->name; // all else prints alike
    const char *text = printed(w, a), *same = printed(m, a);
    CHECK_STR(strchr(text, '\n'), strchr(same, '\n'));
  }
  CHECK(diag_count(c) == 0);
  arena_free(a);
  ctx_free(c);
}

// A network that is said once, at the end of the line, joins all nodes that have no other.
TEST(machine_network_of_all_segments) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  machine *m = machine_load(c, a, "1x8 v100 + 1x8 p100 eth=50Gb/s");
  REQUIRE(m);
  CHECK(m->node_kind[0].nics == 1 && m->node_kind[0].nic_bw == 6.25e9);
  CHECK(m->node_kind[1].nics == 1 && m->node_kind[1].nic_bw == 6.25e9);
  m = machine_load(c, a, "1x8 h100 ib=8x400Gb/s + 2x8 v100 + 1x8 p100 eth=50Gb/s");
  REQUIRE(m);
  CHECK(m->node_kind[0].nics == 8 && m->node_kind[0].nic_bw == 50e9);
  CHECK(m->node_kind[1].nics == 1 && m->node_kind[2].nics == 1);
  m = machine_load(c, a, "2x8 h100 ib=8x400Gb/s + 1x4 a40"); // not forwards: the a40 have none
  REQUIRE(m);
  CHECK(m->node_kind[1].nics == 0);
  arena_free(a);
  ctx_free(c);
}

// What a word says of devices is of its term, and of those before it that have not said it.
TEST(machine_memory_of_terms) {
  static const struct {
    const char *spec, *kinds; // name usable/memory of every kind, in MB
  } rows[] = {
      {"1x1 a100 usable=8GB + 1x1 v100 usable=30GB ib=1Gb/s", "a100 8000/85899 v100 30000/34359 "},
      {"1x1 a100 + 1x1 v100 usable=30GB ib=1Gb/s", "a100 30000/85899 v100 30000/34359 "},
      {"1x1 a100 usable=8GB + 1x1 v100 ib=1Gb/s", "a100 8000/85899 v100 30923/34359 "},
      {"1x1 a100 usable=9GB + 1x1 v100 memory=20GB ib=1Gb/s", "a100 9000/85899 v100 17999/20000 "},
      {"1x1 a100 memory=20GB + 1x1 v100 usable=0.5 ib=1Gb/s", "a100 10000/20000 v100 17179/34359 "},
      {"1x1 a100 + 1x1 v100 + 1x1 a100 ib=1Gb/s", "a100 77309/85899 v100 30923/34359 "},
      {"1x1 a100 usable=8GB + 1x2 v100+a100 ib=1Gb/s + 2x1 a100 usable=8GB + 1x1 a100 usable=9GB ib=1Gb/s",
       "a100 8000/85899 v100 8000/34359 a100.2 9000/85899 "},
      {"1x1 a100 usable=8GB + 2x1 a100 usable=9GB + 1x1 a100 ib=1Gb/s",
       "a100 8000/85899 a100.2 9000/85899 a100.3 77309/85899 "},
  };
  ctx *c = ctx_new();
  arena *a = arena_new();
  for (u32 i = 0; i < COUNT_OF(rows); i++) {
    const machine *m = machine_load(c, a, rows[i].spec);
    strbuf b = {.a = a};
    if (!CHECK_MSG(m, "%s: %s", rows[i].spec, diag_render(c, a))) continue;
    for (u32 k = 0; k < m->nkinds; k++)
      sb_fmt(&b, "%s %lld/%lld ", sym_str(c, m->kind[k].name), (long long)(m->kind[k].usable_bytes / 1000000),
             (long long)(m->kind[k].mem_bytes / 1000000));
    CHECK_STR(sb_str(&b), rows[i].kinds);
    const char *text = printed(m, a);
    const machine *back = machine_parse(c, a, sym_of(c, "back.yaml"), text, strlen(text));
    if (CHECK_MSG(back, "%s: %s", rows[i].spec, diag_render(c, a))) CHECK_STR(printed(back, a), text);
  }
  CHECK(diag_count(c) == 0);
  arena_free(a);
  ctx_free(c);
}

TEST(machine_mistakes) {
  static const char *const specs[] = {
      "nope",
      "dgx-2*0",
      "dgx-2*x",
      "dgx-h100*9999999",
      "2x8 nope",
      "2x8",
      "0x8 h100",
      "2x999 h100",
      "2x8 h100 ib=400",
      "2x8 h100 ib=400GB",
      "2x8 h100 foo=1",
      "1x8 v100 hostbw=100GB/s hostbw=50GB/s",
      "2x8 h100 ib=8x400Gb/s + 1x8 a100 ib=8x200Gb/s eth=100Gb/s",
      "dgx-2 usable=20GB usable=30GB",
      "2x8 h100 bar",
      "2x8 h100 +",
      "dgx-2 usable=40GB",
      "dgx-2 usable=0",
      "dgx-2 usable=120%",
      "2x8 h100 link=star 5GB/s",
      "no/such.yaml",
      "",
      "2x8 h100 oversubscription=0.5",
      "2x8 h100 leaf=x",
      "2x8 h100 ib=0x400Gb/s",
      "1024x256 h100 + 1024x256 h100 + 1024x256 h100 + 1024x256 h100 + 1x1 h100"};
  static const char *const texts[] = {
      "",
      "- a",
      "nodes: 3",
      "name: x",
      "nodes: {devices: 8 zebra}",
      "nodes: {devices: 8 h100, foo: 1}",
      "nodes: []",
      "nodes: {count: -1, devices: 8 h100}",
      "nodes: {count: 2x, devices: h100}",
      "nodes: {devices: h100 a100}",
      "nodes: {devices: 8 h100, link: {bandwidth: 450 GB}}",
      "nodes: {devices: 8 h100, link: {kind: star}}",
      "nodes: {devices: 8 a10, link: {kind: ring}}",
      "devices: {d: {like: h100, rate: {f99: 1 TFLOP/s}}}\nnodes: {devices: d}",
      "devices: {d: {memory: 1 Gb, bandwidth: 8 Gb}}\nnodes: {devices: d}",
      "devices: {d: {like: nothing}}\nnodes: {devices: d}",
      "devices: {'a b': {like: h100}}\nnodes: {devices: h100}",
      "devices: {d: {like: h100, efficiency: {gemm: {1 GFLOP: 0.5, 1 MFLOP: 0.6}}}}\nnodes: {devices: d}",
      "devices: {d: {like: h100, efficiency: {gemm: {1 GFLOP: 0.1, 2 GFLOP: 0.9}}}}\nnodes: {devices: d}",
      "devices: {d: {like: h100, efficiency: {gemm: 1.5}}}\nnodes: {devices: d}",
      "devices: {d: {like: h100, efficiency: {memory: {1 GFLOP: 0.5}}}}\nnodes: {devices: d}",
      "devices: {d: {like: h100, launch: 5}}\nnodes: {devices: d}",
      "nodes: {devices: 8 h100}\nfabric: {oversubscription: 0.5}",
      "nodes: {devices: 8 h100}\ndistir: {all_reduce: {2: [1, 2]}}",
      "devices: {d: {like: h100, allocation: 0 B}}\nnodes: {devices: d}",
      "devices: {d: {like: cpu-core, cores: 0}}\nnodes: {devices: d}",
      "devices: {d: {like: h100, spread: {gemm: 5 % of 9}}}\nnodes: {devices: d}",
      "devices: {d: {like: h100, spread: {source: me, gemm: 5 %}}}\nnodes: {devices: d}",
      "devices: {d: {like: h100, spread: {source: me, gem: 5 % of 9}}}\nnodes: {devices: d}",
      "devices: {d: {like: h100, spread: {source: me, gemm: 5 GB of 9}}}\nnodes: {devices: d}",
      "devices: {d: {like: h100, spread: {source: me, gemm: {1 GB: 5 % of 9}}}}\nnodes: {devices: d}",
      "devices: {d: {like: h100, spread: {source: me, gemm: {2 GFLOP: 5 % of 9, 1 GFLOP: 5 % of "
      "9}}}}\nnodes: "
      "{devices: d}",
      "devices: {d: {like: h100, spread: {source: me, launch: {1 GFLOP: 5 % of 9}}}}\nnodes: {devices: d}",
      "devices: {d: {like: h100, spread: {source: me, types: f99, launch: 5 % of 9}}}\nnodes: {devices: d}",
      "nodes: {devices: 8 h100, link: {spread: {source: me, matmul: 5 % of 9}}}",
      "nodes: {devices: 8 h100}\nfabric: {spread: 5 %}"};
  ctx *c = ctx_new();
  arena *a = arena_new();
  strbuf all = {.a = a};
  for (u32 i = 0; i < COUNT_OF(specs) + COUNT_OF(texts); i++) {
    const char *text = i < COUNT_OF(specs) ? specs[i] : texts[i - COUNT_OF(specs)];
    machine *m = i < COUNT_OF(specs) ? machine_load(c, a, text)
                                     : machine_parse(c, a, sym_of(c, "m.yaml"), text, strlen(text));
    CHECK_MSG(!m, "'%s' is a machine", text);
    CHECK_MSG(diag_errors(c) > 0, "'%s' is refused without a reason", text);
    sb_fmt(&all, "== %s\n%s", text, diag_render(c, a));
    diag_clear(c);
  }
  CHECK_GOLDEN("machine/mistakes.txt", sb_str(&all));
  arena_free(a);
  ctx_free(c);
}

// What a line says of the host's memory updates reach; of what a preset says, the fraction that it says.
TEST(machine_line_says_what_is_reached) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  const machine *preset = machine_load(c, a, "dgx-2"), *said = machine_load(c, a, "dgx-2 hostbw=77GB/s");
  REQUIRE(preset && said);
  CHECK_CLOSE(preset->node_kind[0].host_mem_eff, 0.49, 1e-12);
  CHECK_CLOSE(said->node_kind[0].host_mem_bw * said->node_kind[0].host_mem_eff, 77e9, 1e-12);
  arena_free(a);
  ctx_free(c);
}

TEST(machine_search_path) {
  ctx *c = ctx_new();
  arena *a = arena_new();
  char *folder = arena_printf(a, "%s/tests/machines", test_build());
  REQUIRE(dir_make(c, folder));
  static const char text[] = "nodes: {devices: 3 h100}\n";
  REQUIRE(file_write(c, arena_printf(a, "%s/mine.yaml", folder), text, sizeof text - 1));
  setenv("HEDDLE_MACHINES", arena_printf(a, "/nowhere:%s", folder), 1);
  machine *m = machine_load(c, a, "mine*2");
  unsetenv("HEDDLE_MACHINES");
  CHECK(m && m->nranks == 6);
  CHECK(!machine_load(c, a, "mine"));
  arena_free(a);
  ctx_free(c);
}

// ---- topology ----------------------------------------------------------------------------------------

typedef struct {
  ctx *c;
  arena *a;
} bed;
static bed bed_new(void) { return (bed){ctx_new(), arena_new()}; }
static void bed_free(bed *b) {
  arena_free(b->a);
  ctx_free(b->c);
}

TEST(machine_curve) {
  const eff_curve none = {0}, one = {1, {1}, {0.5}, {0}}, two = {2, {10, 20}, {0.5, 0.8}, {0}};
  CHECK_CLOSE(curve_work(&none, 7), 7, 0);
  CHECK_CLOSE(curve_work(&one, 7), 14, 0);
  CHECK_CLOSE(curve_work(&two, 5), 10, 1e-15);    // before the table: the first fraction
  CHECK_CLOSE(curve_work(&two, 15), 22.5, 1e-15); // half way in time between 20 and 25
  CHECK_CLOSE(curve_work(&two, 40), 50, 1e-15);
  CHECK_CLOSE(curve_best(&two), 0.8, 0);
  CHECK_CLOSE(curve_best(&none), 1, 0);
}

TEST(machine_placements_share_nics) {
  bed b = bed_new();
  machine *m = machine_load(b.c, b.a, "2x8 h100 nvlink=450GB/s ib=8x400Gb/s");
  REQUIRE(m);
  machine_placement p[8];
  u32 inside[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  machine_placements(m, b.a, inside, 1, 8, p);
  CHECK(p->n == 8 && p->nodes == 1 && p->per_node == 8 && p->even && p->out_bw == 0);
  CHECK_CLOSE(p->in_bw, 450e9 * 0.75, 1e-12);
  u32 across[16]; // eight pairs, one NIC each
  for (u32 i = 0; i < 8; i++) across[2 * i] = i, across[2 * i + 1] = i + 8;
  machine_placements(m, b.a, across, 8, 2, p);
  for (u32 i = 0; i < 8; i++) {
    CHECK(p[i].nodes == 2 && p[i].per_node == 1 && p[i].even);
    CHECK_CLOSE(p[i].out_bw, 50e9 * 0.92, 1e-12);
  }
  machine_placements(m, b.a, across, 1, 2, p); // one pair alone drives no more than the NIC beside it
  CHECK_CLOSE(p->out_bw, 50e9 * 0.92, 1e-12);
  machine_placements(m, b.a, across, 1, 16, p); // all ranks in one group, given out of order: the whole node
  CHECK(p->nodes == 2 && p->per_node == 8 && p->even);
  CHECK_CLOSE(p->out_bw, 400e9 * 0.92, 1e-12);
  u32 uneven[3] = {0, 1, 8};
  machine_placements(m, b.a, uneven, 1, 3, p);
  CHECK(p->nodes == 2 && p->per_node == 2 && !p->even);
  CHECK_CLOSE(p->out_bw, 50e9 * 0.92, 1e-12);
  // A node of 16 with 8 NICs: 16 pairs share them two by two, in each direction.
  m = machine_load(b.c, b.a, "dgx-2*2");
  u32 from[32], to[32];
  machine_placement q[32];
  for (u32 i = 0; i < 16; i++) from[i] = i, to[i] = i + 16, from[i + 16] = i + 16, to[i + 16] = i;
  machine_pairs(m, b.a, from, to, 16, 16, q);
  CHECK_CLOSE(q[3].dev_bw, 6.25e9 * 0.92, 1e-12);
  machine_pairs(m, b.a, from, to, 32, 32, q);
  CHECK_CLOSE(q[31].dev_bw, 6.25e9 * 0.92, 1e-12);
  machine_pairs(m, b.a, from, to, 8, 8, q);
  CHECK_CLOSE(q[0].dev_bw, 12.5e9 * 0.92, 1e-12);
  machine_pairs(m, b.a, from, to, 16, 8, q); // two of a device, one after the other
  CHECK_CLOSE(q[15].dev_bw, 12.5e9 * 0.92, 1e-12);
  machine_pairs(m, b.a, from, from, 1, 1, q);
  CHECK(q[0].n == 1);
  bed_free(&b);
}

TEST(machine_placements_by_shape) {
  bed b = bed_new();
  machine_placement p[4];
  machine *m = machine_load(b.c, b.a, "8 h100 ring=400GB/s");
  const double bw = 400e9 * 0.75;
  u32 r[8] = {0, 1, 2, 3, 4, 5, 6, 7}, odd[4] = {0, 2, 4, 6}, pair[2] = {3, 4}, half[4] = {2, 3, 4, 5};
  machine_placements(m, b.a, r, 1, 8, p);
  CHECK_CLOSE(p->in_bw, bw, 1e-12);
  CHECK_CLOSE(p->all_bw, bw / 2, 1e-12);
  machine_placements(m, b.a, odd, 1, 4, p); // two such rings share the links
  CHECK_CLOSE(p->in_bw, bw / 2, 1e-12);
  machine_placements(m, b.a, half, 1, 4, p); // there and back on a line
  CHECK_CLOSE(p->in_bw, bw / 2, 1e-12);
  machine_placements(m, b.a, pair, 1, 2, p);
  CHECK_CLOSE(p->pair_bw, bw / 2, 1e-12);
  m = machine_load(b.c, b.a, "8 mi300x");
  machine_placements(m, b.a, half, 1, 4, p);
  CHECK_CLOSE(p->in_bw, 448e9 * 0.75 * 3 / 7, 1e-12);
  CHECK_CLOSE(p->pair_bw, 448e9 * 0.75 / 7, 1e-12);
  m = machine_load(b.c, b.a, "a40-4x4");
  machine_placements(m, b.a, (u32[]){2, 3}, 1, 2, p);
  CHECK_CLOSE(p->in_bw, 56.25e9 * 0.72, 1e-12);
  machine_placements(m, b.a, (u32[]){1, 2}, 1, 2, p); // not bridged: through the host
  CHECK_CLOSE(p->in_bw, 31.5e9 * 0.65, 1e-12);
  machine_placements(m, b.a, r, 1, 4, p);
  CHECK_CLOSE(p->in_bw, 31.5e9 * 0.65, 1e-12);
  bed_free(&b);
}

TEST(machine_oversubscription) {
  bed b = bed_new();
  machine *m = machine_load(b.c, b.a, "8x8 h100 ib=8x400Gb/s oversubscription=4 leaf=2");
  REQUIRE(m);
  machine_placement p[1];
  machine_placements(m, b.a, (u32[]){0, 8}, 1, 2, p);
  CHECK_CLOSE(p->out_bw, 50e9 * 0.92, 1e-12);
  machine_placements(m, b.a, (u32[]){8, 16}, 1, 2, p);
  CHECK_CLOSE(p->out_bw, 50e9 * 0.92 / 4, 1e-12);
  bed_free(&b);
}

// ---- no memory ---------------------------------------------------------------------------------------

// Whichever block cannot be had: the jump is taken and what there was can be freed.
TEST(machine_without_memory) {
  for (volatile i64 n = 1; n < 20; n++) {
    jmp_buf here;
    ctx *volatile c = ctx_new();
    arena *volatile a = arena_new();
    base_oom = &here;
    base_fail_after = n;
    if (!setjmp(here)) machine_load(c, a, "dgx-h100*1024 usable=70GB");
    base_oom = NULL;
    base_fail_after = 0;
    arena_free(a);
    ctx_free(c);
  }
}
