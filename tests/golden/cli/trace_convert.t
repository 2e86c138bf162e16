## long: .ci/run has it without sanitizers
## All ranks as one timeline. What is written of one rank is read again with the same answers.
$ heddle trace convert examples/traces/ddp --to chrome -o all.json
file       all.json
processes  2
events     280
arrows     8
$ grep -c '"ph":"X"' all.json; grep '"cat":"meet"' all.json | head -2; grep nccl all.json | head -1; tail -1 all.json
280
{"ph":"s","id":1,"cat":"meet","name":"meet","pid":0,"tid":3,"ts":86400001923.25},
{"ph":"f","bp":"e","id":1,"cat":"meet","name":"meet","pid":1,"tid":3,"ts":86400001923.25},
{"ph":"X","cat":"communication","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)","pid":0,"tid":3,"ts":86400001923.25,"dur":260,"args":{ "launch":15,"op":"all_reduce","group":"0","members":"0,1","type":"f32","size":2,"seq":1,"bytes":16000000,"in":4000000,"out":4000000}},
],"baseTimeNanoseconds":1735603200000000000}
$ heddle trace convert examples/traces/ddp/rank1.json -o one.json --json
{
  "output": "one.json",
  "processes": 1,
  "events": 140,
  "clocks_corrected_ps": 0,
  "arrows": 0
}
$ heddle trace summary one.json >a; heddle trace summary examples/traces/ddp/rank1.json | cmp - a && tail -1 one.json
],"baseTimeNanoseconds":1735603200000000000,"distributedInfo":{"rank":1,"world_size":2}}
## Several ranks are read again as the ranks that they were.
$ for q in summary replay blame 'summary --steps 11' 'whatif --set host=0'; do heddle trace ${q%% *} all.json $(echo "$q" | cut -s -d' ' -f2-) >a; heddle trace ${q%% *} examples/traces/ddp $(echo "$q" | cut -s -d' ' -f2-) | cmp - a && wc -l <a; done; heddle trace info all.json 2>&1 | sed -n 1,3p
32
25
15
24
7
rank  file      format  host  device                 steps  streams  threads  events      span  clock starts at
   0  all.json  Heddle        NVIDIA A100-SXM4-80GB  10-13        4        4     280  9.360 ms  2024-12-31 00:00:00.000000000 UTC
$ heddle trace convert all.json --to chrome -o again.json >a; heddle trace summary again.json >a; heddle trace summary examples/traces/ddp | cmp - a
## wrong
$ heddle trace convert examples/traces/ddp --to chrome
error[E0801]: no file to write was named
  hint: -o trace.json
[2]
$ heddle trace convert examples/traces/ddp --to nsys -o all.json
error[E0801]: traces are not converted to 'nsys'
  hint: --to chrome, heddle or chakra
[2]
$ echo '{"traceEvents": 3}' >bad.json; heddle trace convert bad.json -o none.json; ls none.json
error[E0106]: there is no list of events, traceEvents
  --> bad.json: event 1, byte 18
ls: cannot access 'none.json': No such file or directory
[2]
## of different years
$ mkdir years; cp examples/traces/ddp/rank0.json years; sed 's/"baseTimeNanoseconds": 17/"baseTimeNanoseconds": 15/' examples/traces/ddp/rank1.json >years/rank1.json; heddle trace convert years -o none.json; ls none.json
error[E0106]: its clock starts 2313 days from that of the first file: these are not of one run
  --> years/rank1.json
  hint: heddle trace info years/rank1.json
ls: cannot access 'none.json': No such file or directory
[2]
## arrows from every send to its receive
$ heddle sim mlp-xs:layers=2 --batch 16 --strategy 'pp=2 mb=2' --machine dgx-2 --timeline pipe.json >sim.txt; heddle trace convert pipe.json --to chrome -o arrows.json; grep '"cat":"meet"' arrows.json
file       arrows.json
processes  2
events     16
arrows     2
{"ph":"s","id":1,"cat":"meet","name":"meet","pid":0,"tid":1,"ts":13.170412},
{"ph":"f","bp":"e","id":1,"cat":"meet","name":"meet","pid":1,"tid":3,"ts":13.170412},
{"ph":"s","id":2,"cat":"meet","name":"meet","pid":0,"tid":1,"ts":26.340824},
{"ph":"f","bp":"e","id":2,"cat":"meet","name":"meet","pid":1,"tid":3,"ts":26.340824}
## clocks of hosts that are apart are put on one
$ mkdir far; cp examples/traces/ddp/rank0.json far; sed 's/"baseTimeNanoseconds": 1735689600000/"baseTimeNanoseconds": 1735689600005/' examples/traces/ddp/rank1.json >far/rank1.json; heddle trace convert far -o near.json; grep '"cat":"meet"' near.json | head -2
file       near.json
processes  2
events     280
clocks     of hosts are up to 5.000 ms apart: put on that of the first
arrows     8
{"ph":"s","id":1,"cat":"meet","name":"meet","pid":1,"tid":3,"ts":86400001922.75},
{"ph":"f","bp":"e","id":1,"cat":"meet","name":"meet","pid":0,"tid":3,"ts":86400001923.25},
## to Heddle's own timelines, and back with the same answers
$ heddle trace convert examples/traces/ddp --to heddle -o own.json; head -4 own.json; grep nccl own.json | head -1
file       own.json
processes  2
events     280
arrows     8
{"displayTimeUnit":"ms","schema":"heddle timeline 1","traceEvents":[
{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"rank 0","rank":0,"dated":1,"world":2,"device":"NVIDIA A100-SXM4-80GB"}},
{"ph":"M","name":"process_sort_index","pid":0,"tid":0,"args":{"sort_index":0}},
{"ph":"M","name":"thread_name","pid":0,"tid":0,"args":{"name":"python","thread":4000}},
{"ph":"X","cat":"communication","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)","pid":0,"tid":3,"ts":86400001923.25,"dur":260,"args":{ "launch":15,"op":"all_reduce","group":"0","members":"0,1","type":"f32","size":2,"seq":1,"bytes":16000000,"in":4000000,"out":4000000}},
$ heddle trace summary own.json >a; heddle trace summary examples/traces/ddp | cmp - a; heddle trace replay own.json >a; heddle trace replay examples/traces/ddp | cmp - a; heddle trace info own.json | head -3
rank  file      format  host  device                 steps  streams  threads  events      span  clock starts at
   0  own.json  Heddle        NVIDIA A100-SXM4-80GB  10-13        4        4     280  9.360 ms  2024-12-31 00:00:00.000000000 UTC
## A kernel whose name is empty is kept.
$ mkdir bare; for r in 0 1; do sed 's/"sgemm_128x128_nt"/""/' examples/traces/ddp/rank$r.json >bare/rank$r.json; done; heddle trace convert bare --to heddle -o bare.json >a; heddle trace blame bare >a; heddle trace blame bare.json | cmp - a
## to Chakra: a file for every rank
$ heddle trace convert examples/traces/ddp --to chakra -o job --json; ls job.*; heddle trace info job.0.et | head -2
{
  "output": "job.RANK.et",
  "processes": 2,
  "events": 272
}
job.0.et
job.1.et
rank  file      format  host  device  steps  streams  threads  events      span  clock starts at
   0  job.0.et  Chakra                             2        2     136  9.357 ms  of its own
$ heddle trace convert examples/traces/ddp --to chakra -o -
error[E0801]: Chakra has a file for every rank: they cannot go to standard output
  hint: -o trace writes trace.0.et, trace.1.et ..
[2]
## nothing that is to be read is overwritten
$ cp examples/traces/ddp/rank0.json mine.json; heddle trace convert mine.json -o ./mine.json
error[E0102]: ./mine.json is one of the recordings: it would be overwritten
  --> mine.json
  hint: name another file
[1]
$ heddle trace convert job.0.et --to chakra -o job
error[E0102]: job.0.et is one of the recordings: it would be overwritten
  --> job.0.et
  hint: name another file
[1]
## An ending that means another format.
$ heddle trace convert examples/traces/ddp -o job.pftrace; test -e job.pftrace || echo none
error[E0801]: trace convert writes JSON, not Perfetto's protobuf: job.pftrace
  hint: -o job.json, which ui.perfetto.dev reads too; `heddle compare -o X.pftrace` has what was recorded beside what is predicted
none
