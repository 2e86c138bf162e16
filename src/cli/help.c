// help.c - heddle help [COMMAND] and heddle version.
#include "cli/cli.h"

bool cmd_help(cli *x) {
  if (x->operand) {
    const command *c = command_find(x->operand);
    if (c) x->json ? options_json(c, stdout) : options_help(c, stdout);
    return c != NULL;
  }
  if (x->json) {
    for (int i = 0; i < command_count; i++) {
      const command *c = &commands[i];
      printf("%s\n    {\"name\": \"%s\", \"operand\": \"%s\", \"about\": \"%s\"}",
             i ? "," : "{\n  \"commands\": [", c->name, c->operands, c->summary);
    }
    puts("\n  ]\n}");
    return true;
  }
  puts("heddle - plans, simulates and verifies distributed training and inference\n");
  for (int i = 0; i < command_count; i++) {
    char left[64];
    snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].operands);
    printf("  heddle %-22s %s\n", left, commands[i].summary);
  }
  puts("\n`heddle COMMAND --help` lists the options of a command, with an example.");
  return true;
}

bool cmd_version(cli *x) {
  printf(x->json ? "{\n  \"version\": \"%s\"\n}\n" : "heddle %s\n", heddle_version());
  return true;
}
