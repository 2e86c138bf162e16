// ops.c - heddle ops [OPERATOR]: printed from the table of operators; --patterns: how one may be split.
#include "cli/cli.h"

// What the others are for does not show without --patterns, nor costs without a machine.
static bool ops_agree(const cli *x) {
  const struct {
    const char *name;
    bool given, costs;
  } o[] = {{"shapes", x->shapes, false},   {"attributes", x->attributes, false}, {"type", x->type, false},
           {"machine", x->machine, false}, {"ways", x->ways.given, true},        {"costs", x->costs, true}};
  for (size_t i = 0; i < sizeof o / sizeof *o; i++) {
    if (o[i].given && !x->patterns) return usage_error("add --patterns", "--%s needs --patterns", o[i].name);
    if (o[i].given && o[i].costs && !x->machine)
      return usage_error("--machine dgx-2; `heddle machines` lists the presets", "--%s needs --machine",
                         o[i].name);
  }
  if (x->patterns && !x->operand)
    return usage_error("heddle ops matmul --patterns", "--patterns needs an operator");
  if (x->attributes && !x->shapes) return usage_error("--shapes 4096x1024", "--attributes needs --shapes");
  return true;
}

bool cmd_ops(cli *x) {
  if (!ops_agree(x)) return false;
  if (!x->operand) return put(x, heddle_docs_operators(x->s, format_of(x)));
  if (!x->patterns) return put(x, heddle_docs_operator(x->s, x->operand, format_of(x)));
  heddle_pattern_options o = {.shapes = x->shapes,
                              .attributes = x->attributes,
                              .type = x->type,
                              .ways = (uint32_t)x->ways.i,
                              .costs = x->costs};
  if (x->machine && !(o.machine = machine_of(x))) return false;
  return put(x, heddle_docs_patterns(x->s, x->operand, &o, format_of(x)));
}
