// trace.c - questions about the traces of a job: their table, and finding one.
#include "report/report.h"

static const trace_question questions[] = {
#define QUESTION(id, operands, options, about, answers, examples)                                            \
  {#id, operands, options, about, answers, examples, answer_##id},
#include "report/questions.def"
#undef QUESTION
};

const trace_question *trace_question_get(u32 index) {
  return index < COUNT_OF(questions) ? &questions[index] : NULL;
}

const trace_question *trace_question_find(ctx *c, const char *id) {
  near_name near = near_to(id, strlen(id));
  for (u32 k = 0; k < COUNT_OF(questions); k++) {
    if (!strcmp(questions[k].id, id)) return &questions[k];
    near_try(&near, questions[k].id);
  }
  diag(c, E_USAGE, (loc){0}, "unknown question '%s'", id);
  if (near.name)
    diag_hint(c, "did you mean `heddle trace %s`?", near.name);
  else
    diag_hint(c, "`heddle trace --help` lists them");
  return NULL;
}
