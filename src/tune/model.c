// model.c - the job of a program: what one worker does in a training step, priced by a cost model. Not a recorded job.
//
// Idea: the program is inlined, so that its operations are in one row; calls of main were the layers, and become blocks,
// as do the instructions between calls. A value that the forward makes and the backward reads is kept by the operation
// that made its storage: views have none of their own. An operation can be fused with the one before it if it reads what
// that one makes and is no matmul: that saves a launch, and the value in between is neither written nor read.
#include "pass/pass.h"
#include "cost/cost.h"
#include "tune/tune.h"

typedef struct {
  ctx *c;
  arena *a, *tmp;
  prog *p;
  cost_model *k;
  const func_info *f; // main, inlined
  group one;          // the worker's device
  VEC(u32) block;     // of every instruction, as they come inlined
  u32 nblocks;
  VEC(tune_op) ops;
  VEC(tune_tensor) tensors;
  u32 *op_of;   // of an instruction; TUNE_NONE: it takes no time
  u32 *root;    // of a value: that whose storage it is
  u32 *readers; // of a root value
  bool *kept;   // of a root value
  i64 *input;   // of a block
} reader;

static u32 number_calls(reader *x, const func_info *f, u32 block) {
  for (u32 k = 0; k < f->body.n; k++) {
    const instr *in = &f->body.v[k];
    if (in->op == OP_call) {
      const u32 inner = block == TUNE_NONE ? x->nblocks++ : block;
      number_calls(x, func_get(x->p, in->callee), inner);
    } else {
      // Instructions of main: a block until the next call.
      const bool goes_on = k && f->body.v[k - 1].op != OP_call && x->block.n;
      const u32 last = goes_on ? x->block.v[x->block.n - 1] : TUNE_NONE;
      const u32 own = block != TUNE_NONE ? block : goes_on ? last : x->nblocks++;
      *vec_push(x->tmp, &x->block) = own;
    }
  }
  return x->block.n;
}

static u32 operand(const reader *x, const instr *in, u32 k) { return x->f->opds.v[in->opd + k] & OPD_VALUE; }
static u32 maker(const reader *x, u32 v) { return x->f->values.v[v].def; } // instruction + 1; 0: a parameter
static i64 value_bytes(const reader *x, u32 v) {
  const type_info *t = type_get(x->p, x->f->values.v[v].ty);
  return t->tuple ? 0 : shape_bytes(&t->s);
}
static tune_phase phase_of(const instr *in) {
  return in->flags & INSTR_UPDATE ? TUNE_UPDATE : in->flags & INSTR_BACKWARD ? TUNE_BACKWARD : TUNE_FORWARD;
}

static void find_roots(reader *x) {
  const func_info *f = x->f;
  for (u32 v = 0; v < f->values.n; v++) x->root[v] = v;
  for (u32 i = 0; i < f->body.n; i++) {
    const instr *in = &f->body.v[i];
    const bool view = in->nopd && op_row_of((opcode)in->op)->flags & OPF_VIEW;
    for (u32 r = 0; r < in->nres && view; r++) x->root[in->res + r] = x->root[operand(x, in, 0)];
    for (u32 k = 0; k < in->nopd; k++) {
      const u32 v = x->root[operand(x, in, k)], def = maker(x, v);
      x->readers[v] += !view;
      if (def && phase_of(in) != TUNE_FORWARD && phase_of(&f->body.v[def - 1]) == TUNE_FORWARD)
        x->kept[v] = true;
    }
  }
}

// What fusing with the operation before saves.
static i64 saving(const reader *x, const instr *in, const instr *before, i64 ps) {
  const machine *m = cost_model_machine(x->k);
  if (op_row_of((opcode)in->op)->flags & OPF_GEMM || phase_of(in) != phase_of(before)) return 0;
  for (u32 k = 0; k < in->nopd; k++) {
    const u32 v = x->root[operand(x, in, k)];
    if (v < before->res || v >= before->res + before->nres) continue;
    const double bytes = (double)value_bytes(x, v) * (x->readers[v] == 1 && !x->kept[v] ? 2 : 1);
    const double moved = bytes / cost_top_bw(x->k, machine_kind_of(m, 0)) * 1e12;
    return MIN(ps, cost_launch_ps(x->k, machine_kind_of(m, 0)) + (i64)moved);
  }
  return 0;
}

static bool put_ops(reader *x) {
  const instr *before = NULL;
  for (u32 i = 0; i < x->f->body.n; i++) {
    const instr *in = &x->f->body.v[i];
    const op_row *row = op_row_of((opcode)in->op);
    x->op_of[i] = TUNE_NONE;
    if (row->flags & (OPF_VIEW | OPF_META)) continue;
    i64 ps = 0, keeps = 0, result = 0;
    if (!cost_instr(x->k, x->p, x->f, in, x->one, &ps)) return false;
    for (u32 r = 0; r < in->nres; r++) keeps += x->kept[in->res + r] ? value_bytes(x, in->res + r) : 0;
    for (u32 r = 0; r < in->nres; r++) result += value_bytes(x, in->res + r);
    x->op_of[i] = x->ops.n;
    *vec_push(x->a, &x->ops) = (tune_op){.name = sym_of(x->c, row->name),
                                         .phase = phase_of(in),
                                         .heavy = row->flags & OPF_GEMM,
                                         .ps = ps,
                                         .saved_ps = before ? saving(x, in, before, ps) : 0,
                                         .keeps_bytes = keeps,
                                         .result_bytes = result,
                                         .block = x->block.v[i]};
    before = in;
  }
  return true;
}

// A block of the backward is that of the latest forward value that it reads, or the one before it.
static void pair_blocks(reader *x) {
  u32 *is = NEWN(x->tmp, u32, x->nblocks + 1), at = 0;
  for (u32 k = 0; k <= x->nblocks; k++) is[k] = TUNE_NONE;
  for (u32 i = 0; i < x->f->body.n; i++) {
    const instr *in = &x->f->body.v[i];
    for (u32 k = 0; k < in->nopd; k++) {
      const u32 v = x->root[operand(x, in, k)], def = maker(x, v), b = x->block.v[i];
      if (!def) continue;
      const u32 from = x->block.v[def - 1];
      if (phase_of(in) == TUNE_BACKWARD && x->kept[v] && (is[b] == TUNE_NONE || is[b] < from)) is[b] = from;
      if (phase_of(in) == TUNE_FORWARD && from != b && !x->input[b]) x->input[b] = value_bytes(x, v);
    }
  }
  for (u32 k = 0; k < x->ops.n; k++) {
    tune_op *o = &x->ops.v[k];
    if (o->phase == TUNE_FORWARD) at = o->block;
    if (o->phase == TUNE_BACKWARD) o->block = at = is[o->block] == TUNE_NONE ? at : is[o->block];
    if (o->phase == TUNE_UPDATE) o->block = at;
  }
}

// Of every value the first op of the forward that reads it, as itself or through a view; TUNE_NONE: none.
static u32 *first_readers(const reader *x) {
  u32 *of = NEWN(x->tmp, u32, x->f->values.n + 1);
  for (u32 v = 0; v < x->f->values.n; v++) of[v] = TUNE_NONE;
  for (u32 i = 0; i < x->f->body.n; i++) {
    const instr *in = &x->f->body.v[i];
    if (x->op_of[i] == TUNE_NONE || phase_of(in) != TUNE_FORWARD) continue;
    for (u32 k = 0; k < in->nopd; k++) {
      u32 *first = &of[x->root[operand(x, in, k)]];
      *first = MIN(*first, x->op_of[i]);
    }
  }
  return of;
}

static bool put_tensors(reader *x) {
  const u32 *reader_of = first_readers(x);
  for (u32 i = 0; i < x->f->body.n; i++) {
    const instr *in = &x->f->body.v[i];
    if (phase_of(in) != TUNE_UPDATE || in->nopd < 2 || maker(x, operand(x, in, 0))) continue;
    const u32 g = x->root[operand(x, in, 1)], def = maker(x, g);
    if (!def || x->op_of[def - 1] == TUNE_NONE || phase_of(&x->f->body.v[def - 1]) != TUNE_BACKWARD) continue;
    *vec_push(x->a, &x->tensors) = (tune_tensor){.name = x->f->values.v[operand(x, in, 0)].name,
                                                 .bytes = value_bytes(x, g),
                                                 .op = x->op_of[def - 1],
                                                 .read_by = reader_of[x->root[operand(x, in, 0)]]};
  }
  // By their ops; insertion keeps the order of equal ones.
  for (u32 i = 1; i < x->tensors.n; i++) {
    const tune_tensor t = x->tensors.v[i];
    u32 k = i;
    for (; k && x->tensors.v[k - 1].op > t.op; k--) x->tensors.v[k] = x->tensors.v[k - 1];
    x->tensors.v[k] = t;
  }
  return x->tensors.n > 0;
}

static u64 *contents(const reader *x) {
  u64 *h = ZNEWN(x->tmp, u64, x->nblocks + 1);
  for (u32 k = 0; k < x->ops.n; k++) {
    const tune_op *o = &x->ops.v[k];
    h[o->block] = hash_u64(hash_step(hash_step(h[o->block], (u64)o->ps), o->name.i), (u64)o->phase);
  }
  for (u32 k = 0; k < x->tensors.n; k++) {
    u64 *b = &h[x->ops.v[x->tensors.v[k].op].block];
    *b = hash_u64((u64)x->tensors.v[k].bytes, *b);
  }
  return h;
}

static tune_job *job_of(reader *x, const tune_link *l) {
  tune_job *j = NEW(x->a, tune_job);
  *j = (tune_job){.nops = x->ops.n,
                  .op = x->ops.v,
                  .ntensors = x->tensors.n,
                  .tensor = x->tensors.v,
                  .nblocks = x->nblocks,
                  .kind = NEWN(x->a, u32, x->nblocks + 1),
                  .input_bytes = x->input,
                  .link = *l};
  const u64 *h = contents(x);
  for (u32 k = 0; k < j->nblocks; k++)
    for (j->kind[k] = 0; h[j->kind[k]] != h[k];) j->kind[k]++;
  for (u32 k = 0; k < x->f->nparams; k++) {
    const role r = x->f->params.v[k].r;
    if (r == ROLE_WEIGHT || r == ROLE_STATE) j->fixed_bytes += value_bytes(x, k + 1);
  }
  const tune_plan p = tune_plan_new(x->tmp, j);
  j->peak_bytes = tune_bytes(j, &p);
  return j;
}

tune_job *tune_of_program(ctx *c, arena *a, prog *p, cost_model *k, const tune_link *l) {
  reader x = {.c = c, .a = a, .tmp = arena_new(), .p = p, .k = k};
  tune_job *j = NULL;
  const u32 n = number_calls(&x, func_get(p, p->main), TUNE_NONE);
  pass_inline(p);
  x.f = func_get(p, p->main);
  const u8 axis = axis_add(p->sp, sym_of(c, "worker"), 1, false);
  x.one = group_all(p->sp, mesh_add(p->sp, sym_of(c, "worker"), &axis, 1, 0, NULL));
  assert(x.f->body.n == n); // inlining keeps every instruction
  (void)n;
  x.op_of = NEWN(x.tmp, u32, x.f->body.n + 1);
  x.root = NEWN(x.tmp, u32, x.f->values.n + 1), x.readers = ZNEWN(x.tmp, u32, x.f->values.n + 1);
  x.kept = ZNEWN(x.tmp, bool, x.f->values.n + 1), x.input = ZNEWN(a, i64, x.nblocks + 1);
  find_roots(&x);
  if (put_ops(&x)) {
    pair_blocks(&x);
    if (put_tensors(&x))
      j = job_of(&x, l);
    else
      diag(c, E_TRACE, x.f->where, "the program updates no weights: there are no gradients to communicate");
  }
  arena_free(x.tmp);
  return j;
}

void tune_scale(tune_job *j, i64 forward_ps, i64 backward_ps) {
  i64 sum[2] = {0}, want[2] = {forward_ps, backward_ps};
  for (u32 k = 0; k < j->nops; k++)
    if (j->op[k].phase < 2) sum[j->op[k].phase] += j->op[k].ps;
  for (u32 k = 0; k < j->nops; k++) {
    tune_op *o = &j->op[k];
    if (o->phase > 1 || !want[o->phase] || !sum[o->phase]) continue;
    const double by = (double)want[o->phase] / (double)sum[o->phase];
    o->ps = (i64)((double)o->ps * by + 0.5), o->saved_ps = (i64)((double)o->saved_ps * by + 0.5);
    o->half_ps = (i64)((double)o->half_ps * by + 0.5);
  }
}
