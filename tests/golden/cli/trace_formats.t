## long: .ci/run has it without sanitizers
## Formats of other profilers. TensorFlow: devices and streams, steps of the host.
$ heddle trace info tests/rare/tensorflow
rank  file                                        format      host  device  steps  streams  threads  events      span  clock starts at
      tests/rare/tensorflow/timeline.json         TensorFlow                             1        1       6  210.0 us  2020-09-13 12:26:40.000500000 UTC
      tests/rare/tensorflow/worker.trace.json.gz  TensorFlow                0-2          4        1      36  2.900 ms  of its own

rank  missing
      the rank of 2 of 2 files: their names may say it, as rank0.json does
      its clock starts with the recording: times of ranks cannot be compared before they are aligned
      no launches: why a device is idle cannot be told
      no steps: nothing says where one begins, such as calls of the profiler's step()
      nothing about the job: how many ranks it has is not known
      no launches: why a device is idle cannot be told
      nothing about the job: how many ranks it has is not known
      the sizes of 6 of 6 communications: bandwidths cannot be told
$ heddle trace summary tests/rare/tensorflow/worker.trace.json.gz
rank  steps      time  computes   exposed    copies      idle  for host   between     other  hidden  computing
      0,1    1.630 ms  600.0 us  500.0 us  60.25 us  469.8 us         0  19.75 us  450.0 us   0.0 %     36.8 %

rank  steps      time  computes   exposed    copies      idle  for host   between     other  hidden  computing
      0      630.0 us  300.0 us  250.0 us  30.12 us  49.88 us         0  9.875 us  40.00 us   0.0 %     47.6 %
      1      630.0 us  300.0 us  250.0 us  30.12 us  49.88 us         0  9.875 us  40.00 us   0.0 %     47.6 %

rank  communication  count      runs   exposed
      all_reduce         4  900.0 us  500.0 us

rank  device  stream  events      busy  for host  between     other  queue  median  longest
           0      20       2  60.25 us         0        0  969.9 us
           0      13       4  1.000 ms         0        0  540.0 us
           1      20       2  60.25 us         0        0  969.9 us
           1      13       4  1.100 ms         0        0  490.0 us

kernel                                                kind           count     total   share      mean  shortest   longest
volta_sgemm_128x64_nn                                 compute            4  1.200 ms  54.0 %  300.0 us  300.0 us  300.0 us
ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)  communication      4  900.0 us  40.5 %  225.0 us  200.0 us  250.0 us
MemcpyH2D                                             copy               4  120.5 us   5.4 %  30.12 us  30.12 us  30.12 us

operation   group  type  size  count  shortest    median  algorithm  bus  median bus
all_reduce         f32             4  200.0 us  250.0 us
$ heddle trace convert tests/rare/tensorflow/worker.trace.json.gz --to chrome -o tf.json; heddle trace info tf.json
file       tf.json
processes  1
events     36
arrows     0
rank  file     format  host  device  steps  streams  threads  events      span  clock starts at
      tf.json  Kineto                             4        1      36  2.900 ms  of its own

rank  missing
      no launches: why a device is idle cannot be told
      no steps: nothing says where one begins, such as calls of the profiler's step()
      nothing about the job: how many ranks it has is not known
      the sizes of 6 of 6 communications: bandwidths cannot be told
## MXNet: operators of devices.
$ heddle trace info tests/rare/mxnet/profile.json
rank  file                           format  host  device  steps  streams  threads  events      span  clock starts at
      tests/rare/mxnet/profile.json  MXNet                              2        1      54  3.950 ms  2018-04-10 22:34:28.368495000 UTC

rank  missing
      no launches: why a device is idle cannot be told
      no steps: nothing says where one begins, such as calls of the profiler's step()
      nothing about the job: how many ranks it has is not known
$ heddle trace summary tests/rare/mxnet/profile.json
rank  steps      time  computes  exposed    copies      idle  for host   between     other  hidden  computing
             3.590 ms  2.080 ms        0  200.0 us  1.310 ms         0  80.00 us  1.230 ms             57.9 %

rank  device                     stream  events      busy  for host   between     other  queue  median  longest
           0  3,005,078,972,234,936,124      12  2.280 ms         0  80.00 us  1.230 ms
           1  3,005,078,972,234,936,125      12  2.280 ms         0  80.00 us  1.230 ms

kernel                kind     count     total   share      mean  shortest   longest
Convolution           compute      8  3.200 ms  70.2 %  400.0 us  400.0 us  400.0 us
[Activation,Pooling]  compute      8  960.0 us  21.1 %  120.0 us  120.0 us  120.0 us
CopyCPU2GPU           copy         8  400.0 us   8.8 %  50.00 us  50.00 us  50.00 us
## BytePS: the queues of tensors; only the root of a worker's GPUs pushes and pulls; a server's requests
$ heddle trace info tests/rare/byteps/0/comm.json tests/rare/byteps/1/comm.json tests/rare/byteps/server_profile.json
rank  file                                   format  host  device  steps  streams  threads  events      span  clock starts at
   0  tests/rare/byteps/0/comm.json          BytePS                             2        0       8  8.000 ms  2019-11-25 12:46:24.662375000 UTC
   1  tests/rare/byteps/1/comm.json          BytePS                             6        4      32  8.000 ms  2019-11-25 12:46:24.662375000 UTC
      tests/rare/byteps/server_profile.json  BytePS                             0        1       3  189.0 us  2019-09-24 13:33:19.234742000 UTC

rank  missing
      the rank of 1 of 3 files: their names may say it, as rank0.json does
      an instant that all files have recorded: are these files of one run?
   0  no launches: why a device is idle cannot be told
   0  no steps: nothing says where one begins, such as calls of the profiler's step()
   0  nothing about the job: how many ranks it has is not known
   0  the sizes of 6 of 6 communications: bandwidths cannot be told
   1  no launches: why a device is idle cannot be told
   1  no steps: nothing says where one begins, such as calls of the profiler's step()
   1  nothing about the job: how many ranks it has is not known
   1  the sizes of 12 of 12 communications: bandwidths cannot be told
      no events of a device: was the profiler told to record it?
      no steps: nothing says where one begins, such as calls of the profiler's step()
$ heddle trace summary tests/rare/byteps/0/comm.json tests/rare/byteps/1/comm.json --top 4
rank  steps      time  computes   exposed    copies      idle  for host   between     other  hidden  computing
   0         5.270 ms         0  580.0 us         0  4.690 ms         0         0  4.690 ms   0.0 %      0.0 %
   1         6.420 ms         0  2.660 ms  110.0 us  3.650 ms         0  20.00 us  3.630 ms   0.0 %      0.0 %

rank  communication  count      runs   exposed
   0  broadcast          3  360.0 us  280.0 us
   0  reduce             3  450.0 us  300.0 us
   1  broadcast          3  360.0 us  280.0 us
   1  reduce             3  450.0 us  340.0 us
   1  send               3  1.200 ms  840.0 us
   1  recv               3  1.800 ms  1.200 ms

rank  device  stream  events      busy  for host   between     other  queue  median  longest
   0       0       1       3  340.0 us         0         0  4.810 ms
   0       0      11       3  280.0 us         0         0  4.840 ms
   1       0       1       3  340.0 us         0         0  4.810 ms
   1       0       2       3  90.00 us         0  10.00 us  4.930 ms
   1       0       6       3  840.0 us         0         0  4.560 ms
   1       0       7       3  1.240 ms         0         0  4.360 ms
   1       0       9       3  90.00 us         0  10.00 us  4.930 ms
   1       0      11       3  280.0 us         0         0  4.840 ms

kernel                         kind           count     total   share      mean  shortest   longest
Comm.byteps.gradient_1.PULL    communication      2  1.200 ms  25.0 %  600.0 us  600.0 us  600.0 us
Comm.byteps.gradient_1.PUSH    communication      2  800.0 us  16.7 %  400.0 us  400.0 us  400.0 us
Comm.byteps.gradient_1.REDUCE  communication      4  600.0 us  12.5 %  150.0 us  150.0 us  150.0 us
Comm.byteps.gradient_0.PULL    communication      1  600.0 us  12.5 %  600.0 us  600.0 us  600.0 us
... and 8 more

operation  group  type  size  count  shortest    median  algorithm  bus  median bus
recv                              3  600.0 us  600.0 us
send                              3  400.0 us  400.0 us
reduce                            6  150.0 us  150.0 us
broadcast                         6  120.0 us  120.0 us
$ heddle trace summary tests/rare/byteps/server_profile.json
error[E0106]: no events of a device in tests/rare/byteps/server_profile.json
  hint: heddle trace info tests/rare/byteps/server_profile.json
[1]
## dPRO: several workers in a file, one in a file, messages alone
$ heddle trace info tests/rare/gtrace/bps_trace_final.json tests/rare/gtrace/comm_timeline.json
rank  file                                    format  host                  device  steps  streams  threads  events      span  clock starts at
   0  tests/rare/gtrace/bps_trace_final.json  gTrace  host0                                     12        8     180  44.27 ms  2021-02-03 09:47:58.000000000 UTC
      tests/rare/gtrace/comm_timeline.json    gTrace  worker_0 -> server_1                       2        0      16  3.450 ms  2021-02-03 09:47:58.000000000 UTC

rank  missing
   0  no launches: why a device is idle cannot be told
   0  no steps: nothing says where one begins, such as calls of the profiler's step()
   0  the sizes of 84 of 84 communications: bandwidths cannot be told
      no launches: why a device is idle cannot be told
      no steps: nothing says where one begins, such as calls of the profiler's step()
      the sizes of 16 of 16 communications: bandwidths cannot be told
$ heddle trace summary tests/rare/gtrace/bps_trace_final.json --steps 1
rank  steps      time  computes   exposed    copies      idle  for host   between     other  hidden  computing
   0  1      4.100 ms  2.890 ms  800.0 us  40.00 us  370.0 us         0  20.00 us  350.0 us   0.0 %     70.5 %
   1  1      4.100 ms  2.890 ms  800.0 us  40.00 us  370.0 us         0  20.00 us  350.0 us   0.0 %     70.5 %
   2  1      4.100 ms  2.890 ms  800.0 us  40.00 us  370.0 us         0  20.00 us  350.0 us   0.0 %     70.5 %
   3  1      4.100 ms  2.890 ms  800.0 us  40.00 us  370.0 us         0  20.00 us  350.0 us   0.0 %     70.5 %

rank  communication  count      runs   exposed
   0  all_reduce         1  800.0 us  800.0 us
   0  send               3  240.0 us         0
   0  recv               3  240.0 us         0
   1  all_reduce         1  800.0 us  800.0 us
   1  send               3  240.0 us         0
   1  recv               3  240.0 us         0
   2  all_reduce         1  800.0 us  800.0 us
   2  send               3  240.0 us         0
   2  recv               3  240.0 us         0
   3  all_reduce         1  800.0 us  800.0 us
   3  send               3  240.0 us         0
   3  recv               3  240.0 us         0

rank  device  stream  events      busy  for host   between     other  queue  median  longest
   0       0       0       2  840.0 us         0  10.00 us         0
   0       0       2       6  480.0 us         0  30.00 us  60.00 us
   0       0       3       5  2.890 ms         0  10.00 us  1.200 ms
   1       1       0       2  840.0 us         0  10.00 us         0
   1       1       2       6  480.0 us         0  30.00 us  60.00 us
   1       1       3       5  2.890 ms         0  10.00 us  1.200 ms
   2       0       0       2  840.0 us         0  10.00 us         0
   2       0       2       6  480.0 us         0  30.00 us  60.00 us
   2       0       3       5  2.890 ms         0  10.00 us  1.200 ms
   3       1       0       2  840.0 us         0  10.00 us         0
   3       1       2       6  480.0 us         0  30.00 us  60.00 us
   3       1       3       5  2.890 ms         0  10.00 us  1.200 ms

kernel                            kind           count     total   share      mean  shortest   longest
BW.conv0                          compute            4  6.800 ms  40.4 %  1.700 ms  1.700 ms  1.700 ms
FW.conv0                          compute            4  3.600 ms  21.4 %  900.0 us  900.0 us  900.0 us
Comm.3+4.NCCL_ALLREDUCE           communication      4  3.200 ms  19.0 %  800.0 us  800.0 us  800.0 us
Comm.3+4.SEND                     communication     12  960.0 us   5.7 %  80.00 us  80.00 us  80.00 us
Comm.3+4.RECV                     communication     12  960.0 us   5.7 %  80.00 us  80.00 us  80.00 us
UPDATE_0                          compute            4  840.0 us   5.0 %  210.0 us  210.0 us  210.0 us
OUTPUT0                           compute            4  200.0 us   1.2 %  50.00 us  50.00 us  50.00 us
Comm.3+4.MEMCPY_IN_FUSION_BUFFER  copy               4  160.0 us   1.0 %  40.00 us  40.00 us  40.00 us
UPDATE_CAL                        compute            4  120.0 us   0.7 %  30.00 us  30.00 us  30.00 us

operation   group  type  size  count  shortest    median  algorithm  bus  median bus
all_reduce      4                  4  800.0 us  800.0 us
send                              12  80.00 us  80.00 us
recv                              12  80.00 us  80.00 us
$ heddle trace info tests/rare/gtrace/worker1.json.gz
rank  file                               format  host   device  steps  streams  threads  events      span  clock starts at
   1  tests/rare/gtrace/worker1.json.gz  gTrace  host0                       3        2      45  44.25 ms  2021-02-03 09:47:58.000007000 UTC

rank  missing
   1  no launches: why a device is idle cannot be told
   1  no steps: nothing says where one begins, such as calls of the profiler's step()
   1  nothing about the job: how many ranks it has is not known
   1  the sizes of 21 of 21 communications: bandwidths cannot be told
$ heddle trace convert tests/rare/gtrace/bps_trace_final.json --to chrome -o all.json
file       all.json
processes  4
events     180
arrows     9
## Two workers: their messages by dPRO's ids say how far their clocks are apart; answers and duplicates without another end are told
$ heddle trace align tests/rare/gtrace/pair.json --set clocks=process | head -n 12
processes    6
clocks       6
collectives  0
messages     16
method       floors
form         offsets
slack        30.00 us
violated     8 of 16 as recorded (by up to 4.970 ms), 0 once aligned

                       rank  tied     offset  drift ppm    +-   at least    at most  used
                          0     0          0                                           16
                          1     0  +5.000 ms             3 ps  +4.970 ms  +5.030 ms    16
$ sed 's/worker_1::server_0/worker_9::server_0/g' tests/rare/gtrace/pair.json > orphans.json; heddle trace info orphans.json > log; head -n 3 log
warning[W0103]: of 64 messages 16 have no other end here and 0 are there twice: what they wait for is not known
  --> orphans.json
rank  file          format  host   device  steps  streams  threads  events      span  clock starts at
   0  orphans.json  gTrace  host0                       8        0      72  66.33 ms  2021-02-03 09:47:58.000000000 UTC

## Four workers in a ring, which NCCL's graphs beside the files say: in one file, and in one each
$ heddle trace align tests/rare/gtrace/ring/bps_trace_final.json --set clocks=process
processes    4
clocks       4
collectives  0
messages     144
method       floors
form         offsets
slack        5.000 us
violated     72 of 144 as recorded (by up to 2.995 ms), 0 once aligned

rank     offset  drift ppm    +-   at least    at most  used
   0          0                                           72
   1          0             3 ps  -10.00 us  +10.00 us    72
   2  +3.000 ms             3 ps  +2.985 ms  +3.005 ms    72
   3  +3.000 ms             3 ps  +2.995 ms  +3.015 ms    72

from  to  by             at      takes
   0   2  message  510.0 us  +5.000 us
   2   1  message  510.0 us  +5.000 us
   1   3  message  510.0 us  +5.000 us
   3   0  message  510.0 us  +5.000 us
$ heddle trace align tests/rare/gtrace/ring/host*/*/comm_detail.json --set clocks=process | head -n 14
processes    4
clocks       4
collectives  0
messages     144
method       floors
form         offsets
slack        5.000 us
violated     72 of 144 as recorded (by up to 2.995 ms), 0 once aligned

rank     offset  drift ppm    +-   at least    at most  used
   0          0                                           72
   1          0             4 ps  -10.00 us  +10.00 us    72
   2  +3.000 ms             4 ps  +2.985 ms  +3.005 ms    72
   3  +3.000 ms             4 ps  +2.995 ms  +3.015 ms    72
## operators and messages are replayed; with the sizes of tensors a ring can be optimized
$ heddle trace replay tests/rare/gtrace/ring/bps_trace_final.json
recorded              11.80 ms
replayed              11.80 ms
workers               4
operators             48
messages              144
error of their ends   4.427 us
  99 of 100 below     14.50 us
  largest             14.50 us
between operators     0
between steps         3.200 ms
operator to message   9.500 us
message to message    21.00 us
message to operator   185.0 us
path: operators       4.050 ms
path: messages        450.0 us
path: gaps            7.298 ms
clocks were apart by  3.000 ms

from  to  count      busy  on the path
   0         12  3.600 ms     200.0 us
   1         12  3.750 ms            0
   2         12  3.900 ms            0
   3         12  4.050 ms     3.850 ms
   0   2     36  1.170 ms     75.00 us
   1   3     36  1.170 ms     150.0 us
   3   0     36  1.170 ms     100.0 us
   2   1     36  1.170 ms     125.0 us
$ heddle trace replay tests/rare/gtrace/ring/bps_trace_final.json --steps 1 --json
{
  "recorded_ps": 1800000000,
  "replayed_ps": 1799500000,
  "workers": 4,
  "operations": 16,
  "messages": 48,
  "error_ps": 3781250,
  "error99_ps": 9500000,
  "error_most_ps": 9500000,
  "operators_ps": 0,
  "step_ps": 0,
  "to_link_ps": 9500000,
  "link_ps": 21000000,
  "from_link_ps": 185000000,
  "path_begin_ps": 0,
  "path_device_ps": 1350000000,
  "path_transfer_ps": 150000000,
  "path_latency_ps": 299500000,
  "clocks_corrected_ps": 3000000000,
  "queues": [
    {"from": 0, "to": null, "count": 4, "busy_ps": 1200000000, "path_ps": 200000000},
    {"from": 1, "to": null, "count": 4, "busy_ps": 1250000000, "path_ps": 0},
    {"from": 2, "to": null, "count": 4, "busy_ps": 1300000000, "path_ps": 0},
    {"from": 3, "to": null, "count": 4, "busy_ps": 1350000000, "path_ps": 1150000000},
    {"from": 0, "to": 2, "count": 12, "busy_ps": 390000000, "path_ps": 25000000},
    {"from": 1, "to": 3, "count": 12, "busy_ps": 390000000, "path_ps": 50000000},
    {"from": 3, "to": 0, "count": 12, "busy_ps": 390000000, "path_ps": 50000000},
    {"from": 2, "to": 1, "count": 12, "busy_ps": 390000000, "path_ps": 25000000}
  ]
}
$ heddle trace optimize tests/rare/gtrace/ring/bps_trace_final.json | head -n 20
rank             3
step             1
workers          4
recorded         1.800 ms
device alone     1.821 ms
kernels          4
all-reduces      2
  start          9.500 us
  bandwidth      17.5 GB/s
  error of both  0

plan                  step     change  faster  what it does
found             1.821 ms          0   1.00x  best
as recorded       1.821 ms          0   1.00x  buckets of the recording
as it is          1.821 ms          0   1.00x  every gradient alone, no fusion
fuse all          1.821 ms          0   1.00x  XLA: all operations of a phase that may, every gradient alone
one bucket        2.001 ms  +180.0 us   0.91x  all gradients together, after the backward
PyTorch DDP       1.821 ms          0   1.00x  buckets of 25 MiB, the first of 1 MiB
Horovod           5.851 ms  +4.030 ms   0.31x  what is there every 5 ms, up to 64 MiB
Horovod Autotune  2.671 ms  +850.0 us   0.68x  Horovod with the best of its cycle times and sizes
$ heddle trace replay tests/rare/gtrace/servers.json
recorded             9.700 ms
replayed             9.730 ms
workers              2
operators            24
messages             48
error of their ends  11.48 us
  99 of 100 below    29.62 us
  largest            29.62 us
between operators    5.000 us
between steps        2.300 ms
operator to message  9.500 us
message to message   5.125 us
message to operator  55.00 us
path: operators      3.600 ms
path: messages       1.260 ms
path: gaps           4.870 ms

              from  to  count      busy  on the path
                 0         12  3.300 ms            0
                 1         12  3.600 ms     3.600 ms
worker_0::server_0         12  1.260 ms            0
worker_1::server_0         12  1.260 ms     630.0 us
server_0::worker_0         12  1.260 ms            0
server_0::worker_1         12  1.260 ms     630.0 us
## A message of a server that is there twice, a microsecond apart: it is no ring, so nothing is said of rings.
$ mkdir -p s; sed 's/{"name": "Comm.g1.PUSH_RES", "ts": 1612345678000920\([^}]*}}\)/&, {"name": "Comm.g1.PUSH_RES", "ts": 1612345678000921\1/' tests/rare/gtrace/servers.json > s/twice.json; heddle trace replay s/twice.json
warning[W0103]: of 49 messages 0 have no other end here and 1 are there twice: what they wait for is not known
  --> s/twice.json
error[E0106]: of 49 ends of messages 1 has no other end, such as Comm.g1.PUSH_RES of tensor g1: it was not recorded, or is there twice
  --> s/twice.json
  hint: a recording of workers and servers from the same steps has both ends of every message
[1]
$ heddle trace optimize tests/rare/gtrace/servers.json
error[E0106]: its messages go to servers: how many bytes a request has is not said
  --> tests/rare/gtrace/servers.json
  hint: `heddle trace replay` replays it; rings can be optimized
[1]
$ for f in pair bps_trace_final comm_timeline; do heddle trace replay tests/rare/gtrace/$f.json; done
error[E0106]: it has messages of rings and of servers: which operators wait for which is not known
  --> tests/rare/gtrace/pair.json
  hint: a job has one of both
error[E0106]: of 72 ends of messages 72 have no other end, such as Comm.3+4.SEND of tensor 3+4: who is next in a ring is not said, or they were not recorded
  --> tests/rare/gtrace/bps_trace_final.json
  hint: nccl_rank_graph.json of every worker in HOST/GPU/ beside the file says who is next
error[E0106]: it has messages alone: without operators nothing says what waits for them
  --> tests/rare/gtrace/comm_timeline.json
  hint: bps_trace_final.json of all workers has both
[1]
$ grep -v NOTHING tests/rare/gtrace/ring/bps_trace_final.json > unsized.json; cp -r tests/rare/gtrace/ring/host* .; rm host0/0/gradient_name_list.json; heddle trace optimize unsized.json
error[E0106]: the size of tensor 4 is not known: what fusing or cutting it brings cannot be said
  --> unsized.json
  hint: gradient_name_list.json with shapes, in HOST/GPU/ of the first worker beside the file, says sizes
[1]
$ echo '{"gradient_name_list": [' > host0/0/gradient_name_list.json; heddle trace info unsized.json
error[E0103]: the text ends where a value is expected
  --> host0/0/gradient_name_list.json:2:1
   2 |
     | ^
[1]
## a graph that cannot be used is told, and one that is no JSON refused
$ cp -r tests/rare/gtrace/ring odd; sed -i 's/RealRing/Star/' odd/host1/0/nccl_rank_graph.json; heddle trace align odd/bps_trace_final.json
warning[W0103]: it does not say which rank is next in NCCL's rings: messages are not tied by it
  --> odd/host1/0/nccl_rank_graph.json
error[E0106]: no communication is in the traces of more than one of 4 processes
  hint: name traces of the same steps; `heddle trace info` says what they have
[1]
$ cp odd/host0/1/nccl_rank_graph.json odd/host1/0/nccl_rank_graph.json; heddle trace align odd/bps_trace_final.json
warning[W0103]: it is the graph of rank 1, which is not the rank of its worker: messages are not tied by it
  --> odd/host1/0/nccl_rank_graph.json
error[E0106]: no communication is in the traces of more than one of 4 processes
  hint: name traces of the same steps; `heddle trace info` says what they have
[1]
$ echo '{' > odd/host1/0/nccl_rank_graph.json; heddle trace align odd/bps_trace_final.json
error[E0103]: the text ends where a string is expected
  --> odd/host1/0/nccl_rank_graph.json:2:1
   2 |
     | ^
[1]
## NCCL Inspector: a file of each process; collectives of two ranks are matched by their numbers
$ mkdir nccl; cp tests/rare/inspector/*.log nccl; heddle trace info nccl
rank  file                    format          host   device  steps  streams  threads  events      span  clock starts at
   0  nccl/node0-pid4242.log  NCCL Inspector  node0                       1        0       7  12.54 ms  2025-07-18 19:33:49.235000000 UTC
   1  nccl/node0-pid4243.log  NCCL Inspector  node0                       1        0       7  12.54 ms  2025-07-18 19:33:49.235000000 UTC

rank  missing
   0  no launches: why a device is idle cannot be told
   0  no steps: nothing says where one begins, such as calls of the profiler's step()
   1  no launches: why a device is idle cannot be told
   1  no steps: nothing says where one begins, such as calls of the profiler's step()
$ heddle trace summary nccl
rank  steps      time  computes   exposed  copies      idle  for host  between     other  hidden  computing
   0         12.54 ms         0  5.140 ms       0  7.400 ms         0        0  7.400 ms   0.0 %      0.0 %
   1         12.54 ms         0  5.440 ms       0  7.100 ms         0        0  7.100 ms   0.0 %      0.0 %

rank  communication   count      runs   exposed
   0  all_reduce          3  2.400 ms  2.400 ms
   0  reduce_scatter      3  2.700 ms  2.700 ms
   0  send                1  40.00 us  40.00 us
   1  all_reduce          3  2.700 ms  2.700 ms
   1  reduce_scatter      3  2.700 ms  2.700 ms
   1  recv                1  40.00 us  40.00 us

rank  device  stream  events      busy  for host  between     other  queue  median  longest
   0       0       0       7  5.140 ms         0        0  7.400 ms
   1       0       0       7  5.440 ms         0        0  7.100 ms

kernel              kind           count     total   share      mean  shortest   longest
nccl:ReduceScatter  communication      6  5.400 ms  51.0 %  900.0 us  900.0 us  900.0 us
nccl:AllReduce      communication      6  5.100 ms  48.2 %  850.0 us  600.0 us  900.0 us
nccl:Send           communication      1  40.00 us   0.4 %  40.00 us  40.00 us  40.00 us
nccl:Recv           communication      1  40.00 us   0.4 %  40.00 us  40.00 us  40.00 us

operation       group  type      size  count  shortest    median  algorithm        bus  median bus
reduce_scatter      2        64.0 MiB      6  900.0 us  900.0 us  74.6 GB/s  37.3 GB/s   37.3 GB/s
all_reduce          2        64.0 MiB      6  600.0 us  900.0 us   112 GB/s   112 GB/s   74.6 GB/s
send                2        64.0 KiB      1  40.00 us  40.00 us  1.64 GB/s  1.64 GB/s   1.64 GB/s
recv                2        64.0 KiB      1  40.00 us  40.00 us  1.64 GB/s  1.64 GB/s   1.64 GB/s
$ heddle trace align nccl
processes    2
clocks       1
collectives  6
messages     1
method       floors
form         offsets
ends apart   1.000 ns
slack
violated     0 of 7 as recorded (by up to 0), 0 once aligned

rank  offset  drift ppm  +-  at least  at most  used
   0       0                                       7
   1       0              0         0        0     7
## without starts
$ heddle trace info tests/rare/inspector/untimed.jsonl.gz
warning[W0101]: records have no starts: communications are laid one after the other, and ranks cannot be compared in time
  --> tests/rare/inspector/untimed.jsonl.gz
  hint: record with NCCL_INSPECTOR_DUMP_VERBOSE=1
warning[W0101]: 5 communications are missing: the profiler has dropped them
  --> tests/rare/inspector/untimed.jsonl.gz
rank  file                                   format          host   device  steps  streams  threads  events      span  clock starts at
   3  tests/rare/inspector/untimed.jsonl.gz  NCCL Inspector  node1                       2        0       3  213.0 us  of its own

rank  missing
      7 of 8 ranks: 0-2,4-7
   3  no launches: why a device is idle cannot be told
   3  no steps: nothing says where one begins, such as calls of the profiler's step()
## none of these has launches: replays need them
$ for f in tensorflow/worker.trace.json.gz mxnet/profile.json byteps/1/comm.json gtrace/worker1.json.gz inspector/node0-pid4242.log; do heddle trace replay tests/rare/$f; done
error[E0106]: no operation on a device whose launch is in the trace
  hint: record activities of the device and of the host, such as CPU and CUDA of PyTorch's profiler
error[E0106]: no operation on a device whose launch is in the trace
  hint: record activities of the device and of the host, such as CPU and CUDA of PyTorch's profiler
error[E0106]: BytePS's own traces do not say which server has a tensor: what waits for what is not known
  --> tests/rare/byteps/1/comm.json
  hint: bps_trace_final.json, in which dPRO joins workers and servers, can be replayed
error[E0106]: of 18 ends of messages 18 have no other end, such as Comm.3+4.SEND of tensor 3+4: who is next in a ring is not said, or they were not recorded
  --> tests/rare/gtrace/worker1.json.gz
  hint: nccl_rank_graph.json of every worker in HOST/GPU/ beside the file says who is next
error[E0106]: no operation on a device whose launch is in the trace
  hint: record activities of the device and of the host, such as CPU and CUDA of PyTorch's profiler
[1]
$ heddle trace whatif nccl --set 'host = 0'
error[E0106]: no operation on a device whose launch is in the trace
  hint: record activities of the device and of the host, such as CPU and CUDA of PyTorch's profiler
[1]
## cut off, not JSON from some place on, nothing in it
$ head -c 9000 tests/rare/byteps/1/comm.json >cut.json; heddle trace info cut.json
warning[W0102]: the file ends early: 26 events before that are used
  --> cut.json
rank  file      format  host  device  steps  streams  threads  events      span  clock starts at
      cut.json  BytePS                             6        4      26  8.000 ms  2019-11-25 12:46:24.662375000 UTC

rank  missing
      the file ends early
      no launches: why a device is idle cannot be told
      no steps: nothing says where one begins, such as calls of the profiler's step()
      nothing about the job: how many ranks it has is not known
      the sizes of 9 of 9 communications: bandwidths cannot be told
$ gzip -dc tests/rare/tensorflow/worker.trace.json.gz | sed 's/"MatMul", "ph":/"MatMul", "ph" oh/' >odd.json; heddle trace info odd.json
warning[W0103]: this is not JSON; the trace is read on from the next event
  --> odd.json: event 2, byte 1311
rank  file      format      host  device  steps  streams  threads  events      span  clock starts at
      odd.json  TensorFlow                0-2          4        1      35  2.900 ms  of its own

rank  missing
      2 of 35 events could not be understood or are there twice
      no launches: why a device is idle cannot be told
      nothing about the job: how many ranks it has is not known
      the sizes of 6 of 6 communications: bandwidths cannot be told
$ head -c 5000 nccl/node0-pid4243.log >cut.log; heddle trace info cut.log
warning[W0102]: the file ends early: 5 events before that are used
  --> cut.log
rank  file     format          host   device  steps  streams  threads  events      span  clock starts at
   1  cut.log  NCCL Inspector  node0                       1        0       5  8.900 ms  2025-07-18 19:33:49.235000000 UTC

rank  missing
      1 of 2 ranks: 0
   1  the file ends early
   1  no launches: why a device is idle cannot be told
   1  no steps: nothing says where one begins, such as calls of the profiler's step()
$ echo '{"traceEvents": [], "x": "/host:CPU", "name": "/host:CPU"}' >empty.json; heddle trace info empty.json
rank  file        format      host  device  steps  streams  threads  events  span  clock starts at
      empty.json  TensorFlow                             0        0       0     0  of its own

rank  missing
      no events of a device: was the profiler told to record it?
      no steps: nothing says where one begins, such as calls of the profiler's step()
$ echo '{"dump_stats": 3' >short.log; heddle trace info short.log
error[E0106]: there is no record of a communication
  --> short.log: byte 17
[1]
$ printf '{"name": "cpu/0", "traceEvents": 3}' >none.json; heddle trace info none.json
error[E0106]: there is no list of events, traceEvents
  --> none.json: event 1, byte 35
[1]
## cut off behind a key
$ printf '{"traceEvents":[{"cat":' >cut.json; heddle trace info cut.json 2>&1 | head -n 1
warning[W0102]: the file ends early: 0 events before that are used
