// run_trace.c - what a rank has executed, as a file of its own: DIR/rank3.json. Not what it says (heddle_trace_ask).
#include "api/internal.h"
#include "trace/trace.h"
#include <errno.h>
#include <sys/stat.h>

enum { EVENTS_MOST = 1 << 22 }; // of 64 bytes: 256 MiB

bool heddle_run_record(heddle_run *r, uint64_t most) {
  if (!r) return false;
  object *o = (object *)r;
  API_RETURN(bool, false, o->s,
             (eval_rank_record(run_rank(r), run_ranks(r), most ? most : EVENTS_MOST), true));
}

// With the folders around it; other ranks may make it at the same time.
static bool make_folder(ctx *c, arena *a, const char *dir) {
  char *path = arena_strdup(a, dir);
  for (char *p = path + 1; *path; p++) {
    const char at = *p;
    if (at && at != '/') continue;
    *p = 0;
    if (mkdir(path, 0777) && errno != EEXIST && errno != EISDIR) {
      diag(c, E_FILE_WRITE, loc_node(c, sym_of(c, path), (sym){0}, (sym){0}), "the folder cannot be made: %s",
           strerror(errno));
      return false;
    }
    *p = at;
    if (!at) break;
  }
  return true;
}

static bool write_recording(heddle_run *r, const char *dir) {
  object *o = (object *)r;
  ctx *c = o->s->c;
  eval_recorded about;
  heddle_program *p = r->p;
  const char *number = r->number ? arena_printf(o->a, "%016llx", (unsigned long long)r->number) : NULL;
  const eval_job of = {r->steps, p->name, p->plan, p->machine, program_digest(p), number};
  const trace_source *t = eval_rank_recorded(run_rank(r), o->a, &of, &about);
  if (!t) {
    diag(c, E_USAGE, (loc){0}, "nothing was recorded");
    diag_hint(c, "heddle_run_record before the first step");
    return false;
  }
  const u32 rank = t->nranks - 1;
  const char *path = arena_printf(o->a, "%s/rank%u.json", dir, rank);
  if (!make_folder(c, o->a, dir) ||
      !chrome_write(c, t, &(timeline_opts){.no_arrows = true, .functions = true}, path))
    return false;
  if (about.left_out && !rank) {
    diag(c, W_TRACE_CUT, loc_node(c, sym_of(c, path), (sym){0}, (sym){0}),
         "the first %u steps were recorded, not the %u after them: there is room for %llu events",
         about.steps, about.left_out, (unsigned long long)about.most);
    diag_hint(c, "--steps %u", about.steps);
  }
  return true;
}
void heddle_run_number(heddle_run *r, uint64_t number) {
  if (r) r->number = number;
}
bool heddle_run_recorded(heddle_run *r, const char *dir) {
  if (!r || !dir) return false;
  object *o = (object *)r;
  API_RETURN(bool, false, o->s, write_recording(r, dir));
}
