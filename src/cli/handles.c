// handles.c - from options to handles: what several commands ask for in the same words.
#include "cli/cli.h"

heddle_format format_of(const cli *x) { return x->json ? HEDDLE_JSON : HEDDLE_TEXT; }

bool put(const char *text) {
  if (text) fputs(text, stdout);
  return text != NULL;
}

heddle_program *model_of(cli *x, bool loss) {
  return heddle_program_load(x->s, x->operand,
                             &(heddle_load_options){.batch = x->batch.i,
                                                    .seq = x->seq.i,
                                                    .vocab = x->vocab.i,
                                                    .dtype = x->dtype,
                                                    .headless = x->headless,
                                                    .loss = loss,
                                                    .ndims = x->dims.n,
                                                    .dims = x->dims.v});
}

bool optimiser_of(cli *x, heddle_optimiser *o) {
  if (!heddle_optimiser_find(x->s, x->optimizer ? x->optimizer : "sgd", o)) return false;
  if (x->lr.given) o->lr = x->lr.x;
  if (x->momentum.given) o->momentum = x->momentum.x;
  if (x->beta1.given) o->beta1 = x->beta1.x;
  if (x->beta2.given) o->beta2 = x->beta2.x;
  if (x->eps.given) o->eps = x->eps.x;
  if (x->weight_decay.given) o->weight_decay = x->weight_decay.x;
  return true;
}
