## What recordings are, and what is missing in them.
$ heddle trace info examples/traces/ddp
rank  file                            format  host  device                 steps  streams  threads  events      span  clock starts at
   0  examples/traces/ddp/rank0.json  Kineto        NVIDIA A100-SXM4-80GB  10-13        2        2     140  9.360 ms  2025-01-01 00:00:00.001000000 UTC
   1  examples/traces/ddp/rank1.json  Kineto        NVIDIA A100-SXM4-80GB  10-13        2        2     140  9.360 ms  2025-01-01 00:00:00.001000000 UTC
$ heddle trace info examples/traces/ddp --json
{
  "files": [
    {"rank": 0, "world_size": 2, "file": "examples/traces/ddp/rank0.json", "format": "Kineto", "bytes": 28830, "host": null, "device": "NVIDIA A100-SXM4-80GB", "steps": "10-13", "streams": 2, "threads": 2, "events": 140, "device_events": 40, "skipped_events": 0, "communications": 8, "span_ps": 9360000000, "clock_base_ns": 1735689600001000000, "clock": "2025-01-01 00:00:00.001000000 UTC", "truncated": false},
    {"rank": 1, "world_size": 2, "file": "examples/traces/ddp/rank1.json", "format": "Kineto", "bytes": 28829, "host": null, "device": "NVIDIA A100-SXM4-80GB", "steps": "10-13", "streams": 2, "threads": 2, "events": 140, "device_events": 40, "skipped_events": 0, "communications": 8, "span_ps": 9360000000, "clock_base_ns": 1735689600001000000, "clock": "2025-01-01 00:00:00.001000000 UTC", "truncated": false}
  ],
  "missing": []
}
## one rank of two
$ heddle trace info examples/traces/ddp/rank1.json
rank  file                            format  host  device                 steps  streams  threads  events      span  clock starts at
   1  examples/traces/ddp/rank1.json  Kineto        NVIDIA A100-SXM4-80GB  10-13        2        2     140  9.360 ms  2025-01-01 00:00:00.001000000 UTC

rank  missing
      1 of 2 ranks: 0
## the same rank twice, a file that was cut off, a rank without a device, another clock
$ mkdir odd; cp examples/traces/ddp/rank0.json odd/a.json; head -c 9000 examples/traces/ddp/rank0.json >odd/b.json; grep -v '"kernel"\|gpu_memcpy' examples/traces/ddp/rank1.json | sed 's/17356896000/17356900000/' >odd/c.json
$ heddle trace info odd
warning[W0102]: the file ends early: 44 events before that are used
  --> odd/b.json
rank  file        format  host  device                 steps  streams  threads  events      span  clock starts at
   0  odd/a.json  Kineto        NVIDIA A100-SXM4-80GB  10-13        2        2     140  9.360 ms  2025-01-01 00:00:00.001000000 UTC
   0  odd/b.json  Kineto        NVIDIA A100-SXM4-80GB  10-11        2        2      44  4.288 ms  2025-01-01 00:00:00.001000000 UTC
   1  odd/c.json  Kineto        NVIDIA A100-SXM4-80GB  10-13        0        2     100  9.360 ms  2025-01-01 00:06:40.001000000 UTC

rank  missing
   0  the rank is there more than once: are these files of one run?
      an instant that all files have recorded: are these files of one run?
   0  the file ends early
   1  no events of a device: was the profiler told to record it?
## two processes wrote one file
$ sed 's/"ph": "X", "cat": "gpu_memcpy"/"ph": "X", "ca{"ph": "X"/' examples/traces/ddp/rank0.json >mixed.json; heddle trace info mixed.json
warning[W0103]: this is not JSON; the trace is read on from the next event
  --> mixed.json: event 5, byte 1076
rank  file        format  host  device                 steps  streams  threads  events      span  clock starts at
   0  mixed.json  Kineto        NVIDIA A100-SXM4-80GB  10-13        2        2     136  9.360 ms  2025-01-01 00:00:00.001000000 UTC

rank  missing
      1 of 2 ranks: 1
   0  4 of 136 events could not be understood or are there twice
## nothing to read
$ heddle trace info nowhere
error[E0101]: cannot open nowhere: No such file or directory
[1]
$ echo '{"schemaVersion": 1, "deviceProperties": []}' >none.json; heddle trace info none.json
error[E0106]: there is no list of events, traceEvents
  --> none.json: event 1, byte 44
[1]
$ echo '{"traceEvents": []}' >empty.json; heddle trace info empty.json
rank  file        format  host  device  steps  streams  threads  events  span  clock starts at
      empty.json  Kineto                             0        0       0     0  of its own

rank  missing
      no events of a device: was the profiler told to record it?
      no steps: nothing says where one begins, such as calls of the profiler's step()
