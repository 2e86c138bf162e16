// choice.h - what a plan chooses, and one line of text that says it. Part of plan.h.
//
// Idea: every choice is a row of choices.def. A strategy is a point, one value for each row: "dp=2 tp=4 pp=2
// mb=32 zero=1". A strategy set has several values for a row, "tp=1,2,4 zero=*": it is what a search is told.
// Options, columns, keys of JSON and names of plans are made of the rows. docs/strategy.md is the manual.
#ifndef HEDDLE_PLAN_CHOICE_H
#define HEDDLE_PLAN_CHOICE_H
#include "base/base.h"

typedef enum {
#define CHOICE(id, ...) CHOICE_##id,
#include "plan/choices.def"
#undef CHOICE
  CHOICE_COUNT
} choice_id;
typedef enum {
  CHOICE_OF_DEGREE,
  CHOICE_OF_DEALT,
  CHOICE_OF_KEPT,
  CHOICE_OF_STAGES,
  CHOICE_OF_ORDER,
  CHOICE_OF_SENDS
} choice_subject;
typedef enum { CK_COUNT, CK_WORD, CK_FLAG, CK_SET, CK_LIST, CK_GRIDS } choice_kind;
enum { CHOICE_MOST = 1 << 20, CHOICE_ALTERNATIVES = 64, CHOICE_PARTS = 1024 };

typedef struct {
  const char *name;
  const char *const *also; // other names, ended by NULL; the first is the long option
  choice_subject of;
  choice_kind kind;
  u32 least, most;                            // CK_COUNT
  const char *const *words;                   // ended by NULL
  const u64 *where;                           // CK_SET: what each of them needs, as `needs`; NULL: nothing
  const char *(*word)(u32 i);                 // or a function that lists them, NULL past the last
  bool (*named)(const char *name, u32 *word); // other names of its words; NULL: there are none
  const char *suffix;                         // CK_WORD: a path that ends so is a value too; NULL: none is
  const char *dflt, *search; // search: "*"; or the default: "" or "?", or with a word: "auto"
  u64 needs; // CHOICE_TRAINING, ..; bit id: of a row whose strategy_most must be above 1. Beside them choice_needs_on
  const char *title, *arg, *about;
} choice_row;
#define CHOICE_TRAINING (1ull << 63)
#define CHOICE_GROUPED  (1ull << 62) // a schedule that takes microbatches in groups
#define CHOICE_BLOCKING (1ull << 61) // sends on the compute stream
#define CHOICE_SEVERAL  (1ull << 60) // data ranks or replicas
#define CHOICE_ALIKE    (1ull << 59) // replicas=none

// n: the count; the number of the word from 0; 1 for a flag that is on; of a set one bit for each word. A
// list of numbers: its parts (n is then 0); of grids three for each, pp, tp and dp. A file instead of a word: its path (n is
// then how many words there are), and no parts.
typedef struct {
  u32 n;
  u16 nparts;
  bool wide; // of a file that was read: the first and the last stage of its schedule lie on all places
  union {
    const u32 *part;  // nparts of them
    const char *path; // where nparts is 0. NULL: no file
  };
} choice_value;
enum { OVERLAP_PP = 1, OVERLAP_DP = 2 }; // bits of overlap, in the order of its words
static inline const char *choice_file(choice_value x) { return x.nparts ? NULL : x.path; }
typedef union {
  choice_value of[CHOICE_COUNT];
  struct {
#define CHOICE(id, ...) choice_value id;
#include "plan/choices.def"
#undef CHOICE
  };
} strategy;

// Alternatives of one row. all: `*`.
typedef struct {
  loc at; // of the values in the line; 0: the row was not said
  bool said, all;
  u32 n;
  const choice_value *v;
} choice_set;
typedef struct {
  choice_set of[CHOICE_COUNT];
} strategy_set;

// ---- rows and values ----------------------------------------------------------------------------------
const choice_row *choice_get(choice_id id);
u64 choice_needs_on(choice_id id);            // bits of the rows that must be on
const char *choice_option(choice_id id);      // without its dashes
const char *choice_about(choice_id id);       // with the values that the row lists by a function
const char *choice_word(choice_id id, u32 i); // NULL past the last
u32 choice_words(choice_id id);               // how many
u32 choice_all(choice_id id);                 // so many of them, the first ones, are `*` of a search
choice_value choice_default(choice_id id);
choice_value choice_of_mixed(
    choice_id id); // what a search tries besides where devices are of several kinds, or the default
static inline bool choice_is_degree(choice_id id) { return choice_get(id)->of == CHOICE_OF_DEGREE; }
// The least that may be said of a count: a row without a title says another choice, and 0 that it was not said.
static inline u32 choice_least(choice_id id) {
  const choice_row *r = choice_get(id);
  return r->title ? r->least : MAX(r->least, 1u);
}
bool choice_same(choice_value x, choice_value y);
int choice_compare(choice_value x, choice_value y);           // below 0: x comes first
void choice_print(choice_id id, choice_value x, strbuf *out); // "4", "full", "dp+pp", "10/12"
void choice_say(choice_id id, choice_value x, strbuf *out);   // "dp=4", "recompute=full", "sp"
// One value as a line says it: the text after '='. False if it is none of the row's. Files are not opened.
bool choice_read(choice_id id, arena *a, const char *text, size_t n, choice_value *out);
// The first integer of a list that is above CHOICE_MOST, and its digits; NULL: there is none, or it is no list of integers.
const char *choice_part_above(choice_id id, const char *text, size_t n, u32 *digits);
const char *choice_takes(arena *a, choice_id id); // what the row takes: "an integer, 1 to 3", "gpipe or 1f1b"
// The word that is most like this text, or all that begin as it does up to a dash; "": there are none.
const char *choice_near(arena *a, choice_id id, const char *text, size_t n);
// Is it the word?
bool choice_is(choice_id id, choice_value x, const char *word);
// May the row be chosen, with the values of the rows that it needs?
bool choice_applies(choice_id id, const strategy *s, bool train);
// A set without the words that cannot be chosen there, and with those of them that are default. Others are as they are.
choice_value choice_settled(choice_id id, const strategy *s, bool train);
bool choice_is_on(choice_id id, const strategy *s); // of a set: one of the words that are default, if any are
// What the row needs, as choice_row.needs: of a set, what the first word does that is on and cannot be chosen.
u64 choice_needs_here(choice_id id, const strategy *s, bool train);
// Why not: "needs tp > 1; here tp=1", or that it is for training. Of a set, why not the first word that cannot.
const char *choice_lacks(arena *a, choice_id id, const strategy *s, bool train);
// "training and dp > 1"; "": nothing. words: of a set, the bits of those whose needs are told.
const char *choice_needs(arena *a, choice_id id, u32 words);

// The block of dp x tp ranks, from 0, that a place of the pipeline has.
static inline u32 strategy_block(const strategy *s, u32 place) {
  return s->places.nparts ? s->places.part[place] - 1 : place;
}

// Degrees by place (degrees.c): the tensor degree of a place of the pipeline. What its data ranks (dp.shares) or tensor
// ranks get, in the smallest numbers; NULL: all the same. How many numbers the choice needs: those of the place
// that has most ranks of the kind.
u32 strategy_tensor_at(const strategy *s, u32 place);
bool strategy_reduce(
    u32 *v, u32 n); // shares to the smallest numbers; false: all are the same, or more than an axis has
// The shares, of at least 1 each, that add up to the total and are nearest to these; false: there are none, or too many.
bool strategy_shares_near(u32 *v, u32 n, i64 total);
const u32 *strategy_shares_at(arena *a, const strategy *s, choice_id id, u32 place);
u32 strategy_shares_needed(const strategy *s, choice_id id);
// The number of the row; of dp, tp and pp that of the place or replica with most.
u32 strategy_most(const strategy *s, choice_id row);
bool strategy_settle_degrees(ctx *c, const strategy_set *set, const strategy *s); // part of strategy_settle

// Replicas of different make-up, each with degrees of its own, on ranks in order (make_up.c).
typedef struct {
  u32 pp, tp, dp;
} replica_grid;
static inline u32 strategy_replicas(const strategy *s) { return s->replicas.nparts / 3; } // 0: there are none
static inline replica_grid strategy_replica(const strategy *s, u32 r) {
  const u32 *x = &s->replicas.part[3 * r];
  return (replica_grid){x[0], x[1], x[2]};
}
u32 strategy_degree(replica_grid g, choice_id degree);
// What replica r is alone, with all microbatches: what it has none or one of is not chosen for it. One of a single stage
// has neither schedule nor chunks.
strategy strategy_of_replica(const strategy *s, u32 r, bool train);
u32 strategy_data_ranks(const strategy *s);    // of each replica; 0: they have different numbers
const char *strategy_counts(choice_id degree); // "data ranks"
u64 strategy_ranks(const strategy *s);         // that a plan of it uses
bool strategy_settle_replicas(ctx *c, const strategy_set *set, const strategy *s); // part of strategy_settle

// What a value of another row leaves no room for.
typedef struct {
  choice_id id;
  bool (*is)(choice_value x); // NULL: all but the default
  const char *why, *hint;
} choice_unfit;
// False, with a diagnostic at the first of them that is there: "... does not go with BESIDE".
bool strategy_goes_with(ctx *c, const strategy_set *set, const strategy *s, const char *beside,
                        const choice_unfit *v, u32 n);
// Does everything go with updates between tasks? `beside` says so.
bool strategy_updates_between(ctx *c, const strategy *s, const char *beside);
bool choice_is_list(choice_value x); // of numbers
bool choice_is_interlaced(
    choice_value x); // of schedule: its first and last stage lie on all places; of a file once it was read
bool choice_has_two_ways(choice_value x); // of schedule: it runs two replicas of its own

// ---- strategies ---------------------------------------------------------------------------------------
strategy strategy_default(void);
const strategy *strategy_defaults(void); // the same
// s with defaults for what is about `of`. A file says more than the order of tasks, so it stays.
strategy strategy_without(const strategy *s, choice_subject of);
strategy strategy_of_stages(const strategy *s); // without order and sends
// s takes what `from` says of what stages compute and keep (STAGES), where that can be chosen beside its other rows.
void strategy_take_stages(strategy *s, const strategy *from, bool train);
// Are they the same but for what is about one of `of`, bits of subjects? A file is always compared, too.
bool strategy_same_but(const strategy *x, const strategy *y, u32 of);
u64 strategy_hash_but(const strategy *s, u32 of); // equal where that is true
enum { CHOICES_OF_SENDS = 1 << CHOICE_OF_SENDS, CHOICES_OF_LINE = CHOICES_OF_SENDS | 1 << CHOICE_OF_ORDER };
int strategy_compare(const strategy *x, const strategy *y); // by rows, in their order
strategy strategy_dup(arena *a, const strategy *s);         // with numbers and paths of its own
// A strategy in a seventh of its size, for those who keep many. Numbers and paths are where they were.
typedef struct {
  u16 n[CHOICE_COUNT];
  const choice_value *more; // of rows whose n is PACKED_MORE, in their order; NULL: there are none
} strategy_packed;
enum { PACKED_MORE = UINT16_MAX }; // a list, a file, a number that is as large
strategy_packed strategy_pack(arena *a, const strategy *s);
strategy strategy_unpack(const strategy_packed *x);
choice_value strategy_packed_value(const strategy_packed *x, choice_id id);
int strategy_packed_compare(const strategy_packed *x, const strategy_packed *y); // strategy_compare
u64 strategy_hash(const strategy *s);
// The rows that are not at their defaults, dp, tp and pp always.
void strategy_print(const strategy *s, strbuf *out);
const char *strategy_str(arena *a, const strategy *s);       // likewise, in `a`
void strategy_set_print(const strategy_set *s, strbuf *out); // what was said
// Reads a line (NULL: empty), or several, with # comments. False and diagnostics (E_STRATEGY), located in the
// line. Lists are in `a`.
bool strategy_parse(ctx *c, arena *a, const char *line, strategy_set *out);
// The same of a line that diagnostics call `name`.
bool strategy_parse_named(ctx *c, arena *a, const char *name, const char *line, strategy_set *out);
// The one strategy that a set stands for, defaults where it says nothing; otherwise false and a diagnostic.
bool strategy_one(ctx *c, const strategy_set *set, strategy *out);
// Of a line that the program itself writes, as printf does: it is right, and names no numbers in a list and
// no file.
strategy strategy_of(const char *fmt, ...) PRINTF_LIKE(1, 2);
// Makes a strategy ready for a plan: mbs becomes mb (batch: samples of a step; 0: unknown). False and a
// diagnostic where mb and mbs disagree or do not divide the batch, where a row is not at its default though
// it cannot be chosen, and where a value cannot be planned yet. set: where it was said; NULL: nowhere.
bool strategy_settle(ctx *c, const strategy_set *set, i64 batch, bool train, strategy *s);
// Cuts that layers=auto stands for. The first that fit, told by simulations. The first of those, for a caller who simulates them and
// asks for the others where they do not fit. Those that fit by estimates, where cuts cannot be simulated by themselves.
typedef enum { CUTS_THAT_FIT, CUTS_TO_TRY, CUTS_BY_ESTIMATE } cuts_wanted;
bool strategy_tries_cuts(const strategy *s); // may others be asked for?
bool strategy_has_auto(const strategy *s);   // a value that stands for numbers: auto, or whale
#endif
