// agree.c - figures in the words of messages: "1 plans are" becomes "1 plan is", bytes get a unit.
//
// Idea: a message is written once, for several; where the number turns out to be one, the noun that follows
// it and the verb that follows the noun are put into the singular. Only words of this list are touched, and
// nothing within backquotes: those are the user's.
#include "base/base.h"

static const struct {
  const char *many, *one;
} nouns[] = {
    {"activations", "activation"},
    {"are", "is"}, // "of 2 plans 1 are impossible"
    {"arguments", "argument"},
    {"arrays", "array"},
    {"axes", "axis"},
    {"blocks", "block"},
    {"bytes", "byte"},
    {"channels", "channel"},
    {"chunks", "chunk"},
    {"collectives", "collective"},
    {"communicators", "communicator"},
    {"coordinates", "coordinate"},
    {"devices", "device"},
    {"dimensions", "dimension"},
    {"dumps", "dump"},
    {"elements", "element"},
    {"entries", "entry"},
    {"errors", "error"},
    {"experts", "expert"},
    {"extents", "extent"},
    {"files", "file"},
    {"functions", "function"},
    {"groups", "group"},
    {"have", "has"},
    {"inputs", "input"},
    {"instructions", "instruction"},
    {"layers", "layer"},
    {"letters", "letter"},
    {"matmuls", "matmul"},
    {"messages", "message"},
    {"microbatches", "microbatch"},
    {"nodes", "node"},
    {"operands", "operand"},
    {"outputs", "output"},
    {"parameters", "parameter"},
    {"parts", "part"},
    {"places", "place"},
    {"plans", "plan"},
    {"positions", "position"},
    {"ranks", "rank"},
    {"results", "result"},
    {"samples", "sample"},
    {"segments", "segment"},
    {"sequences", "sequence"},
    {"sizes", "size"},
    {"stages", "stage"},
    {"steps", "step"},
    {"tasks", "task"},
    {"tensors", "tensor"},
    {"tokens", "token"},
    {"types", "type"},
    {"values", "value"},
    {"ways", "way"},
    {"words", "word"},
};

static size_t word_len(const char *s) {
  size_t n = 0;
  while (s[n] >= 'a' && s[n] <= 'z') n++;
  return n;
}

static const char *singular(const char *s, size_t n) {
  for (u32 k = 0; k < COUNT_OF(nouns); k++)
    if (strlen(nouns[k].many) == n && !memcmp(nouns[k].many, s, n)) return nouns[k].one;
  return NULL;
}

static bool ends_with(const char *text, const char *at, const char *word) {
  size_t n = strlen(word);
  return (size_t)(at - text) >= n && !memcmp(at - n, word, n);
}

// A number 1 that stands alone: not the end of 21, 0.1, h.1, nor the last of several.
static bool is_one(const char *text, const char *at) {
  if (*at != '1' || at[1] != ' ') return false;
  if (at > text && !strchr(" (", at[-1])) return false;
  return !ends_with(text, at, " and ") && !ends_with(text, at, " to ") && !ends_with(text, at, " or ");
}

char *text_agree(char *text) {
  bool quoted = false;
  char *to = text;
  for (const char *s = text; *s;) {
    quoted ^= *s == '`';
    bool one = !quoted && is_one(text, s);
    *to++ = *s++;
    for (u32 words = 0; one && words < 2 && *s == ' '; words++) {
      size_t n = word_len(s + 1);
      const char *w = singular(s + 1, n);
      if (!w) break;
      *to++ = ' ';
      memcpy(to, w, strlen(w)); // never longer than what it replaces
      to += strlen(w), s += 1 + n;
    }
  }
  *to = 0;
  return text;
}

const char *text_bytes(arena *a, double bytes) {
  static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  u32 k = 0;
  while (k + 1 < COUNT_OF(unit) && bytes >= 1023.5) bytes /= 1024, k++;
  int digits = k == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2;
  return arena_printf(a, "%.*f %s", digits, bytes, unit[k]);
}

const char *text_bytes_beside(arena *a, i64 bytes, i64 other) {
  const char *text = text_bytes(a, (double)bytes);
  if (bytes == other || strcmp(text, text_bytes(a, (double)other))) return text;
  return arena_printf(a, "%lld B", (long long)bytes);
}
