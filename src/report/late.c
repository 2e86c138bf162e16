// late.c - who is late in a job whose kernels were recorded, and what repairing them gains: in words and by rank.
#include "report/internal.h"

static void put_ranks(report *r, const late_report *l) {
  enum { BEYOND = 5 };
  static const column cols[] = {{"rank", "rank"},
                                {"host_ps", "host alone"},
                                {"device_ps", "device alone"},
                                {"path_ps", "host on path"},
                                {"last_read", "arrives last"},
                                [BEYOND] = {"last", "beyond doubt"},
                                {"repaired_ps", NULL},
                                {"gain", "gain if repaired"}};
  column *v = NEWN(r->a, column, COUNT_OF(cols));
  memcpy(v, cols, sizeof cols);
  if (!l->doubt_ps) v[BEYOND].title = NULL;
  report_table(r, "ranks", v, COUNT_OF(cols));
  for (u32 p = 0; p < l->n; p++) {
    const late_process *x = &l->process[p];
    const bool can = x->repaired_ps >= 0;
    const double gain = can && l->replayed_ps ? 1 - (double)x->repaired_ps / (double)l->replayed_ps : 0;
    report_row(r, (cell[]){x->rank == TRACE_NONE ? cell_none() : cell_i(CELL_INT, x->rank),
                           cell_i(CELL_PS, x->host_ps), cell_i(CELL_PS, x->device_ps),
                           cell_i(CELL_PS, x->path_ps), cell_i(CELL_INT, x->last_read),
                           cell_i(CELL_INT, x->last), can ? cell_i(CELL_PS, x->repaired_ps) : cell_none(),
                           can ? cell_x(CELL_SHARE, gain) : cell_none()});
  }
}

static const char *share(arena *a, i64 some, i64 of) {
  const double x = of ? 100 * (double)some / (double)of : 0;
  return arena_printf(a, "%.1f %%", x < 0 && x > -0.05 ? 0 : x); // not "-0.0 % shorter"
}

static const char *named(arena *a, const late_report *l, u32 p) {
  const u32 rank = l->process[p].rank;
  return rank == TRACE_NONE ? arena_printf(a, "process %u", p) : arena_printf(a, "rank %u", rank);
}

// Where nobody comes last by more than clocks are in doubt, nobody is named.
static void put_undecided(report *r, arena *a, const late_report *l) {
  u32 all = 0;
  for (u32 p = 0; p < l->n; p++) all += l->process[p].last_read;
  if (all)
    report_line(
        r, "late",
        "cannot be told: who comes last to a communication does so by less than the clocks' doubt, %s",
        time_text(a, l->doubt_ps));
}

// Is the job as long without them, to a tenth of a percent?
static bool harmless(const late_report *l) {
  const i64 one = l->process[l->late[0]].repaired_ps, both = l->late[1] == TRACE_NONE ? one : l->both_ps;
  return one >= 0 && l->replayed_ps - MIN(one, both) < l->replayed_ps / 2000;
}

static void put_late(report *r, arena *a, const late_report *l) {
  const late_process *x = &l->process[l->late[0]];
  const char *first = named(a, l, l->late[0]), *beyond = "";
  if (l->late[1] != TRACE_NONE) {
    const late_process *y = &l->process[l->late[1]];
    if (l->doubt_ps)
      beyond = arena_printf(a, ", %u and %u beyond the clocks' doubt, %s", x->last, y->last,
                            time_text(a, l->doubt_ps));
    report_line(r, "late", "%s and %s arrive last: at %u and %u of %u communications%s", first,
                named(a, l, l->late[1]), x->last_read, y->last_read, l->ncolls, beyond);
  } else {
    if (l->doubt_ps)
      beyond = arena_printf(a, ", %u beyond the clocks' doubt, %s", x->last, time_text(a, l->doubt_ps));
    report_line(r, "late", "%s arrives last: at %u of %u communications%s", first, x->last_read, l->ncolls,
                beyond);
  }
  if (x->repaired_ps < 0) return;
  if (harmless(l)) {
    report_line(r, "",
                "by so little that it does not matter: with the host times of others the job takes as long");
    return;
  }
  report_line(r, "", "with the host times of %s %s the job is %s shorter%s%s", first,
              l->n == 2 ? "as the other's" : "at the medians over ranks",
              share(a, l->replayed_ps - x->repaired_ps, l->replayed_ps),
              l->late[1] == TRACE_NONE ? "" : ", of both ",
              l->late[1] == TRACE_NONE ? "" : share(a, l->replayed_ps - l->both_ps, l->replayed_ps));
}

// Who comes last most often need not be who costs most: a rank may be late once, by much.
static void put_costliest(report *r, arena *a, const late_report *l) {
  u32 best = TRACE_NONE;
  for (u32 p = 0; p < l->n; p++) {
    const i64 x = l->process[p].repaired_ps;
    if (x >= 0 && (best == TRACE_NONE || x < l->process[best].repaired_ps)) best = p;
  }
  if (best == TRACE_NONE || best == l->late[0] ||
      l->replayed_ps - l->process[best].repaired_ps < l->replayed_ps / 1000)
    return;
  report_line(r, "", "%sof %s alone it is %s shorter, the most of all",
              l->late[0] == TRACE_NONE ? "with the median host times " : "", named(a, l, best),
              share(a, l->replayed_ps - l->process[best].repaired_ps, l->replayed_ps));
}

static void put_verdict(report *r, arena *a, const late_report *l) {
  const bool all_hosts = l->hosts == l->n, all_devices = !l->hosts;
  report_fact(r, "clocks_doubt_ps", NULL, cell_i(CELL_PS, l->doubt_ps));
  report_fact(r, "bound", NULL, cell_text(all_hosts ? "host" : all_devices ? "device" : "mixed"));
  if (all_hosts)
    report_line(r, "verdict", "host-bound on all ranks: they take longer without devices than without hosts");
  else if (all_devices)
    report_line(r, "verdict",
                "device-bound on all ranks: they take longer without hosts than without devices");
  else
    report_line(r, "verdict", "host-bound on %u of %u ranks", l->hosts, l->n);
  if (l->late[0] != TRACE_NONE)
    put_late(r, a, l);
  else
    put_undecided(r, a, l);
  put_costliest(r, a, l);
  if (l->all_ps > 0 && l->all_ps < l->replayed_ps)
    report_line(r, "", "with %s of all ranks it is %.2f times faster: %s",
                l->late[0] == TRACE_NONE || l->n == 2 ? "the median host times" : "those",
                (double)l->replayed_ps / (double)l->all_ps, time_text(a, l->all_ps));
  report_line(r, "bounds", "%s if hosts took no time, %s if devices took none", time_text(a, l->no_host_ps),
              time_text(a, l->no_device_ps));
}

void report_late(report *r, arena *a, const late_report *l) {
  put_verdict(r, a, l);
  report_gap(r);
  put_ranks(r, l);
}

void report_late_comms(report *r, ctx *c, arena *a, const replay *x, const late_report *l, u32 top) {
  static const column cols[] = {{"communication", "communication"},
                                {"count", "count"},
                                {"transfer_ps", "transfer"},
                                {"wait_ps", "waiting of a rank"},
                                {"longest_ps", "longest wait"},
                                {"last", "last most often"},
                                {"times", "times"}};
  late_comm *v;
  const u32 n = late_comms(x, a, &v);
  if (!n) return;
  report_gap(r);
  report_table(r, "communications", cols, COUNT_OF(cols));
  for (u32 k = 0; k < n; k++) {
    const u32 rank = v[k].last == TRACE_NONE ? TRACE_NONE : l->process[v[k].last].rank;
    report_row(r, (cell[]){cell_text(sym_str(c, v[k].op)), cell_i(CELL_INT, v[k].count),
                           cell_i(CELL_PS, v[k].transfer_ps), cell_i(CELL_PS, v[k].wait_ps / MAX(l->n, 1)),
                           cell_i(CELL_PS, v[k].longest_ps),
                           rank == TRACE_NONE ? cell_none() : cell_i(CELL_INT, rank),
                           cell_i(CELL_INT, v[k].times)});
  }
  report_top(r, top ? top : 10);
}

void report_replayed(report *r, arena *a, const replay_errors *x) {
  report_fact(r, "error_ps", NULL, cell_i(CELL_PS, (i64)(x->mean_ps + 0.5)));
  report_line(r, "replay", "operations end %s off on average, 99 of 100 at most %s",
              time_text(a, (i64)(x->mean_ps + 0.5)), time_text(a, x->below_99_ps));
}

void report_left_out(report *r, arena *a, const job_input *in) {
  u64 unlaunched = 0;
  strbuf b = {.a = a};
  for (u32 p = 0; p < in->replay.n; p++) unlaunched += in->replay.w[p]->unlaunched;
  report_fact(r, "files_left_out", NULL, cell_i(CELL_INT, in->left_out));
  report_fact(r, "communications_alone", NULL, cell_i(CELL_INT, in->lone));
  report_fact(r, "operations_left_out", NULL, cell_i(CELL_INT, (i64)unlaunched));
  if (in->left_out) sb_fmt(&b, "%u files of formats without kernels", in->left_out);
  if (unlaunched)
    sb_fmt(&b, "%s%llu operations whose launch was not recorded", b.n ? "; " : "",
           (unsigned long long)unlaunched);
  if (b.n) report_line(r, "left out", "%s", sb_str(&b));
  report_fact(r, "communications_partial", NULL, cell_i(CELL_INT, in->partial));
  report_fact(r, "communications_violated", NULL, cell_i(CELL_INT, in->violated));
  report_fact(r, "clocks_corrected_ps", NULL, cell_i(CELL_PS, in->clocks_by_ps));
  if (in->clocks_by_ps)
    report_line(r, "clocks", "of hosts are up to %s apart: corrected by ends of communications, to within %s",
                time_text(a, in->clocks_by_ps), time_text(a, in->clocks_within_ps));
  if (in->partial)
    report_line(r, "members",
                "%u communications have members that were not recorded: they may be the late ones",
                in->partial);
  if (in->violated)
    report_line(
        r, "clocks",
        "%u of %u communications end before their last member begins, by up to %s: clocks differ, and who "
        "is late cannot be told; heddle trace align says by how much",
        in->violated, in->replay.ncolls, time_text(a, in->worst_ps));
  if (in->lone)
    report_line(r, "alone", "%u communications without their peers count as computation", in->lone);
  const i64 apart = in->nends ? in->ends_ps / in->nends : 0;
  report_fact(r, "ends_apart_ps", NULL, in->nends ? cell_i(CELL_PS, apart) : cell_none());
  if (apart && !in->violated)
    report_line(r, "ends apart", "%s on average in a communication: shorter waits say nothing",
                time_text(a, apart));
}
