// presets.c - copies of machines/*.yaml inside the library, so that it works wherever it lies. The assembler
// includes the files as they are; paths are relative to the root of the repository, where the build runs.
#include "machine/machine.h"

#define PRESET(id, file)                                                                                     \
  __asm__(".pushsection .rodata\n"                                                                           \
          ".globl preset_" #id "\n.hidden preset_" #id "\n"                                                  \
          ".globl preset_" #id "_end\n.hidden preset_" #id "_end\n"                                          \
          "preset_" #id ":\n.incbin \"machines/" file ".yaml\"\n"                                            \
          "preset_" #id "_end:\n.byte 0\n.popsection\n");
#include "machine/presets.def"
