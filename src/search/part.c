// part.c - what one part of a search found, as a file.
//
// Idea: the file is one JSON object with a checksum of everything before it as its last member, so that one
// that is cut off or changed is told from a whole one. First comes what all parts of the search have in
// common (shared.def), then classes of impossible plans that every part knows, then the points of this part.
// Points that are too slow already by the plans of the part alone are a number.
#include "search/internal.h"
#include "machine/machine.h"

const shared_row shared_rows[SHARED_COUNT] = {
#define SHARED(id, text, about) {#id, about, text},
#include "search/shared.def"
#undef SHARED
};

// ---- what parts have in common --------------------------------------------------------------------------
static const char *hex(arena *a, u64 x) { return arena_printf(a, "%016llx", (unsigned long long)x); }

// Of all that plans and times depend on; elements of constants are neither.
static u64 program_fingerprint(const prog *p) {
  arena *a = arena_new();
  u64 h = 0;
  for (u32 f = 1; f < p->funcs.n; f++) {
    arena_mark_t mark = arena_mark(a);
    strbuf b = {.a = a};
    ir_print_func(p, (func){f}, &b);
    h = hash_step(h, hash_bytes(b.v, b.n, 0));
    arena_release(a, mark);
  }
  arena_free(a);
  return hash_u64(h, p->funcs.n);
}

static u64 machine_fingerprint(arena *a, const machine *m) {
  strbuf b = {.a = a};
  machine_print(m, &b);
  return hash_bytes(b.v, b.n, machine_profile_hash(m));
}

static const char *optimizer_text(arena *a, const search_opts *o) {
  const optim_opts *x = &o->optim;
  if (!o->train) return NULL;
  return arena_printf(a,
                      "%s lr=%.17g momentum=%.17g beta1=%.17g beta2=%.17g eps=%.17g weight-decay=%.17g "
                      "master-weights=%s",
                      optim_name(x->kind), x->lr, x->momentum, x->beta1, x->beta2, x->eps, x->weight_decay,
                      x->master ? "on" : "off");
}

static const char *strategy_text(arena *a, const search_opts *o) {
  strbuf b = {.a = a};
  strategy_set_print(&o->space, &b);
  return sb_str(&b);
}

// As it was typed, if all of it is in one line; else NULL.
static const char *asked_text(arena *a, const ctx *c, const search_opts *o) {
  const loc_info *line = NULL;
  for (u32 i = 0; i < CHOICE_COUNT; i++) {
    const loc_info *x = o->space.of[i].said ? loc_get(c, o->space.of[i].at) : NULL;
    if (!o->space.of[i].said) continue;
    if (!x || !x->text || x->line != 1 || (line && (x->file.i != line->file.i || x->text != line->text)))
      return NULL;
    line = x;
  }
  return line ? arena_strndup(a, line->text, strcspn(line->text, "\n")) : NULL;
}

static const char *number(arena *a, i64 x) { return arena_printf(a, "%lld", (long long)x); }
static const char *truth(bool x) { return x ? "true" : "false"; }

static void set_shared(search_part *p, arena *a, const prog *src, const machine *m, const cost_opts *costs,
                       const search_opts *o) {
  const search_result *r = &p->r;
  const char **v = p->shared;
  v[SHARED_version] = HEDDLE_VERSION;
  v[SHARED_model] = p->about.model;
  v[SHARED_program] = hex(a, program_fingerprint(src));
  v[SHARED_parameter_dtypes] = p->about.types;
  v[SHARED_machine] = p->about.machine;
  v[SHARED_description] = hex(a, machine_fingerprint(a, m));
  v[SHARED_costs] = costs && costs->model ? costs->model : "heddle";
  v[SHARED_ranks] = number(a, p->about.ranks);
  v[SHARED_batch] = number(a, r->batch);
  v[SHARED_memory_limit_bytes] = number(a, r->memory_bytes);
  v[SHARED_memory_least_bytes] = number(a, r->memory_least);
  v[SHARED_train] = truth(o->train);
  v[SHARED_optimizer] = optimizer_text(a, o);
  v[SHARED_strategy] = strategy_text(a, o);
  v[SHARED_powers_of_two] = truth(o->pow2);
  v[SHARED_top] = number(a, p->o.top);
  v[SHARED_space] = number(a, r->space);
  v[SHARED_screened] = hex(a, r->screened);
  v[SHARED_equal] = number(a, r->count[SEARCH_EQUAL]);
  v[SHARED_ruled_out_by_memory] = number(a, r->count[SEARCH_BOUND_MEMORY]);
  v[SHARED_most_microbatches] = number(a, r->most_microbatches);
  v[SHARED_least_bytes] = number(a, r->least_bytes);
  v[SHARED_host_memory] = number(a, r->host);
  v[SHARED_replicas_not_tried] = r->no_replicas;
}

// ---- a part of a search ---------------------------------------------------------------------------------
search_part *search_part_of(arena *a, const prog *src, const machine *m, const cost_opts *costs,
                            const search_opts *o, const search_about *about, const search_result *r) {
  search_part *p = NEW(a, search_part);
  p->part = o->parts ? o->part : 1, p->parts = o->parts ? o->parts : 1;
  p->about = *about;
  p->o = (search_opts){
      .ranks = about->ranks, .train = o->train, .fusible = o->fusible, .top = o->no_bounds ? 0 : o->top};
  p->r = (search_result){.space = r->space,
                         .point = NEWN(a, search_point, r->npoints + 1),
                         .one_device = r->one_device,
                         .one_node = r->one_node,
                         .memory_bytes = r->memory_bytes,
                         .memory_least = r->memory_least,
                         .nkinds = r->nkinds,
                         .kinds = r->kinds,
                         .spread_ps = r->spread_ps,
                         .devices = r->devices,
                         .bound_ps = r->bound_ps,
                         .bound_failed = r->bound_failed,
                         .even_ps = r->even_ps,
                         .even = r->even,
                         .batch = r->batch,
                         .dealt = r->dealt,
                         .refit = r->refit,
                         .host = r->host,
                         .hint = r->hint,
                         .no_replicas = r->no_replicas,
                         .nmake_ups = r->nmake_ups,
                         .make_up = r->make_up,
                         .most_microbatches = r->most_microbatches,
                         .screened = r->screened};
  families_copy(a, r, &p->r);
  for (u32 i = 0; i < r->npoints; i++) {
    const search_point *x = &r->point[i];
    if (part_lists(x))
      p->r.point[p->r.npoints++] = *x;
    else if (x->state != SEARCH_OPEN)
      outcome_count(a, &p->r, x), families_count(&p->r, 1, x);
  }
  p->r.count[SEARCH_EQUAL] += r->refit; // as if they were still equal: a merge finds out again which are not
  p->asked = asked_text(a, src->c, o);
  p->hint_of = r->hint ? r->reason[0].example : NULL;
  set_shared(p, a, src, m, costs, o);
  return p;
}

// ---- text -----------------------------------------------------------------------------------------------
static void put_key(strbuf *b, const char *key) { sb_fmt(b, ",\n  \"%s\": ", key); }
static void put_number(strbuf *b, const char *key, i64 x) {
  put_key(b, key);
  sb_i64(b, x);
}

static void put_strategy(strbuf *b, const char *key, const strategy *s) {
  arena *a = arena_new();
  sb_fmt(b, "\"%s\": ", key);
  sb_json_str(b, strategy_str(a, s));
  arena_free(a);
}

static void put_reason(strbuf *b, u16 id, const char *why) {
  sb_fmt(b, "\"code\": \"%s\", \"reason\": ", id ? diag_row_of((diag_id)id)->code : "");
  sb_json_str(b, why);
}

static void put_shared(const search_part *p, strbuf *b) {
  for (u32 i = 0; i < SHARED_COUNT; i++) {
    put_key(b, shared_rows[i].key);
    if (!p->shared[i])
      sb_put(b, "null");
    else if (shared_rows[i].text)
      sb_json_str(b, p->shared[i]);
    else
      sb_put(b, p->shared[i]);
  }
}

static void put_reasons(const search_part *p, strbuf *b) {
  put_key(b, "impossible_reasons");
  for (u32 i = 0; i < p->r.nreasons; i++) {
    const search_reason *x = &p->r.reason[i];
    sb_fmt(b, "%s\n    {\"count\": %u, ", i ? "," : "[", x->count);
    put_strategy(b, "example", x->example);
    sb_fmt(b, ", \"varies\": %d, ", x->varies);
    put_reason(b, x->why_id, x->why);
    sb_char(b, '}');
  }
  sb_put(b, p->r.nreasons ? "\n  ]" : "[]");
}

const char *const part_states[SEARCH_STATES] = {[SEARCH_IMPOSSIBLE] = "impossible",
                                                [SEARCH_EQUAL] = "equal",
                                                [SEARCH_BOUND_TIME] = "too slow",
                                                [SEARCH_OVER_MEMORY] = "too large",
                                                [SEARCH_RAN] = "fits"};

static void put_point(const search_point *x, strbuf *b) {
  const strategy s = search_strategy(x);
  put_strategy(b, "strategy", &s);
  sb_fmt(b, ", \"bound_ps\": %lld, \"work_ps\": %lld, \"state\": \"%s\"", (long long)x->bound_ps,
         (long long)x->work_ps, part_states[x->state]);
  for (u32 k = 0; k < x->nalso; k++)
    sb_fmt(b, "%s%u%s", k ? ", " : ", \"also\": [", x->also[k], k + 1 < x->nalso ? "" : "]");
  if (x->state == SEARCH_IMPOSSIBLE) sb_put(b, ", "), put_reason(b, x->why_id, x->why);
  if (x->state == SEARCH_EQUAL) sb_put(b, ", "), put_reason(b, 0, x->why);
  if (x->first_ps) sb_fmt(b, ", \"first_ps\": %lld", (long long)x->first_ps);
  if (x->cuts_of) {
    const strategy of = strategy_unpack(x->cuts_of);
    sb_put(b, ", "), put_strategy(b, "cuts_of", &of);
  }
  if (x->resolved) {
    const strategy is = strategy_unpack(x->resolved);
    sb_put(b, ", "), put_strategy(b, "resolved", &is);
  }
  if (search_value(x, CHOICE_replicas).nparts)
    sb_fmt(b, ", \"products_ps\": %lld, \"stages_ps\": %lld", (long long)x->products_ps,
           (long long)x->stages_ps);
  if (x->state != SEARCH_OVER_MEMORY && x->state != SEARCH_RAN) return;
  sb_fmt(b, ", \"period_ps\": %lld, \"time_ps\": %lld, \"peak_bytes\": %lld", (long long)x->time_ps,
         (long long)x->alone_ps, (long long)x->peak_bytes);
  sb_fmt(b, ", \"utilisation\": %.17g, \"bubble\": %.17g, \"communication\": %.17g", x->utilisation,
         x->bubble, x->comm);
  if (x->host_bytes)
    sb_fmt(b, ", \"host_bytes\": %lld, \"host_usable_bytes\": %lld", (long long)x->host_bytes,
           (long long)x->host_usable);
}

static void put_families(const search_result *r, strbuf *b) {
  put_key(b, "families");
  for (u32 i = 0; i < r->nfamilies; i++) {
    const search_family *f = &r->family[i];
    strbuf word = {.a = b->a};
    choice_print(f->of, f->value, &word);
    sb_fmt(b, "%s\n    {\"choice\": \"%s\", \"value\": ", i ? "," : "[", choice_get(f->of)->name);
    sb_json_str(b, sb_str(&word));
    sb_fmt(b, ", \"applies\": %d, \"too_large\": %u, \"too_slow\": %u, \"bound_ps\": %lld}", f->applies,
           f->large, f->slow, (long long)f->bound_ps);
  }
  sb_put(b, r->nfamilies ? "\n  ]" : "[]");
}

const char *const part_rest[SEARCH_STATES] = {
    [SEARCH_IMPOSSIBLE] = "impossible", [SEARCH_EQUAL] = "equal", [SEARCH_BOUND_MEMORY] = "too large"};
static void put_make_ups(const search_result *r, strbuf *b) {
  put_key(b, "replicas_tried");
  for (u32 i = 0; i < r->nmake_ups; i++) {
    const search_make_up *m = &r->make_up[i];
    const strategy first = strategy_unpack(&m->first), rest = search_strategy(&m->rest);
    const char *why = m->rest.state == SEARCH_BOUND_MEMORY ? "" : m->rest.why;
    sb_fmt(b, "%s\n    {\"plans\": %u, ", i ? "," : "[", m->plans);
    put_strategy(b, "first", &first);
    if (m->rest.state) {
      sb_put(b, ", "), put_strategy(b, "rest", &rest);
      sb_fmt(b, ", \"state\": \"%s\", \"bound_bytes\": %lld, \"bound_ps\": %lld, ", part_rest[m->rest.state],
             (long long)m->rest.bound_bytes, (long long)m->rest_ps);
      put_reason(b, 0, why);
    }
    sb_fmt(b, ", \"too_slow\": %u, \"bounds_ps\": [", m->slow);
    for (u32 k = 0; k < m->bounds.n; k++) sb_fmt(b, "%s%lld", k ? ", " : "", (long long)m->bounds.v[k]);
    sb_put(b, "]}");
  }
  sb_put(b, r->nmake_ups ? "\n  ]" : "[]");
}

static void put_kinds(const search_result *r, strbuf *b) {
  put_key(b, "devices");
  for (u32 i = 0; i < r->nkinds; i++) {
    const plan_kind *x = &r->kinds[i];
    sb_put(b, i ? ",\n    {\"device\": " : "[\n    {\"device\": ");
    sb_json_str(b, x->name);
    sb_put(b, ", \"gets\": ");
    sb_json_str(b, x->gets);
    sb_put(b, ", \"apart\": ");
    sb_json_str(b, x->apart ? x->apart : "");
    sb_fmt(b, ", \"ranks\": %u, \"work\": %.17g, \"utilisation\": %.17g, \"communication\": %.17g", x->ranks,
           x->work, x->computes, x->communicates);
    sb_fmt(b, ", \"one_more\": %.17g, \"peak_bytes\": %lld, \"usable_bytes\": %lld}", x->one_more,
           (long long)x->peak_bytes, (long long)x->usable_bytes);
  }
  sb_put(b, r->nkinds ? "\n  ]" : "[]");
}

static void put_fewer(strbuf *b, const char *key, const search_fewer *x) {
  if (!x->time_ps) return;
  put_key(b, key);
  sb_fmt(b, "{\"devices\": %u, \"time_ps\": %lld, \"strategy\": ", x->ranks, (long long)x->time_ps);
  sb_json_str(b, x->strategy);
  sb_char(b, '}');
}

void part_end(strbuf *b) { // of all that b has
  const u64 h = hash_bytes(b->v, b->n, 0);
  put_key(b, "checksum");
  sb_fmt(b, "\"%016llx\"\n}\n", (unsigned long long)h);
}

void search_part_print(const search_part *p, strbuf *out) {
  const search_result *r = &p->r;
  strbuf b = {.a = out->a};
  sb_fmt(&b, "{\n  \"heddle_part\": %d", PART_FORM);
  put_number(&b, "part", p->part);
  put_number(&b, "parts", p->parts);
  put_shared(p, &b);
  put_reasons(p, &b);
  put_number(&b, "dealt", r->dealt);
  put_number(&b, "dealt_besides", r->refit);
  put_number(&b, "ruled_out_by_time", r->count[SEARCH_BOUND_TIME]);
  put_fewer(&b, "one_device", &r->one_device), put_fewer(&b, "one_node", &r->one_node);
  if (p->o.fusible) put_number(&b, "fusible", 1);
  put_number(&b, "batchnorm_samples", p->about.batchnorm.samples);
  put_number(&b, "batchnorm_groups", p->about.batchnorm.groups);
  put_key(&b, "mfu");
  sb_fmt(&b, "%.17g", p->about.mfu);
  put_key(&b, "layers_by_stage");
  sb_json_str(&b, p->about.layers ? p->about.layers : "");
  if (r->bound_ps) put_number(&b, "bound_ps", r->bound_ps);
  if (r->bound_failed) put_number(&b, "bound_failed", 1);
  if (r->devices) put_key(&b, "devices_tried"), sb_json_str(&b, r->devices);
  put_number(&b, "spread_ps", r->spread_ps);
  put_number(&b, "equal_ps", r->even_ps);
  put_key(&b, "equal_strategy");
  sb_json_str(&b, r->even ? r->even : "");
  put_kinds(r, &b);
  put_families(r, &b);
  put_make_ups(r, &b);
  if (p->asked) put_key(&b, "asked"), sb_json_str(&b, p->asked);
  if (p->hint_of) {
    sb_put(&b, ",\n  "), put_strategy(&b, "hint_of", p->hint_of);
    put_key(&b, "hint"), sb_json_str(&b, r->hint);
  }
  put_key(&b, "points");
  for (u32 i = 0; i < r->npoints; i++) {
    sb_put(&b, i ? ",\n    {" : "[\n    {");
    put_point(&r->point[i], &b);
    sb_char(&b, '}');
  }
  sb_put(&b, r->npoints ? "\n  ]" : "[]");
  part_end(&b);
  sb_putn(out, b.v, b.n);
}
