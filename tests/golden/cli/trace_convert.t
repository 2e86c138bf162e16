## All ranks as one timeline. What is written of one rank is read again with the same answers.
$ heddle trace convert examples/traces/ddp --to chrome -o all.json
file       all.json
processes  2
events     280
arrows     8
$ grep -c '"ph":"X"' all.json; grep '"cat":"meet"' all.json | head -2; grep nccl all.json | head -1; tail -1 all.json
280
{"ph":"s","id":1,"cat":"meet","name":"meet","pid":0,"tid":3,"ts":86400004069},
{"ph":"f","bp":"e","id":1,"cat":"meet","name":"meet","pid":1,"tid":3,"ts":86400004069},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)","pid":0,"tid":3,"ts":86400001923.250,"dur":260,"args":{ "device":0,"stream":20,"correlation":15,"Collective name":"all_reduce","In msg nelems":4000000,"Out msg nelems":4000000,"dtype":"f32","Group size":2,"Process Group Name":"0","Process Group Ranks":"[0,1]","Seq":1}},
],"baseTimeNanoseconds":1735603200000000000}
$ heddle trace convert examples/traces/ddp/rank1.json -o one.json --json
{
  "output": "one.json",
  "processes": 1,
  "events": 140,
  "arrows": 0
}
$ heddle trace summary one.json >a; heddle trace summary examples/traces/ddp/rank1.json | cmp - a && tail -1 one.json
],"baseTimeNanoseconds":1735603200000000000,"distributedInfo":{"rank":1,"world_size":2}}
## wrong
$ heddle trace convert examples/traces/ddp --to chrome
error[E0801]: no file to write was named
  hint: -o trace.json
[2]
$ heddle trace convert examples/traces/ddp --to nsys -o all.json
error[E0801]: traces are not converted to 'nsys'
  hint: --to chrome
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
