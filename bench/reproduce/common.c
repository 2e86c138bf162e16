// common.c - the price of a plan, tables, statistics.
#include "reproduce.h"

prog *distir_mlp(ctx *c, i64 layers, i64 width, i64 batch, dtype t) {
  const long long n = batch, d = width;
  const char *e = t == DT_F16 ? "f16" : "f32";
  strbuf s = {.a = arena_new()};
  sb_fmt(&s, "func @layer(%%x: %s[%lld,%lld], %%w: %s[%lld,%lld] weight) -> (%s[%lld,%lld]) {\n", e, n, d, e,
         d, d, e, n, d);
  sb_put(&s, "  %a = matmul %x, %w\n  %y = leaky_relu %a\n  return %y\n}\n");
  sb_fmt(&s, "func @main(%%x0: %s[%lld,%lld], %%z: %s[%lld,%lld] label", e, n, d, e, n, d);
  for (i64 i = 0; i < layers; i++) sb_fmt(&s, ", %%w%d: %s[%lld,%lld] weight", (int)i, e, d, d);
  sb_fmt(&s, ") -> (%s[], %s[%lld,%lld]) {\n", e, e, n, d);
  for (i64 i = 0; i < layers; i++)
    sb_fmt(&s, "  %%x%d = call @layer(%%x%d, %%w%d)\n", (int)i + 1, (int)i, (int)i);
  sb_fmt(&s, "  %%p = mul %%x%d, %%z\n  %%loss = reduce_sum %%p {keepdims=0}\n  return %%loss, %%p\n}\n",
         (int)layers);
  prog *p = ir_parse(c, sym_of(c, "mlp"), s.v, s.n);
  arena_free(s.a);
  return p;
}

bool model_open(bench_model *b, const machine *m, const model_opts *o, const distir_params *params) {
  *b = (bench_model){.c = ctx_new(), .a = arena_new(), .train = !strncmp(o->model, "mlp", 3)};
  cost_opts co = {.model = "distir", .distir = params};
  b->k = cost_model_new(b->c, b->a, m, &co);
  const front_row *r = NULL;
  for (u32 i = 0; (r = front_family_get(i)) && strcmp(r->name, o->model); i++) continue;
  prog *src = !r         ? NULL
              : b->train ? distir_mlp(b->c, r->layers, r->hidden, o->batch, o->t)
                         : distir_gpt(b->c, r->layers, r->hidden, r->heads, o->batch, o->t);
  b->pl = src ? planner_new(src) : NULL; // has a copy
  prog_free(src);
  if (b->pl && b->k) return true;
  fputs(diag_render(b->c, b->a), stderr);
  return false;
}

void model_close(bench_model *b) {
  planner_free(b->pl);
  arena_free(b->a);
  ctx_free(b->c);
}

// DistIR's 1F1B: in every tick a device runs a backward if one has arrived, else a forward. The first
// gradient comes back to stage s after 2(P-1-s) further forwards, so that many are in flight, not P-1-s as in
// PipeDream-Flush.
static void distir_schedule(arena *a, plan *pn) {
  const u32 P = pn->nsegments, K = pn->time ? pn->axes[pn->time - 1].size : 1;
  for (u32 s = 0; s < P; s++) {
    sched_task *t = NEWN(a, sched_task, 2 * K);
    const u32 warm = MIN(2 * (P - 1 - s), K);
    u32 n = 0;
    for (u32 i = 0; i < K + warm; i++) {
      if (i < K) t[n++] = (sched_task){.stage = (u16)s, .kind = TASK_F, .mb = i};
      if (i >= warm) t[n++] = (sched_task){.stage = (u16)s, .kind = TASK_B, .mb = i - warm};
    }
    pn->seqs[s] = (sched_seq){n, t};
  }
}

// DistIR deals the blocks of its GPT-2 out by round robin, sorted: where they do not divide, the first stages
// have one more. The last block is what follows the last layer's last product.
static void distir_stages(const prog *p, plan *pn) {
  const func_info *m = func_get(p, p->main);
  u32 nblocks = 1, P = pn->nsegments, to = 0;
  for (u32 i = 0; i < m->body.n; i++) nblocks += m->body.v[i].op == OP_call;
  for (u32 s = 0; s < P; s++) {
    pn->segments[s].from = to + 1;
    for (u32 left = nblocks / P + (s < nblocks % P); left && to < m->body.n;)
      left -= m->body.v[to++].op == OP_call;
    if (s + 1 == P) to = m->body.n;
    pn->segments[s].to = to;
  }
}

price model_price(bench_model *b, degrees d) {
  price out = {0};
  arena *a = arena_new();
  const char *tables = d.t > 1 ? "tables=whole" : "";
  hybrid_opts h = {.s = strategy_of("dp=%u tp=%u pp=%u mb=%u %s%s", d.d, d.t, d.p, d.k, tables,
                                    d.p > 1 ? " overlap=none" : ""),
                   .train = b->train,
                   .optim = optim_default(OPTIM_SGD)};
  h.optim.master = false;
  plan *pn = policy_hybrid(b->pl, a, &h);
  if (pn && pn->train) pn->input_gradients = true, distir_schedule(a, pn);
  if (pn && !pn->train) distir_stages(planner_source(b->pl), pn);
  prog *p = pn ? plan_apply(b->pl, pn, NULL) : NULL;
  sim_result r;
  sim_opts so = {.mode = SIM_FOLDED, .bytes = SIM_BYTES_DISTIR, .peak_only = true};
  if (p) distir_rewrite(p);
  if (p && sim_run(b->c, a, p, b->k, &so, &r)) {
    out = (price){.ok = true, .s = (double)r.makespan_ps * 1e-12, .peak_bytes = (double)r.peak_bytes};
    for (u32 i = 0; i < r.nranks && i < COUNT_OF(out.bytes); i++)
      out.bytes[i] = (double)r.cls[r.class_of_rank[i]].peak_bytes;
  }
  diag_clear(b->c);
  prog_free(p);
  arena_free(a);
  return out;
}

// A file of the test data; NULL and no diagnostic if it is not there.
static char *data_text(arena *a, const char *file) {
  const char *data = getenv("HEDDLE_DATA");
  ctx *c = ctx_new();
  file_view f;
  char *s = NULL;
  if (file_map(c, arena_printf(a, "%s/%s", data ? data : "../shared/data", file), &f)) {
    s = arena_strndup(a, (const char *)f.data, f.size);
    file_unmap(&f);
  }
  ctx_free(c);
  return s;
}

const json *json_data(ctx *c, arena *a, const char *file) {
  const char *s = data_text(a, file);
  return s ? json_parse(c, a, sym_of(c, file), s, strlen(s)) : NULL;
}

table *table_read(arena *a, const char *file) {
  char *s = data_text(a, file);
  if (!s) return NULL;
  table *t = NEW(a, table);
  u32 lines = 0;
  for (const char *x = s; *x; x++) lines += *x == '\n';
  t->cols = 1;
  for (const char *x = s; *x && *x != '\n'; x++) t->cols += *x == ',';
  t->name = ZNEWN(a, const char *, t->cols);
  t->cell = ZNEWN(a, const char *, (size_t)t->cols *(lines + 1));
  for (u32 row = 0; *s; row++) {
    char *end = s + strcspn(s, "\r\n"), *next = end + strspn(end, "\r\n");
    *end = 0;
    for (u32 k = 0; k < t->cols; k++) {
      char *cell_end = s + strcspn(s, ",");
      bool more = *cell_end == ',';
      *cell_end = 0;
      (row ? t->cell + (size_t)(row - 1) * t->cols : t->name)[k] = s;
      s = cell_end + more;
    }
    t->rows = row;
    s = next;
  }
  return t;
}

const char *table_text(const table *t, u32 row, const char *name) {
  for (u32 k = 0; k < t->cols; k++)
    if (!strcmp(t->name[k], name)) return t->cell[(size_t)row * t->cols + k];
  return "";
}
double table_number(const table *t, u32 row, const char *name) {
  const char *s = table_text(t, row, name);
  return *s ? strtod(s, NULL) : NAN;
}

static int by_value(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

double median_of(arena *a, const double *x, u32 n) {
  double *v = arena_dup(a, x, sizeof *x * n);
  if (!n) return NAN;
  qsort(v, n, sizeof *v, by_value);
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

// Ranks from 1; equal values share the mean of theirs.
static double *ranks_of(arena *a, const double *x, u32 n) {
  double *r = NEWN(a, double, n);
  for (u32 i = 0; i < n; i++) {
    u32 less = 0, same = 0;
    for (u32 k = 0; k < n; k++) less += x[k] < x[i], same += x[k] == x[i];
    r[i] = less + (same + 1) / 2.0;
  }
  return r;
}

double spearman(arena *a, const double *x, const double *y, u32 n) {
  const double *p = ranks_of(a, x, n), *q = ranks_of(a, y, n), mean = (n + 1) / 2.0;
  double pp = 0, qq = 0, pq = 0;
  for (u32 i = 0; i < n; i++) {
    pp += (p[i] - mean) * (p[i] - mean);
    qq += (q[i] - mean) * (q[i] - mean);
    pq += (p[i] - mean) * (q[i] - mean);
  }
  return pq / sqrt(pp * qq);
}

void require(verdict *v, bool met, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  printf("%s  ", met ? "met   " : "MISSED");
  vprintf(fmt, ap);
  printf("\n");
  va_end(ap);
  met ? v->met++ : v->missed++;
}
