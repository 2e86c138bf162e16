// pytorch.c - a distributed program as a PyTorch program: its parts in the order in which they stand.
#include "export/internal.h"
#include "eval/eval.h"

// What exporting knows before it writes: names of functions, meshes and coordinates.
py *py_open(const prog *p, arena *a, bool measures) {
  py *w = ZNEWN(a, py, 1);
  const u32 nmeshes = mesh_count(p->sp);
  w->p = p, w->c = p->c, w->a = a, w->measures = measures;
  w->text.a = a;
  py_reserve_helpers(w);
  w->funcs = ZNEWN(a, const char *, p->funcs.n);
  w->uses = ZNEWN(a, uses, p->funcs.n);
  w->ncalls = ZNEWN(a, u32, p->funcs.n);
  w->times = ZNEWN(a, u64, p->funcs.n);
  w->meshes = ZNEWN(a, const char *, nmeshes + 2);
  w->time = ZNEWN(a, const char *, AXES_MAX);
  w->mesh_of = ZNEWN(a, mesh, AXES_MAX);
  for (u32 m = 1; m <= nmeshes; m++) {
    const mesh_info *x = mesh_get(p->sp, (mesh){m});
    strbuf b = {.a = a};
    sb_put(&b, "MESH");
    if (nmeshes > 1) sb_fmt(&b, "_%u", m);
    w->meshes[m] = py_name(w, &w->global, sb_str(&b));
    for (u32 k = 0; k < x->naxes; k++)
      if (!w->mesh_of[x->axis[k]].i) w->mesh_of[x->axis[k]] = (mesh){m};
  }
  for (u8 x = 1; x <= axis_count(p->sp); x++)
    if (axis_get(p->sp, x)->temporal)
      w->time[x] = py_name(w, &w->global, sym_str(w->c, axis_get(p->sp, x)->name));
  return w;
}

// Of callers in the order from main inwards the first and the last.
static void find_sites(py *w, const u32 *order, u32 n) {
  u32(*site)[2] = arena_zalloc(w->a, sizeof *site * w->p->funcs.n);
  u32(*last)[2] = arena_zalloc(w->a, sizeof *last * w->p->funcs.n);
  for (u32 k = n; k-- > 0;) {
    const func_info *f = func_get(w->p, (func){order[k]});
    for (u32 j = 0; j < f->body.n; j++) {
      if (f->body.v[j].op != OP_call) continue;
      const u32 callee = f->body.v[j].callee.i;
      w->ncalls[callee]++;
      if (!site[callee][0]) site[callee][0] = order[k], site[callee][1] = j;
      last[callee][0] = order[k], last[callee][1] = j;
    }
  }
  w->site = (const u32(*)[2])site, w->last = (const u32(*)[2])last;
}

static bool same_parts(const py *w, group x, group y) {
  if (x.i == y.i) return true;
  for (u8 k = 1; k <= axis_count(w->p->sp); k++) {
    const group_axis *a = py_part(w, x, k), *b = py_part(w, y, k);
    if (!a != !b || (a && (a->nonly != b->nonly || memcmp(a->only, b->only, a->nonly * sizeof *a->only))))
      return false;
  }
  return true;
}

// On which group functions run; callers first.
static void find_groups(py *w, const u32 *order, u32 n) {
  bool *moves = ZNEWN(w->a, bool, w->p->funcs.n);
  w->runs_on = ZNEWN(w->a, group, w->p->funcs.n);
  for (u32 k = n; k-- > 0;) {
    const func_info *f = func_get(w->p, (func){order[k]});
    for (u32 j = 0; j < f->body.n; j++) {
      const instr *i = &f->body.v[j];
      const group g = group_bind(i->g, w->runs_on[order[k]]);
      if (i->op != OP_call) continue;
      group *at = &w->runs_on[i->callee.i];
      if (!at->i) *at = g;
      moves[i->callee.i] |= moves[order[k]] || !same_parts(w, *at, g);
    }
  }
  w->moves = moves;
}

// ---- the top -------------------------------------------------------------------------------------------
static void put_mesh_words(const py *w, mesh m, strbuf *b) {
  const mesh_info *x = mesh_get(w->p->sp, m);
  for (u32 k = 0; k < x->naxes; k++)
    sb_fmt(b, "%s%s=%u", k ? ", " : "", sym_str(w->c, axis_get(w->p->sp, x->axis[k])->name),
           axis_size(w->p->sp, x->axis[k]));
}

static void put_about(py *w, const export_about *about, strbuf *b) {
  const u32 n = py_ranks(w->p);
  sb_fmt(b, "#!/usr/bin/env python3\n\"\"\"%s under the plan %s: a PyTorch program of %u process%s.\n\n",
         about->model, about->plan && *about->plan ? about->plan : "of one device", n, n > 1 ? "es" : "");
  sb_put(b, "The same program that Heddle simulates, verifies and runs: every split, sum and send below is "
            "the plan's.\n\n");
  if (about->machine) sb_fmt(b, "machine  %s\n", about->machine);
  for (u32 k = 1; k <= mesh_count(w->p->sp); k++) {
    sb_put(b, "ranks    ");
    put_mesh_words(w, (mesh){k}, b);
    sb_put(b, "; the last counts fastest\n");
  }
  sb_fmt(b, "start    torchrun --nproc_per_node %u THIS_FILE --steps 10\n", n);
  if (n > 1)
    sb_put(b, "         on N nodes, on each: torchrun --nnodes N --nproc_per_node (ranks / N) --rdzv_backend "
              "c10d \\\n"
              "           --rdzv_endpoint HOST:29500 THIS_FILE --steps 10\n");
  sb_put(b, "         by other means: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT in the "
            "environment\n");
  sb_put(b, "GPUs are joined by NCCL; without one, processes by gloo. --help lists the options.\n\"\"\"\n\n");
}

void py_tables(py *w) {
  for (u32 k = 0; k < w->tables.n; k++) {
    const pieces_info *x = pieces_get(w->p->sp, (pieces){w->tables.v[k].table});
    strbuf b = {.a = w->a};
    for (u32 j = 0; j < x->npieces; j++)
      sb_fmt(&b, "%s(%lld, %lld)", j ? ", " : "", (long long)x->bound[2 * j], (long long)x->bound[2 * j + 1]);
    py_put(w, 0, "%s = [%s]", w->tables.v[k].name, sb_str(&b));
  }
}

static void put_meshes(py *w) {
  const space *sp = w->p->sp;
  py_put(w, 0, "\n\nRANK, DEVICE = process()");
  for (u32 k = 1; k <= mesh_count(sp); k++) {
    const mesh_info *x = mesh_get(sp, (mesh){k});
    strbuf b = {.a = w->a}, ranks = b;
    put_mesh_words(w, (mesh){k}, &b);
    if (x->ranks) {
      i64 *v = NEWN(w->a, i64, x->nranks);
      for (u32 j = 0; j < x->nranks; j++) v[j] = x->ranks[j];
      py_ints(&ranks, v, x->nranks, true);
    } else
      sb_fmt(&ranks, "range(%u, %u)", x->first, x->first + x->nranks);
    py_put(w, 0, "%s = Mesh(%s, %s)", w->meshes[k], sb_str(&ranks), sb_str(&b));
  }
  for (u32 k = 0; k < w->axes.n; k++) {
    const py_axes *x = &w->axes.v[k];
    strbuf b = {.a = w->a};
    for (u32 j = 0; j < x->n; j++) {
      sb_put(&b, ", ");
      py_quote(&b, sym_str(w->c, axis_get(sp, x->axis[j])->name));
    }
    for (u32 j = 0; j < x->n; j++) {
      if (!x->only[j]) continue;
      i64 *at = NEWN(w->a, i64, x->only[j]->nonly);
      for (u32 i = 0; i < x->only[j]->nonly; i++) at[i] = x->only[j]->only[i];
      sb_fmt(&b, ", %s=", sym_str(w->c, axis_get(sp, x->axis[j])->name));
      py_ints(&b, at, x->only[j]->nonly, false);
    }
    py_put(w, 0, "%s = Axes(%s%s)", x->name, py_mesh_of(w, x->axis[0]), sb_str(&b));
  }
  py_tables(w);
  for (u32 k = 0; k < w->channels.n; k++) py_put(w, 0, "%s = channel()", w->channels.v[k]);
}

// The first rank that has the loss, or what the program gives instead.
static u32 speaker(const py *w) {
  const func_info *f = func_get(w->p, w->p->main);
  for (u32 r = 0, n = py_ranks(w->p); r < n && f->rets.n; r++)
    if (py_present(w, val(f, f->rets.v[0])->ty, r)) return r;
  return 0;
}

const char *export_pytorch(const prog *p, arena *a, const export_about *about) {
  py *w = py_open(p, a, false);
  u32 n;
  const u32 *order = ir_call_order(p, a, &n);
  find_sites(w, order, n), find_groups(w, order, n);
  for (u32 k = 0; k < n; k++)
    if (order[k] != p->main.i)
      w->funcs[order[k]] = py_name(w, &w->global, sym_str(w->c, func_get(p, (func){order[k]})->name));
  for (u32 k = 0; k < n && !w->failed; k++)
    if (order[k] != p->main.i) py_function(w, (func){order[k]});
  if (!w->failed) py_step(w);
  w->ranks = (group){0};
  if (!w->failed) py_parameters(w);
  if (w->failed) return NULL;
  strbuf out = {.a = a};
  const strbuf model = w->text;
  w->text = (strbuf){.a = a};
  put_meshes(w);
  put_about(w, about, &out);
  const char *body = model.v ? model.v : "";
  const py_parts parts = {
      .entry = "main",
      .constants = arena_printf(a,
                                "RANKS = %u  # processes\nSPEAKER = %u  # the one that tells of a step\n"
                                "UPDATES = %u  # of every weight in a step\n",
                                py_ranks(p), speaker(w), eval_updates(p)),
      .top = sb_str(&w->text),
      .body = body,
      .typed = body};
  sb_put(&out, py_helpers(w, &parts));
  return sb_str(&out);
}

static const export_format formats[] = {
#define FORMAT(name, function, doc) {name, doc, function},
#include "export/formats.def"
#undef FORMAT
};

const export_format *export_format_get(u32 k) { return k < COUNT_OF(formats) ? &formats[k] : NULL; }

const char *export_program(const prog *p, arena *a, const char *format, const export_about *about) {
  for (u32 k = 0; k < COUNT_OF(formats); k++)
    if (!strcmp(formats[k].name, format)) return formats[k].text(p, a, about);
  diag(p->c, E_USAGE, (loc){0}, "unknown format '%s'", format);
  strbuf b = {.a = ctx_arena(p->c)};
  for (u32 k = 0; k < COUNT_OF(formats); k++) sb_fmt(&b, "%s%s", k ? ", " : "", formats[k].name);
  diag_hint(p->c, "%s", sb_str(&b));
  return NULL;
}
