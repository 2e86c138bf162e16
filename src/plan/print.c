// print.c - plans written as YAML, docs/plans.md: text.c reads what is written here as the same plan.
#include "plan/internal.h"
#include <ctype.h>

const char *const plan_storage_name[STORAGE_KINDS] = {"weights", "gradients", "states", "servers"};

static bool follows(const sched_task *a, const sched_task *b, u32 by) { // b is a, `by` microbatches later
  return a->stage == b->stage && a->kind == b->kind && a->replica == b->replica && a->mb + by == b->mb;
}

// The longest repetition at v of a unit of `len` tasks whose microbatches grow by one each time.
static u32 repeats(const sched_task *v, u32 n, u32 len) {
  u32 r = 1;
  for (; (r + 1) * len <= n; r++)
    for (u32 k = 0; k < len; k++)
      if (!follows(&v[(r - 1) * len + k], &v[r * len + k], 1)) return r;
  return r;
}

void plan_put_task(strbuf *b, const sched_task *t) {
  sb_fmt(b, "%c%u.%u", sched_letter((task_kind)t->kind), t->stage, t->mb);
  if (t->replica) sb_fmt(b, "r%u", t->replica);
}

static void put_sequence(strbuf *b, const sched_seq *s) {
  for (u32 i = 0; i < s->n;) {
    u32 best = 1, times = 1;
    for (u32 len = 1; len <= 16 && i + len <= s->n; len++) {
      u32 r = repeats(s->v + i, s->n - i, len);
      if (r > 1 && r * len > best * times) best = len, times = r;
    }
    if (i) sb_char(b, ' ');
    if (times == 1) best = 1;
    if (best > 1) sb_char(b, '(');
    for (u32 k = 0; k < best; k++) {
      if (k) sb_char(b, ' ');
      plan_put_task(b, &s->v[i + k]);
    }
    if (best > 1) sb_char(b, ')');
    if (times > 1) sb_fmt(b, "*%u", times);
    i += best * times;
  }
}

// A name as it is, or quoted where YAML would read something else.
static void put_name(const prog *src, sym name, strbuf *b) {
  const char *s = sym_str(src->c, name);
  bool plain = *s && !strchr("-.", *s);
  for (const char *c = s; *c && plain; c++) plain = isalnum((u8)*c) || strchr("_-.", *c);
  if (plain)
    sb_put(b, s);
  else
    sb_json_str(b, s);
}

static void put_instr(const prog *src, func f, u32 number_of, strbuf *b) {
  const func_info *fi = func_get(src, f);
  sb_put(b, "in: ");
  put_name(src, fi->name, b);
  sb_fmt(b, ", instr: %u, op: %s", number_of, op_row_of(fi->body.v[number_of - 1].op)->name);
}

static void put_size(const plan_axis *x, strbuf *b) {
  if (!x->shares) sb_fmt(b, "%u", x->size);
  for (u32 k = 0; x->shares && k < x->size; k++)
    sb_fmt(b, "%s%u%s", k ? ", " : "[", x->shares[k], k + 1 == x->size ? "]" : "");
}

static void put_axes(const prog *src, const plan *pn, bool temporal, strbuf *b) {
  bool any = false;
  for (u32 i = 0; i < pn->naxes; i++) {
    if (pn->axes[i].temporal != temporal) continue;
    sb_put(b, any ? ", " : temporal ? "time: {" : "axes: {");
    put_name(src, pn->axes[i].name, b);
    sb_put(b, ": ");
    put_size(&pn->axes[i], b);
    any = true;
  }
  if (any) sb_put(b, "}\n");
}

static void put_trans(const prog *src, const plan *pn, strbuf *b) {
  if (pn->ntrans) sb_put(b, "trans:\n");
  for (u32 i = 0; i < pn->ntrans; i++) {
    const plan_trans *t = &pn->trans[i];
    sb_put(b, "  - {");
    if (t->instr) {
      put_instr(src, t->fn, t->instr, b);
      if (trans_splits(t->dim)) sb_fmt(b, ", %s: %u", t->result ? "result" : "operand", t->index);
    } else {
      sb_put(b, "input: ");
      sb_json_str(b, sym_str(src->c, func_get(src, t->fn)->values.v[t->index + 1].name));
    }
    if (trans_splits(t->dim)) sb_fmt(b, ", dim: %u", t->dim);
    sb_put(b, ", axis: ");
    put_name(src, pn->axes[t->axis - 1].name, b);
    if (!trans_splits(t->dim)) {
      sb_put(b, t->dim == TRANS_WHOLE ? ", whole: true}\n" : ", sum: true}\n");
      continue;
    }
    if (t->stride) sb_fmt(b, ", stride: %lld", (long long)t->stride);
    if (t->uneven) sb_put(b, ", uneven: true");
    sb_put(b, t->weak ? ", weak: true}\n" : "}\n");
  }
}

static void put_meshes(const prog *src, const plan *pn, strbuf *b) {
  sb_put(b, "meshes:\n");
  for (u32 i = 0; i < pn->nmeshes; i++) {
    const plan_mesh *m = &pn->meshes[i];
    sb_put(b, "  ");
    put_name(src, m->name, b);
    sb_put(b, ": {axes: [");
    for (u32 k = 0; k < m->naxes; k++) {
      if (k) sb_put(b, ", ");
      put_name(src, pn->axes[m->axis[k] - 1].name, b);
    }
    sb_put(b, "]");
    if (m->first) sb_fmt(b, ", first: %u", m->first);
    for (u32 k = 0; k < m->nranks; k++) sb_fmt(b, "%s%u", k ? ", " : ", ranks: [", m->ranks[k]);
    sb_put(b, m->nranks ? "]}\n" : "}\n");
  }
}

static void put_submesh(const prog *src, const plan *pn, const plan_submesh *on, strbuf *b) {
  sb_put(b, "on: ");
  put_name(src, pn->meshes[on->mesh].name, b);
  for (u32 k = 0; k < on->nfix; k++) {
    sb_put(b, k ? ", " : ", at: {");
    put_name(src, pn->axes[on->fix[k].axis - 1].name, b);
    sb_fmt(b, ": %u", on->fix[k].at);
  }
  sb_put(b, on->nfix ? "}}" : "}");
}

static void put_segments(const prog *src, const plan *pn, strbuf *b) {
  sb_put(b, "segments:\n");
  for (u32 i = 0; i < pn->nsegments; i++) {
    const plan_segment *s = &pn->segments[i];
    sb_fmt(b, "  - {from: %u, to: %u, ", s->from, s->to);
    put_submesh(src, pn, &s->on, b);
    sb_char(b, '\n');
  }
}

static void put_replicas(const prog *src, const plan *pn, strbuf *b) {
  if (pn->nreplicas) sb_put(b, "replicas:\n");
  for (u32 r = 0; r < pn->nreplicas; r++) {
    const plan_replica *x = &pn->replicas[r];
    sb_fmt(b, "  - {microbatches: %u", x->micro);
    for (u32 i = 0; x->on && i < pn->nsegments; i++) {
      sb_put(b, i ? ", {" : ", segments: [{");
      put_submesh(src, pn, &x->on[i], b);
    }
    sb_put(b, x->on ? "]}\n" : "}\n");
  }
}

void plan_put_train(const optim_opts *o, bool masters, strbuf *b) {
  sb_fmt(b,
         "train: {optimizer: %s, lr: %.17g, momentum: %.17g, beta1: %.17g, beta2: %.17g, eps: %.17g, "
         "weight-decay: %.17g%s}\n",
         optim_name(o->kind), o->lr, o->momentum, o->beta1, o->beta2, o->eps, o->weight_decay,
         masters ? ", master-weights: true" : "");
}

static void put_plan(const prog *src, const prog *model, const plan *pn, strbuf *b) {
  sb_put(b, "heddle-plan: 1\nname: ");
  sb_json_str(b, sym_str(src->c, pn->name));
  sb_char(b, '\n');
  if (pn->model) plan_model_print(model, pn->model, b);
  if (pn->train) {
    const optim_opts *o = &pn->optim;
    bool masters = false;
    const func_info *m = func_get(src, src->main);
    for (u32 k = 0; k < m->nparams; k++)
      masters |= m->params.v[k].r == ROLE_WEIGHT && optim_has_master(o, val_type(src, m, k + 1)->s.t);
    plan_put_train(o, masters, b);
  }
  put_axes(src, pn, false, b);
  put_axes(src, pn, true, b);
  put_meshes(src, pn, b);
  put_segments(src, pn, b);
  put_replicas(src, pn, b);
  put_trans(src, pn, b);
  for (u32 w = 0, any = 0; w < STORAGE_KINDS; w++) {
    for (u32 k = 0; k < pn->nstorage[w]; k++) {
      if (!k) sb_fmt(b, "%s%s: [", any++ ? ", " : "rest: {", plan_storage_name[w]);
      if (k) sb_put(b, ", ");
      put_name(src, pn->axes[pn->storage[w][k] - 1].name, b);
      if (k + 1 == pn->nstorage[w]) sb_put(b, "]");
    }
    if (w + 1 == STORAGE_KINDS && any) sb_put(b, "}\n");
  }
  if (pn->materialise) sb_fmt(b, "materialise: %s\n", plan_materialise_name[pn->materialise]);
  if (pn->wide_gradients) sb_put(b, "gradient-type: f32\n");
  if (pn->batchnorm_groups) sb_fmt(b, "batchnorm-groups: %u\n", pn->batchnorm_groups);
  if (pn->fused_attention) sb_put(b, "attention: fused\n");
  if (pn->coshard > 1) sb_fmt(b, "coshard: %u\n", pn->coshard);
  if (pn->offload) {
    const choice_value what = {.n = pn->offload};
    sb_put(b, "offload: ");
    choice_print(CHOICE_offload, what, b);
    sb_fmt(b, "\nprefetch: %u\n", pn->prefetch);
    if (pn->host_update) sb_put(b, "update: host\n");
  }
  if (pn->nrecompute) sb_put(b, "recompute:\n");
  for (u32 i = 0; i < pn->nrecompute; i++) {
    sb_put(b, "  - {");
    put_instr(src, pn->recompute[i].fn, pn->recompute[i].instr, b);
    sb_put(b, "}\n");
  }
  if (pn->input_gradients) sb_put(b, "input-gradients: true\n");
  if (pn->keep_gradients) sb_put(b, "keep-gradients: true\n");
  if (pn->send_stream.i) {
    sb_put(b, "send-stream: ");
    put_name(src, pn->send_stream, b);
    sb_char(b, '\n');
    if (pn->send_channels) sb_fmt(b, "send-channels: %u\n", pn->send_channels);
  }
  if (pn->sum_stream.i) {
    sb_put(b, "sum-stream: ");
    put_name(src, pn->sum_stream, b);
    sb_char(b, '\n');
  }
  if (pn->rendezvous) sb_put(b, "buffers: rendezvous\n");
  if (plan_schedule(pn)) sb_fmt(b, "schedule: %s\n", plan_schedule(pn));
  if (plan_schedule(pn) && pn->made.shape.group) sb_fmt(b, "group: %u\n", pn->made.shape.group);
  sb_put(b, "order:\n");
  for (u32 i = 0; i < pn->nseqs; i++) {
    sb_put(b, "  - \"");
    put_sequence(b, &pn->seqs[i]);
    sb_put(b, "\"\n");
  }
}

// Instructions are those of the program in the form that the plan asks for; its fingerprint is the model's.
void plan_print(const prog *src, const plan *pn, strbuf *b) {
  prog *own;
  const u32 before = diag_count(src->c);
  const prog *of = plan_program(src, pn, &own);
  diag_truncate(src->c, before); // a plan that cannot be applied has nothing in functions that are not there
  put_plan(of ? of : src, src, pn, b);
  prog_free(own);
}
