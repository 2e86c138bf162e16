## Where the time goes: rank 0 waits for rank 1 in step 12.
$ heddle trace summary examples/traces/ddp
rank  steps      time  computes   exposed    copies      idle  for host   between  other  hidden  computing
   0  10-12  7.082 ms  4.320 ms  2.345 ms  120.0 us  298.0 us  269.5 us  28.50 us      0  32.3 %     61.0 %
   1  10-12  7.083 ms  4.320 ms  1.566 ms  120.0 us  1.077 ms  1.048 ms  28.50 us      0  33.2 %     61.0 %

rank  steps      time  computes   exposed    copies      idle  for host   between  other  hidden  computing
   0  10     2.011 ms  1.440 ms  521.5 us  40.00 us  9.500 us         0  9.500 us      0  33.1 %     71.6 %
   0  11     2.011 ms  1.440 ms  521.5 us  40.00 us  9.500 us         0  9.500 us      0  33.1 %     71.6 %
   0  12     2.791 ms  1.440 ms  1.302 ms  40.00 us  9.500 us         0  9.500 us      0  31.6 %     51.6 %
   1  10     2.011 ms  1.440 ms  522.0 us  40.00 us  9.500 us         0  9.500 us      0  33.2 %     71.6 %
   1  11     2.011 ms  1.440 ms  522.0 us  40.00 us  9.500 us         0  9.500 us      0  33.2 %     71.6 %
   1  12     2.011 ms  1.440 ms  522.0 us  40.00 us  9.500 us         0  9.500 us      0  33.2 %     71.6 %

rank  communication  count      runs   exposed
   0  all_reduce         6  3.462 ms  2.345 ms
   1  all_reduce         6  2.343 ms  1.566 ms

rank  device  stream  events      busy  for host   between     other  queue  median  longest
   0       0       7      24  4.440 ms  269.5 us  27.00 us  2.346 ms  2.625     2.5        6
   0       0      20       6  3.462 ms  2.046 ms  1.500 us  686.0 us      1       1        2
   1       1       7      24  4.440 ms  1.048 ms  27.00 us  1.567 ms  2.625     2.5        6
   1       1      20       6  2.343 ms  2.825 ms         0  1.028 ms      1       1        2

kernel                                                        kind           count     total   share      mean  shortest   longest
ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsS..  communication     12  5.804 ms  39.5 %  483.7 us  260.0 us  1.040 ms
sgemm_128x128_nt                                              compute           18  5.400 ms  36.8 %  300.0 us  300.0 us  300.0 us
sgemm_128x128_tn                                              compute           18  2.700 ms  18.4 %  150.0 us  150.0 us  150.0 us
multi_tensor_apply_kernel                                     compute            6  540.0 us   3.7 %  90.00 us  90.00 us  90.00 us
Memcpy HtoD (Pinned -> Device)                                copy               6  240.0 us   1.6 %  40.00 us  40.00 us  40.00 us

operation   group  type      size  count  shortest    median  algorithm        bus  median bus
all_reduce      2  f32   30.5 MiB      6  520.0 us  520.5 us  61.5 GB/s  61.5 GB/s   61.5 GB/s
all_reduce      2  f32   15.3 MiB      6  260.0 us  260.5 us  61.5 GB/s  61.5 GB/s   61.4 GB/s
$ heddle trace summary examples/traces/ddp --steps 12-13 --top 3
rank  steps      time  computes   exposed    copies      idle  for host   between  other  hidden  computing
   0  12,13  4.937 ms  2.880 ms  1.823 ms  80.00 us  153.8 us  134.8 us  19.00 us      0  32.0 %     58.3 %
   1  12,13  4.157 ms  2.880 ms  1.044 ms  80.00 us  153.2 us  134.2 us  19.00 us      0  33.2 %     69.3 %

rank  steps      time  computes   exposed    copies      idle  for host   between  other  hidden  computing
   0  12     2.791 ms  1.440 ms  1.302 ms  40.00 us  9.500 us         0  9.500 us      0  31.6 %     51.6 %
   0  13     2.011 ms  1.440 ms  521.5 us  40.00 us  9.500 us         0  9.500 us      0  33.1 %     71.6 %
   1  12     2.011 ms  1.440 ms  522.0 us  40.00 us  9.500 us         0  9.500 us      0  33.2 %     71.6 %
   1  13     2.011 ms  1.440 ms  522.0 us  40.00 us  9.500 us         0  9.500 us      0  33.2 %     71.6 %

rank  communication  count      runs   exposed
   0  all_reduce         4  2.682 ms  1.823 ms
   1  all_reduce         4  1.562 ms  1.044 ms

rank  device  stream  events      busy  for host   between     other  queue  median  longest
   0       0       7      16  2.960 ms  134.8 us  18.00 us  1.824 ms  2.625     2.5        6
   0       0      20       4  2.682 ms  1.023 ms  1.500 us  343.0 us      1       1        2
   1       1       7      16  2.960 ms  134.2 us  18.00 us  1.045 ms  2.625     2.5        6
   1       1      20       4  1.562 ms  1.022 ms         0  685.0 us      1       1        2

kernel                                                        kind           count     total   share      mean  shortest   longest
ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsS..  communication      8  4.244 ms  41.8 %  530.4 us  260.0 us  1.040 ms
sgemm_128x128_nt                                              compute           12  3.600 ms  35.4 %  300.0 us  300.0 us  300.0 us
sgemm_128x128_tn                                              compute           12  1.800 ms  17.7 %  150.0 us  150.0 us  150.0 us
... and 2 more

operation   group  type      size  count  shortest    median  algorithm        bus  median bus
all_reduce      2  f32   30.5 MiB      4  520.0 us  520.5 us  61.5 GB/s  61.5 GB/s   61.5 GB/s
all_reduce      2  f32   15.3 MiB      4  260.0 us  260.5 us  61.5 GB/s  61.5 GB/s   61.4 GB/s
$ heddle trace summary examples/traces/ddp/rank0.json --steps 11 --json
{
  "ranks": [
    {"rank": 0, "steps": "11", "span_ps": 2011000000, "compute_ps": 1440000000, "exposed_ps": 521500000, "copy_ps": 40000000, "idle_ps": 9500000, "idle_host_ps": 0, "idle_kernel_ps": 9500000, "idle_other_ps": 0, "comm_ps": 780000000, "overlap_ps": 258500000, "overlap": 0.3314102564102564, "utilisation": 0.7160616608652411}
  ],
  "communication": [
    {"rank": 0, "op": "all_reduce", "count": 2, "total_ps": 780000000, "exposed_ps": 521500000}
  ],
  "streams": [
    {"rank": 0, "device": 0, "stream": 7, "events": 8, "busy_ps": 1480000000, "idle_host_ps": 0, "idle_kernel_ps": 9000000, "idle_other_ps": 522000000, "queue_mean": 2.625, "queue_std": 1.8211717839530315, "queue_median": 2.5, "queue_max": 6},
    {"rank": 0, "device": 0, "stream": 20, "events": 2, "busy_ps": 780000000, "idle_host_ps": 0, "idle_kernel_ps": 0, "idle_other_ps": 343000000, "queue_mean": 1, "queue_std": 0.816496580927726, "queue_median": 1, "queue_max": 2}
  ],
  "kernels": [
    {"name": "sgemm_128x128_nt", "kind": "compute", "count": 3, "total_ps": 900000000, "share": 0.39823008849557523, "mean_ps": 300000000, "min_ps": 300000000, "max_ps": 300000000},
    {"name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "kind": "communication", "count": 2, "total_ps": 780000000, "share": 0.34513274336283184, "mean_ps": 390000000, "min_ps": 260000000, "max_ps": 520000000},
    {"name": "sgemm_128x128_tn", "kind": "compute", "count": 3, "total_ps": 450000000, "share": 0.19911504424778761, "mean_ps": 150000000, "min_ps": 150000000, "max_ps": 150000000},
    {"name": "multi_tensor_apply_kernel", "kind": "compute", "count": 1, "total_ps": 90000000, "share": 0.03982300884955752, "mean_ps": 90000000, "min_ps": 90000000, "max_ps": 90000000},
    {"name": "Memcpy HtoD (Pinned -> Device)", "kind": "copy", "count": 1, "total_ps": 40000000, "share": 0.017699115044247787, "mean_ps": 40000000, "min_ps": 40000000, "max_ps": 40000000}
  ],
  "bandwidths": [
    {"op": "all_reduce", "group": 2, "type": "f32", "bytes": 32000000, "count": 1, "min_ps": 520000000, "median_ps": 520000000, "algorithm_bytes_per_s": 61538461538.46154, "bus_bytes_per_s": 61538461538.46154, "median_bus_bytes_per_s": 61538461538.46154},
    {"op": "all_reduce", "group": 2, "type": "f32", "bytes": 16000000, "count": 1, "min_ps": 260000000, "median_ps": 260000000, "algorithm_bytes_per_s": 61538461538.46154, "bus_bytes_per_s": 61538461538.46154, "median_bus_bytes_per_s": 61538461538.46154}
  ]
}
## steps that are not there
$ heddle trace summary examples/traces/ddp --steps 3
error[E0801]: none of the steps 3 was recorded: there are 10 to 13
  --> examples/traces/ddp/rank0.json
  hint: --steps 10-13
[2]
$ heddle trace summary examples/traces/ddp --steps last
error[E0801]: 'l' where a number is expected
  --> --steps:1:1
   1 | last
     | ^
  hint: numbers are such as 3, or 3-5,8
[2]
## no device
$ grep -v '"kernel"\|gpu_memcpy' examples/traces/ddp/rank1.json >host.json; heddle trace summary host.json
error[E0106]: no events of a device in host.json
  hint: heddle trace info host.json
[1]
## no steps: all that was recorded
$ grep -v ProfilerStep examples/traces/ddp/rank1.json >all.json; heddle trace summary all.json --top 1
rank  steps      time  computes   exposed    copies      idle  for host   between  other  hidden  computing
   1         9.229 ms  5.760 ms  2.088 ms  160.0 us  1.221 ms  1.183 ms  38.00 us      0  33.2 %     62.4 %

rank  communication  count      runs   exposed
   1  all_reduce         8  3.124 ms  2.088 ms

rank  device  stream  events      busy  for host   between     other  queue  median  longest
   1       1       7      32  5.920 ms  1.183 ms  36.00 us  2.090 ms  2.625     2.5        6
   1       1      20       8  3.124 ms  3.847 ms         0  1.370 ms      1       1        2

kernel            kind     count     total   share      mean  shortest   longest
sgemm_128x128_nt  compute     12  3.600 ms  39.8 %  300.0 us  300.0 us  300.0 us
... and 4 more

operation   group  type      size  count  shortest    median  algorithm        bus  median bus
all_reduce      2  f32   30.5 MiB      4  520.5 us  520.5 us  61.5 GB/s  61.5 GB/s   61.5 GB/s
all_reduce      2  f32   15.3 MiB      4  260.5 us  260.5 us  61.4 GB/s  61.4 GB/s   61.4 GB/s
## A device that is more than a step behind its host: a step alone has the work that it has in the whole file. An archive.
$ awk '/"pid": 0, /{ match($0, /"ts": [0-9.]+/); $0 = substr($0, 1, RSTART + 5) sprintf("%.3f", substr($0, RSTART + 6, RLENGTH - 6) + 9000) substr($0, RSTART + RLENGTH) } 1' examples/traces/ddp/rank0.json > behind.json; heddle trace summary behind.json | grep '^   0  11 '; heddle trace summary behind.json --steps 11 | sed -n 2p
   0  11     2.011 ms  1.440 ms  521.5 us  40.00 us  9.500 us         0  9.500 us      0  33.1 %     71.6 %
   0  11     2.011 ms  1.440 ms  521.5 us  40.00 us  9.500 us         0  9.500 us      0  33.1 %     71.6 %
$ tar cf traces.tar examples/traces/ddp/rank0.json; heddle trace info traces.tar
error[E0106]: this is an archive of files (tar)
  --> traces.tar
  hint: unpack it: tar xf traces.tar
[1]
## Names that are alike for longer than a column is wide show where they differ; two never print the same.
$ p='void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>'; awk -v p="$p" '/"kernel"/ { n++; sub(/"sgemm_128x128_tn"/, "\"" p (n % 3 ? n % 3 == 1 ? " >(int, at::native::CUDAFunctor_add<c10::BFloat16>)" : ", float>(int)" : "") "\"") } 1' examples/traces/ddp/rank0.json >alike.json; heddle trace summary alike.json | sed -n '/^kernel/,/^$/p'; heddle trace summary alike.json --json | grep -c '"name": "void'; heddle trace diff alike.json alike.json --top 9 | grep void
kernel                                                        kind           count     total   share      mean  shortest   longest
ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsS..  communication      6  3.462 ms  43.8 %  576.9 us  260.0 us  1.040 ms
sgemm_128x128_nt                                              compute            9  2.700 ms  34.2 %  300.0 us  300.0 us  300.0 us
void at::native::vectorized_el..3ul> >(int, at::native::CU..  compute            3  450.0 us   5.7 %  150.0 us  150.0 us  150.0 us
void at::native::vectorized_el..ray<char*, 3ul>, float>(int)  compute            3  450.0 us   5.7 %  150.0 us  150.0 us  150.0 us
void at::native::vectorized_el..t16>, std::array<char*, 3ul>  compute            3  450.0 us   5.7 %  150.0 us  150.0 us  150.0 us
multi_tensor_apply_kernel                                     compute            3  270.0 us   3.4 %  90.00 us  90.00 us  90.00 us
Memcpy HtoD (Pinned -> Device)                                copy               3  120.0 us   1.5 %  40.00 us  40.00 us  40.00 us

3
void at::native::vectorized_el..3ul> >(int, at::native::CU..       1      1  150.0 us    150.0 us       0
void at::native::vectorized_el..ray<char*, 3ul>, float>(int)       1      1  150.0 us    150.0 us       0
void at::native::vectorized_el..t16>, std::array<char*, 3ul>       1      1  150.0 us    150.0 us       0
$ for far in "" "cta_per_row_1<c10::Half, float, c10::Half, 2ul, 32>::"; do awk -v far="$far" '/"kernel"/ { n++; sub(/"sgemm_128x128_t[nt]"/, "\"void split_embedding_backward_codegen_rowwise_adagrad_" (n % 2 ? "un" : "") "weighted_kernel_" far (n % 4 < 2 ? "cta" : "warp") "_per_row_1<c10::Half, float, c10::Half, 2ul, 32>(a::b<float, 2ul, long>)\"") } 1' examples/traces/ddp/rank0.json >alike.json; heddle trace summary alike.json | grep ^void; done
void split_embedding_backward_..unweighted_kernel_warp_per..  compute            3  450.0 us   5.7 %  150.0 us  150.0 us  150.0 us
void split_embedding_backward_..unweighted_kernel_cta_per_..  compute            2  300.0 us   3.8 %  150.0 us  150.0 us  150.0 us
void split_embedding_backward_..weighted_kernel_warp_per_r..  compute            2  300.0 us   3.8 %  150.0 us  150.0 us  150.0 us
void split_embedding_backward_..weighted_kernel_cta_per_ro..  compute            2  300.0 us   3.8 %  150.0 us  150.0 us  150.0 us
void split_embedding_backward_..unweighted_kernel_ct..#1      compute            3  450.0 us   5.7 %  150.0 us  150.0 us  150.0 us
void split_embedding_backward_..unweighted_kernel_ct..#2      compute            2  300.0 us   3.8 %  150.0 us  150.0 us  150.0 us
void split_embedding_backward_..weighted_kernel_cta_..#1      compute            2  300.0 us   3.8 %  150.0 us  150.0 us  150.0 us
void split_embedding_backward_..weighted_kernel_cta_..#2      compute            2  300.0 us   3.8 %  150.0 us  150.0 us  150.0 us
