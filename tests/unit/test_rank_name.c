// test_rank_name.c - ranks that names of files say, of every recorder whose files are read.
#include "test.h"
#include "trace/trace.h"

static const struct {
  const char *path;
  rank_names of;
  u32 rank; // TRACE_NONE: none
} names[] = {
    {"rank3.json", RANK_ANY, 3},
    {"runs/8/rank3.json.gz", RANK_ANY, 3},
    {"rank-12.json", RANK_ANY, 12},
    {"Rank_7.trace.json", RANK_ANY, 7},
    {"step5_rank2_of_8.json", RANK_ANY, 2},
    {"trace.rank4.json", RANK_ANY, 4},
    {"noise-rank-0_step-5-6.json", RANK_ANY, 0},
    {"trace_3.json.gz", RANK_ANY, 3},
    {"1_trace_5.json", RANK_ANY, 5},
    {"0.json", RANK_ANY, 0},
    {"job-4/trace.json", RANK_ANY, TRACE_NONE},
    {"gpt2.json", RANK_ANY, TRACE_NONE},
    {"v1.2.json", RANK_ANY, TRACE_NONE},
    {"trace_1690000000.json", RANK_ANY, TRACE_NONE},
    {"rank1234567.json", RANK_ANY, TRACE_NONE},
    {"gpu12_4711.1690000000000.pt.trace.json.gz", RANK_ANY, TRACE_NONE},
    {"node_3.trace.json", RANK_ANY, TRACE_NONE},
    {"rank3.1690000000.pt.trace.json", RANK_ANY, TRACE_NONE},
    {"model.3.et", RANK_ANY, 3},
    {"llama-8.11.et", RANK_ANY, 11},
    {"model.1234567.et", RANK_ANY, TRACE_NONE},
    {"trace_2.et", RANK_ANY, 2},
    {".et", RANK_ANY, TRACE_NONE},
    {"et", RANK_ANY, TRACE_NONE},
    {"dump3", RANK_ANY, TRACE_NONE},
    {"dump3", RANK_DUMP, 3},
    {"/tmp/nccl_trace_rank_5", RANK_DUMP, 5},
    {"nccl_trace17.json", RANK_DUMP, 17},
    {"dump", RANK_DUMP, TRACE_NONE},
    {"3/comm.json", RANK_ANY, TRACE_NONE},
    {"3/comm.json", RANK_FOLDER, 3},
    {"traces/11/comm.json", RANK_FOLDER, 11},
    {"traces/host11/comm.json", RANK_FOLDER, TRACE_NONE},
    {"1234567/comm.json", RANK_FOLDER, TRACE_NONE},
    {"comm.json", RANK_FOLDER, TRACE_NONE},
    {"2/comm_5.json", RANK_FOLDER, 5},
    {"", RANK_ANY, TRACE_NONE},
    {"", RANK_DUMP, TRACE_NONE},
    {"/", RANK_FOLDER, TRACE_NONE},
};

TEST(rank_names) {
  for (u32 k = 0; k < COUNT_OF(names); k++) {
    const u32 rank = trace_rank_in_name(names[k].path, names[k].of);
    CHECK_MSG(rank == names[k].rank, "%s (%u): %u, not %u", names[k].path, names[k].of, rank, names[k].rank);
  }
}
