// check.c - verification of plans behind heddle.h: the distributed numbers against the model's.
#include "api/internal.h"

static void check_fini(object *o) { object_drop(((heddle_check *)o)->b); }

static heddle_check *run(heddle_plan *b, const heddle_check_options *o) {
  verify_opts v = {.seed = o->seed, .tolerance = o->tolerance, .memory_bytes = o->memory_bytes};
  heddle_check *k = object_new(b->o.s, sizeof *k, check_fini);
  k->b = object_hold(b);
  if (plan_verify(program_planner(b->p), b->pn, plan_cost_model(b), &v, k->o.a, &k->r)) return k;
  object_drop(k);
  return NULL;
}
heddle_check *heddle_check_run(heddle_plan *b, const heddle_check_options *o) {
  static const heddle_check_options none;
  if (!b) return NULL;
  API_RETURN(heddle_check *, NULL, b->o.s, run(b, o ? o : &none));
}

void heddle_check_free(heddle_check *k) { object_drop(k); }
bool heddle_check_passed(const heddle_check *k) { return k && k->r.passed; }
double heddle_check_worst(const heddle_check *k) { return k ? k->r.worst : 0; }

static const char *describe(heddle_check *k, heddle_format f) {
  report *r = report_new(k->o.a);
  batchnorm_stats bn = plan_batchnorm(k->b->p->p, k->b->pn);
  report_check(r, k->o.a, &k->r, k->b->p->name, heddle_plan_name(k->b), &bn);
  return rendered(k->o.a, r, f);
}
const char *heddle_check_report(heddle_check *k, heddle_format f) {
  if (!k) return NULL;
  API_RETURN(const char *, NULL, k->o.s, describe(k, f));
}
