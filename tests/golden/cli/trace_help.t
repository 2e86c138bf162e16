## The questions, and the help of each: its own options, no others.
$ heddle trace --help
heddle trace QUESTION PATH... - ask the traces of a job: what is slow, who is late, what would help

PATH is a recorded file, or the folder with the files of a job, one for every rank; .gz too.

questions
  info PATH...           ranks, steps, streams, clocks, formats; what is missing
  replay PATH...         the job replayed from durations and dependencies: error, critical path, who is late
  summary PATH...        where the time of every rank and step goes: computing, communication, copies, idle and why; kernels, bandwidths
  diff BEFORE AFTER      two recordings compared: slower by more than noise, and where the time went
  compare PATH... MODEL  a recorded step beside the simulation of its plan: the gap, item by item
  blame PATH...          who is late, and what that costs
  whatif PATH...         how long steps take if something took another time
  optimize PATH...       what would make a data-parallel job faster: buckets of gradients, fused kernels, beside what frameworks do
  rescale PATH...        how long a step takes with more data ranks, and where it grows
  hang PATH...           why a job hangs: flight recorder dumps of its ranks, or NCCL's RAS output
  align PATH...          how far the clocks of processes are apart, by what they send each other
  convert PATH...        all ranks as one timeline that ui.perfetto.dev opens (--to chrome -o FILE)

options of questions (compare takes those of `heddle sim` too: model, training, plan, machine)
  --top N                rows of the tables; of summary, diff, compare, blame, whatif, optimize, rescale, hang, align
  --memory BYTES         that a device has, such as 16GB; of optimize
  --passes LIST          graph passes that are tried, such as op_fusion,tensor_fusion,half (default: those that change no numbers and that frameworks can be told); of optimize
  --timeline FILE        write measured and predicted as one timeline for ui.perfetto.dev (.json, .pftrace); of compare
  --steps LIST           steps of training, such as 3 or 3-5,8 (default: all, or all but the last); of replay, summary, diff, compare, blame, whatif, optimize, rescale
  --set CHANGE           what is different; may be repeated; of whatif, align
  --ranks N              ranks that the job would have; of rescale
  --to FORMAT            format to convert to: chrome, heddle or chakra (default chrome); of convert
  --output FILE          also -o: file to write; of convert

options of every question
  --json                 print one JSON object (docs/json.md)
  --help                 print this text

`heddle trace QUESTION --help` says what a question answers and which options it takes, with examples.
docs/diagnosis.md has the formats that are read, and which question to ask when.

example
  heddle trace info examples/traces/ddp
$ heddle trace blame --help
heddle trace blame PATH... - who is late, and what that costs

Of recorded kernels: which rank comes last to communications, what repairing its host would gain, and
waiting split from transfer. Of the timeline of a pipelined job: what a step loses to operations,
stages, data ranks, workers and microbatches. --steps takes one stretch of steps.

the question
  --top N                rows of the tables
  --steps LIST           steps of training, such as 3 or 3-5,8 (default: all, or all but the last)

output
  --json                 print one JSON object (docs/json.md)
  --help                 print this text

Exit status 0: answered, whatever the answer is; others: docs/commands.md. More: docs/diagnosis.md.

examples
  heddle trace blame examples/traces/ddp --steps 11-12
  heddle trace blame examples/traces/pipeline
$ heddle trace whatif --help
heddle trace whatif PATH... - how long steps take if something took another time

Runs the job again with each --set, and with all of them. A change is WHAT = VALUE or WHAT x FACTOR:
WHAT is rank N, host, the name of a kernel or communication ('*' stands for anything), and of
pipelined jobs worker N, stage N, data N, microbatch N or all; VALUE is median, ideal, 0 or a time.
What links of twice the bandwidth bring: 'all_reduce x 0.5'.

the question
  --top N                rows of the tables
  --steps LIST           steps of training, such as 3 or 3-5,8 (default: all, or all but the last)
  --set CHANGE           what is different; may be repeated

output
  --json                 print one JSON object (docs/json.md)
  --help                 print this text

Exit status 0: answered, whatever the answer is; others: docs/commands.md. More: docs/diagnosis.md.

examples
  heddle trace whatif examples/traces/ddp --set 'rank 1 = median' --set 'host = 0' --set '*sgemm* x 0.5'
  heddle trace whatif examples/traces/pipeline --set 'worker 3 = ideal'
$ heddle trace align --help
heddle trace align PATH... - how far the clocks of processes are apart, by what they send each other

Offset and drift of every clock, how certain they are, clocks that jump, and communications without
a partner. --set drift=none, drift=linear or drift=4 (pieces) says what form clocks have, clocks=process
that processes of a host have their own, method=dpro that offsets are found as dPRO does.

the question
  --top N                rows of the tables
  --set CHANGE           what is different; may be repeated

output
  --json                 print one JSON object (docs/json.md)
  --help                 print this text

Exit status 0: answered, whatever the answer is; others: docs/commands.md. More: docs/diagnosis.md.

examples
  heddle trace align examples/traces/clocks
  heddle trace align examples/traces/clocks --set drift=none
$ heddle trace compare --help | grep -v -e "^  --"
heddle trace compare PATH... MODEL - a recorded step beside the simulation of its plan: the gap, item by item

Simulates the plan as `heddle sim` does and compares the step of median length with it: rows add up
to the gap. --timeline shows both side by side.

MODEL is an .onnx file, a .heddle file, or a built-in model such as gpt3-175b or
llama2-7b:layers=2,hidden=256 (`heddle show --list` lists them).

the question

the model

training

the plan

the machine

output

not modelled
  fused kernels other than attention=fused; dropout in built-in models; overlap of tensor-parallel
  communication, and of what ZeRO gathers, with computation (docs/commands.md)

Exit status 0: answered, whatever the answer is; others: docs/commands.md. More: docs/diagnosis.md.

example
  heddle trace compare examples/traces/simulated/slow.json mlp-xs:layers=2 --batch 16 --train --strategy 'dp=2 tp=2' --machine dgx-2
$ heddle trace convert --help
heddle trace convert PATH... - all ranks as one timeline that ui.perfetto.dev opens (--to chrome -o FILE)

chrome: for ui.perfetto.dev; of one rank as Kineto has it. heddle: loses nothing of ranks, groups, bytes
and launches, as does chrome of several ranks. chakra: execution traces, FILE.RANK.et for every rank.

the question
  --to FORMAT            format to convert to: chrome, heddle or chakra (default chrome)
  --output FILE          also -o: file to write

output
  --json                 print one JSON object (docs/json.md)
  --help                 print this text

Exit status 0: answered, whatever the answer is; others: docs/commands.md. More: docs/diagnosis.md.

examples
  heddle trace convert examples/traces/ddp --to chrome -o all.json
  heddle trace convert examples/traces/ddp --to heddle -o job.json
$ heddle trace info --help
heddle trace info PATH... - ranks, steps, streams, clocks, formats; what is missing

A row for every file: format, rank, steps, streams, events, launches, communications, clock.
Below it what other questions need and these files do not have.

output
  --json                 print one JSON object (docs/json.md)
  --help                 print this text

Exit status 0: answered, whatever the answer is; others: docs/commands.md. More: docs/diagnosis.md.

example
  heddle trace info examples/traces/ddp
## A question that there is not; an option of other questions, of compare alone, of none.
$ heddle trace blaim --help
error[E0801]: unknown question 'blaim'
  hint: did you mean `heddle trace blame`?
[2]
$ heddle trace info x --steps 3
error[E0801]: `heddle trace info` has no option --steps
  hint: leave it out; questions that take it: replay, summary, diff, compare, blame, whatif, optimize, rescale
[2]
$ heddle trace replay x --lr 3
error[E0801]: `heddle trace replay` has no option --lr
  hint: leave it out; questions that take it: compare
[2]
$ heddle trace rescale x --ranks 4 --costs distir
error[E0801]: `heddle trace rescale` has no option --costs
  hint: leave it out; questions that take it: compare
[2]
$ heddle trace blame x --step 3
error[E0801]: `heddle trace` has no option --step
  hint: did you mean --steps?
[2]
$ heddle trace blame
error[E0801]: `heddle trace blame` needs PATH...
  hint: `heddle trace blame --help` explains it
[2]
$ heddle trace
error[E0801]: `heddle trace` needs QUESTION PATH...
  hint: `heddle trace --help` explains it
[2]
