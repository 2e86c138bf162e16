// chrome.c - events of the Trace Event Format, from an array or from the member traceEvents of an object.
//
// Idea: an event is a row of fixed size, so that names, threads and times may come in any order; what they are
// relative to and which lie far from all others is known at the end. Begins and ends are joined on their track, by name
// where ends have one: the last that began and has not ended.
#include "trace/chrome.h"
#include <ctype.h>
#include <stdlib.h>

enum { OPEN_MOST = 64 }; // how far back the begin of an end is looked for
// Sums and differences of times in ns, and of 60 days in ps, have 63 bits.
static const i64 MONTH_US = (i64)30 * 24 * 3600 * 1000000, MOST_US = (i64)4500000 * 1000000 * 1000;

// ---- values -------------------------------------------------------------------------------------------------
sym chrome_text(chrome *k) {
  scan_text t;
  if (!scan_scalar(k->s, &t)) return (sym){0};
  if (t.escaped) scan_plain(k->s, &t);
  return sym_ofn(k->x->c, t.v, t.n);
}

bool chrome_number(const char *s, i64 *out) {
  return scan_integer((scan_text){s, (u32)strlen(s), false}, out);
}

bool chrome_number_after(const char *s, const char *word, i64 *out) {
  const char *p = strstr(s, word);
  if (!p || !isdigit((unsigned char)*(p += strlen(word)))) return false;
  u32 n = 0;
  while (n < 18 && isdigit((unsigned char)p[n])) n++;
  return scan_integer((scan_text){p, n, false}, out);
}

bool chrome_start_has(const char *start, const char *key, const char *part, bool prefix) {
  const size_t n = strlen(part);
  for (const char *p = start; (p = strstr(p, key));) {
    p += strlen(key);
    p += strspn(p, " \t\r\n:");
    if (*p != '"') continue; // or the end
    p++;
    const char *end = strchr(p, '"');
    if (!end) return false;
    for (const char *q = p; q + n <= end; q++) {
      if (!memcmp(q, part, n)) return true;
      if (prefix) break;
    }
  }
  return false;
}

// ---- one event ----------------------------------------------------------------------------------------------
typedef struct {
  chrome_event e;
  sym pid, tid, id;
  bool has_ts, has_dur, bad, empty;
  i64 dur_us;
  u32 dur_rest;
} taken;

static void take_args(chrome *k, taken *t) {
  scan_text key;
  if (!scan_object(k->s)) return;
  while (scan_member(k->s, &key)) {
    i64 n;
    if (scan_eq(key, "step") || scan_eq(key, "step_num")) {
      if (chrome_number(sym_str(k->x->c, chrome_text(k)), &n) && n >= 0 && n < TRACE_NONE) t->e.step = (u32)n;
    } else if (scan_eq(key, "start_time_since_epoch_in_micros")) {
      if (chrome_number(sym_str(k->x->c, chrome_text(k)), &n) && n > 0 && n < MOST_US) k->epoch_us = n;
    } else if (scan_eq(key, "name")) {
      t->e.label = chrome_text(k);
    } else if (!k->arg || !k->arg(k, &t->e, key)) {
      scan_skip(k->s);
    }
  }
}

static bool take_time(chrome *k, i64 *us, u32 *rest, bool *bad) {
  scan_text t;
  const bool ok = scan_scalar(k->s, &t) && scan_nearest(t, us, rest);
  *bad |= !ok;
  return ok;
}

static taken take_event(chrome *k) {
  taken t = {.e = {.step = TRACE_NONE, .before = TRACE_NONE, .dur_ps = -1}, .empty = true};
  scan_text key;
  for (; scan_member(k->s, &key); t.empty = false) {
    if (scan_eq(key, "ph")) {
      scan_text ph;
      t.e.phase = scan_string(k->s, &ph) && ph.n == 1 ? *ph.v : '?';
    } else if (scan_eq(key, "name")) {
      t.e.name = chrome_text(k);
    } else if (scan_eq(key, "cat")) {
      t.e.category = chrome_text(k);
    } else if (scan_eq(key, "pid")) {
      t.pid = chrome_text(k);
    } else if (scan_eq(key, "tid")) {
      t.tid = chrome_text(k);
    } else if (scan_eq(key, "id")) {
      t.id = chrome_text(k);
    } else if (scan_eq(key, "ts")) {
      t.has_ts = take_time(k, &t.e.start_us, &t.e.start_rest, &t.bad);
    } else if (scan_eq(key, "dur")) {
      t.has_dur = take_time(k, &t.dur_us, &t.dur_rest, &t.bad);
    } else if (scan_eq(key, "args")) {
      take_args(k, &t);
    } else {
      scan_skip(k->s);
    }
  }
  return t;
}

static u32 track_of(chrome *k, sym pid, sym tid, bool async) {
  const u64 h = hash_u64((u64)pid.i << 32 | tid.i, async);
  for (u32 it = 0, i; hmap_next(&k->by_track, h, &it, &i);) {
    const chrome_track *t = &k->tracks.v[i];
    if (t->pid.i == pid.i && t->tid.i == tid.i && t->async == async) return i;
  }
  hmap_add(k->tmp, &k->by_track, h, k->tracks.n);
  *vec_push(k->tmp, &k->tracks) = (chrome_track){.pid = pid, .tid = tid, .async = async, .open = TRACE_NONE};
  return k->tracks.n - 1;
}

// ---- pairs --------------------------------------------------------------------------------------------------
// The begin that this ends, taken off its track. TRACE_NONE: none.
static u32 close_of(chrome *k, u32 track, sym name) {
  u32 *at = &k->tracks.v[track].open;
  for (u32 n = 0; *at != TRACE_NONE && n < OPEN_MOST; n++) {
    const u32 e = *at;
    if (!name.i || k->events.v[e].name.i == name.i) {
      *at = k->events.v[e].before;
      return e;
    }
    at = &k->events.v[e].before;
  }
  return TRACE_NONE;
}

static bool end_pair(chrome *k, const taken *t) {
  const u32 i = close_of(k, t->e.track, t->e.name);
  if (i == TRACE_NONE) return false;
  chrome_event *e = &k->events.v[i];
  const i64 us = t->e.start_us - e->start_us;
  if (us < 0 || us > MONTH_US) return false;
  e->dur_ps = us * 1000000 + (i64)t->e.start_rest - (i64)e->start_rest;
  if (e->dur_ps < 0) return e->dur_ps = -1, false;
  return e->ended = true;
}

static void put_metadata(chrome *k, const taken *t) {
  const char *what = sym_str(k->x->c, t->e.name);
  if (!t->e.label.i) return;
  if (!strcmp(what, "thread_name")) {
    const u32 track = track_of(k, t->pid, t->tid, false); // first: it may move the array
    k->tracks.v[track].thread = t->e.label;
  } else if (!strcmp(what, "process_name")) {
    const u32 track = track_of(k, t->pid, (sym){0}, false);
    k->tracks.v[track].process = t->e.label;
  }
}

static void put_event(chrome *k, taken *t) {
  trace_read_about *about = k->x->about;
  const char ph = t->e.phase;
  if (ph == 'M') {
    put_metadata(k, t);
    return;
  }
  const bool begin = ph == 'B' || ph == 'b' || ph == '(', end = ph == 'E' || ph == 'e' || ph == ')',
             instant = ph == 'i' || ph == 'I' || ph == 'n' || ph == 'R';
  if (!begin && !end && !instant && ph != 'X') {
    const bool other = ph && strchr("CstfPNODVvc", ph); // counters, flows, samples, objects, clocks
    about->events += !other && !t->empty, about->skipped += !other && !t->empty;
    return;
  }
  about->events += !end;
  const i64 us = t->e.start_us;
  bool ok = t->has_ts && !t->bad && us < MOST_US && us > -MOST_US && (t->e.name.i || end);
  const bool async = ph == 'b' || ph == 'e' || ph == 'n';
  t->e.track = track_of(k, t->pid, async && !t->tid.i ? t->id : t->tid, async);
  if (end) {
    if (!ok || !end_pair(k, t)) about->events++, about->skipped++;
    return;
  }
  ok &= !t->has_dur || (t->dur_us >= 0 && t->dur_us <= MONTH_US);
  if (!ok) {
    about->skipped++;
    return;
  }
  t->e.phase = instant ? 'i' : 'X';
  if (ph == 'X' && t->has_dur) t->e.dur_ps = t->dur_us * 1000000 + t->dur_rest, t->e.ended = true;
  if (instant) t->e.dur_ps = 0;
  if (begin) t->e.before = k->tracks.v[t->e.track].open, k->tracks.v[t->e.track].open = k->events.n;
  *vec_push(k->tmp, &k->events) = t->e;
}

// ---- times --------------------------------------------------------------------------------------------------
// Is it there before, the same in all? What takes less than the clock's step may be.
static bool is_twice(chrome *k, hmap *seen, u32 i) {
  const chrome_event *e = &k->events.v[i];
  if (e->dur_ps < 2000000) return false;
  u64 h = hash_step(hash_step(hash_step(9, e->track), e->name.i), (u64)e->start_us);
  h = hash_u64(hash_step(hash_step(h, (u64)e->dur_ps), e->label.i), e->extra.i);
  for (u32 it = 0, o; hmap_next(seen, h, &it, &o);) {
    const chrome_event *f = &k->events.v[o];
    if (f->track == e->track && f->name.i == e->name.i && f->start_us == e->start_us &&
        f->start_rest == e->start_rest && f->dur_ps == e->dur_ps && f->label.i == e->label.i &&
        f->extra.i == e->extra.i && f->step == e->step)
      return true;
  }
  hmap_add(k->tmp, seen, h, i);
  return false;
}

// Leaves out what is far from the rest or there twice. Returns the least and the latest start, us.
static i64 drop_odd(chrome *k, i64 *most) {
  const u32 n = k->events.n;
  i64 *us = NEWN(k->tmp, i64, n + 1), least = INT64_MAX;
  for (u32 i = 0; i < n; i++) us[i] = k->events.v[i].start_us;
  qsort(us, n, sizeof *us, ascending_i64);
  const i64 middle = us[n / 2];
  hmap seen = {0};
  u32 to = 0;
  *most = INT64_MIN;
  for (u32 i = 0; i < n; i++) {
    const chrome_event e = k->events.v[i];
    if (llabs(e.start_us - middle) > MONTH_US) continue;
    k->events.v[to] = e;
    if (is_twice(k, &seen, to)) continue;
    least = MIN(least, e.start_us), *most = MAX(*most, e.start_us);
    to++;
  }
  k->x->about->skipped += n - to;
  k->events.n = to;
  return least;
}

static void set_times(chrome *k) {
  if (!k->events.n) return;
  i64 most;
  const i64 least = drop_odd(k, &most);
  const i64 shift = least >= 0 && most <= MONTH_US ? 0 : least; // 0: relative to the epoch, or to nothing
  k->base_ns = MAX(k->epoch_us + shift, 0) * 1000;
  for (u32 i = 0; i < k->events.n; i++) {
    chrome_event *e = &k->events.v[i];
    e->start_ps = (e->start_us - shift) * 1000000 + e->start_rest;
  }
}

// ---- the file -----------------------------------------------------------------------------------------------
static loc here(chrome *k) {
  const reading *x = k->x;
  return loc_node(x->c, x->file, sym_fmt(x->c, "event %llu", (unsigned long long)x->about->events + 1),
                  sym_fmt(x->c, "byte %llu", (unsigned long long)scan_offset(k->s)));
}

static void one_event(chrome *k) { // that was entered, or what is left of it
  taken t = take_event(k);
  if (scan_is(k->s) == SCAN_OK) put_event(k, &t);
}

// Where there is no JSON, it goes on at the next phase; what of an event comes before its phase is lost.
static bool go_on(chrome *k) {
  if (scan_is(k->s) != SCAN_BAD) return false;
  if (!k->odd++)
    diag(k->x->c, W_TRACE_ODD, here(k), "this is not JSON; the trace is read on from the next event");
  k->x->about->skipped++;
  return scan_find(k->s, "\"ph\"");
}

static void take_events(chrome *k) {
  scan_array(k->s);
  while (scan_element(k->s)) {
    if (scan_object(k->s))
      one_event(k);
    else
      k->x->about->events++, k->x->about->skipped++;
    while (go_on(k)) one_event(k);
  }
  while (go_on(k)) {
    one_event(k);
    while (scan_element(k->s))
      if (scan_object(k->s)) one_event(k);
  }
}

// Names of processes are of all their tracks.
static void name_tracks(chrome *k) {
  for (u32 i = 0; i < k->tracks.n; i++) {
    chrome_track *t = &k->tracks.v[i];
    for (u32 it = 0, p; !t->process.i && hmap_next(&k->by_track, hash_u64((u64)t->pid.i << 32, 0), &it, &p);)
      if (k->tracks.v[p].pid.i == t->pid.i && !k->tracks.v[p].tid.i) t->process = k->tracks.v[p].process;
  }
}

bool chrome_read(chrome *k) {
  scan_text key;
  bool found = false;
  k->s = scan_new(k->tmp, k->x->in);
  scan_mark(k->s);
  if (scan_at_array(k->s)) {
    found = true;
    take_events(k);
  } else if (scan_object(k->s)) {
    while (scan_member(k->s, &key)) {
      const bool events = scan_eq(key, "traceEvents") && scan_at_array(k->s);
      found |= events;
      if (events)
        take_events(k);
      else
        scan_skip(k->s);
    }
  }
  if (!found) {
    diag(k->x->c, E_TRACE, here(k), "%s",
         scan_is(k->s) == SCAN_ENDED ? "the file ends before its events"
                                     : "there is no list of events, traceEvents");
    return false;
  }
  k->x->about->truncated |= scan_is(k->s) == SCAN_ENDED && !k->endless;
  if (scan_is(k->s) == SCAN_BAD && !k->odd)
    diag(k->x->c, W_TRACE_ODD, here(k), "this is not JSON; what comes before is used");
  name_tracks(k);
  set_times(k);
  return true;
}

u32 chrome_put(chrome *k, const chrome_event *e, trace_is is, u32 process, bool device, i64 of, i64 id) {
  reading *x = k->x;
  if (!wanted(x, is)) return TRACE_NONE;
  const u32 lane = trace_lane_of(x->a, x->t, process, device, of, id);
  const chrome_track *t = &k->tracks.v[e->track];
  if (t->thread.i) x->t->lanes.v[lane].name = t->thread;
  const u32 n = trace_add(x->a, x->t, is, lane, e->name, e->start_ps, e->dur_ps);
  x->t->step[n] = e->step;
  return n;
}
