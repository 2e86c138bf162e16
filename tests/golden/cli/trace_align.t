## Four hosts (examples/traces/clocks/make.py): rank 1 is 15 ms ahead, rank 2 8 ms behind with 80 ppm, rank 3 31 ms ahead with -45 ppm.
$ heddle trace align examples/traces/clocks
processes    4
clocks       4
collectives  96
messages     576
method       floors
form         offsets and drifts
ends apart   6.639 us
slack        10.10 us
violated     384 of 672 as recorded (by up to 38.97 ms), 0 once aligned

rank     offset  drift ppm        +-   at least    at most  used
   0          0          0                                   288
   1  +15.00 ms     -0.027  207.6 ns  +14.99 ms  +15.01 ms   480
   2  -7.924 ms     79.279  475.3 ns  -7.944 ms  -7.903 ms   480
   3  +30.96 ms    -45.257  748.1 ns  +30.93 ms  +30.99 ms   288

from  to  by             at      takes
   0   1  message  68.41 ms  +10.10 us
   1   0  message  9.190 ms  +10.10 us
$ heddle trace align examples/traces/clocks --json
{
  "processes": 4,
  "clocks": 4,
  "collectives": 96,
  "messages": 576,
  "method": "floors",
  "form": "offsets and drifts",
  "ends_scatter_ps": 6639366,
  "slack_ps": 10101840,
  "constraints": 672,
  "violated_before": 384,
  "violated_after": 0,
  "worst_before_ps": 38974546000,
  "worst_after_ps": 0,
  "flat": false,
  "alignment": [
    {"rank": 0, "component": 0, "offset_ps": 0, "drift_ppm": 0, "uncertainty_ps": null, "least_ps": null, "most_ps": null, "used": 288, "file": "examples/traces/clocks/rank0.json.gz"},
    {"rank": 1, "component": 0, "offset_ps": 15000037890, "drift_ppm": -0.027, "uncertainty_ps": 207647, "least_ps": 14989921654, "most_ps": 15010119238, "used": 480, "file": "examples/traces/clocks/rank1.json.gz"},
    {"rank": 2, "component": 0, "offset_ps": -7923708600, "drift_ppm": 79.279, "uncertainty_ps": 475286, "least_ps": -7943536969, "most_ps": -7903461114, "used": 480, "file": "examples/traces/clocks/rank2.json.gz"},
    {"rank": 3, "component": 0, "offset_ps": 30956429094, "drift_ppm": -45.257, "uncertainty_ps": 748069, "least_ps": 30926614538, "most_ps": 30986694833, "used": 288, "file": "examples/traces/clocks/rank3.json.gz"}
  ],
  "cycle": [
    {"from": 0, "to": 1, "by": "message", "time_ps": 68409527000, "gap_ps": 10101840},
    {"from": 1, "to": 0, "by": "message", "time_ps": 9189979764, "gap_ps": 10101840}
  ],
  "components": 1
}
$ heddle trace align examples/traces/clocks --set drift=2 | head -n 15
processes    4
clocks       4
collectives  96
messages     576
method       floors
form         2 straight pieces
ends apart   6.610 us
slack        10.10 us
violated     384 of 672 as recorded (by up to 38.97 ms), 0 once aligned

rank     offset  drift ppm        +-   at least    at most  used
   0          0          0                                   288
   1  +15.00 ms     -0.116  511.6 ns  +14.99 ms  +15.01 ms   480
   2  -7.923 ms     79.964  1.032 us  -7.944 ms  -7.903 ms   480
   3  +30.96 ms    -45.393  1.160 us  +30.93 ms  +30.99 ms   288
## Offsets alone cannot keep the order, whatever method says which they are.
$ heddle trace align examples/traces/clocks --set drift=none
processes    4
clocks       4
collectives  96
messages     576
method       floors
form         offsets
ends apart   16.56 us
slack        -99.63 us
violated     384 of 672 as recorded (by up to 38.97 ms), 126 once aligned (by up to 105.5 us)

rank     offset  drift ppm        +-  at least  at most  used
   0          0                                           288
   1  +15.00 ms             2.386 us                      480
   2  -7.924 ms             2.384 us                      480
   3  +30.96 ms             2.387 us                      288

no clocks of this form put every cause before its effect: these contradict each other
from  to  by             at      takes
   2   3  message   1.912 s  -105.5 us
   3   2  message  13.18 ms  -93.75 us
$ heddle trace align examples/traces/clocks --set method=dpro | head -n 15
processes    4
clocks       4
collectives  96
messages     576
method       dpro
form         offsets
ends apart   16.56 us
slack        -99.63 us
violated     384 of 672 as recorded (by up to 38.97 ms), 127 once aligned (by up to 99.63 us)
flat         receivers waited for every message: variances do not say where clocks are

rank     offset  drift ppm  +-  at least  at most  used
   0          0                                     288
   1  +15.00 ms                                     480
   2  -7.922 ms                                     480
## Rank 2 is set back by 3 ms.
$ heddle trace align tests/clocks/jump
processes    4
clocks       4
collectives  96
messages     576
method       floors
form         offsets and drifts
ends apart   379.7 us
slack        -1.461 ms
violated     384 of 672 as recorded (by up to 41.86 ms), 288 once aligned (by up to 1.454 ms)

rank     offset  drift ppm        +-  at least  at most  used
   0          0          0                                288
   1  +15.01 ms      283.2  88.31 us                      480
   2  -9.400 ms   -2761.79  88.48 us                      480
   3  +30.96 ms    246.124  88.29 us                      288

no clocks of this form put every cause before its effect: these contradict each other
from  to  by             at      takes
   2   3  message  953.8 ms  -1.461 ms
   3   2  message  973.2 ms  -1.461 ms

rank  jumps at        +-         by
   2  956.5 ms  29.89 ms  -2.976 ms
## Two groups of ranks; all-reduces 40 and 41 are missing on rank 1.
$ heddle trace align tests/clocks/apart
processes    4
clocks       4
collectives  190
messages     384
method       floors
form         offsets and drifts
ends apart   5.492 us
slack        10.25 us
violated     382 of 574 as recorded (by up to 38.99 ms), 0 once aligned

rank  tied     offset  drift ppm        +-   at least    at most  used
   0     0          0          0                                   286
   1     0  +15.00 ms      0.148  102.0 ns  +14.99 ms  +15.01 ms   286
   2     1          0          0                                   288
   3     1  +38.88 ms   -124.598  177.4 ns  +38.87 ms  +38.89 ms   288

from  to  by             at      takes
   0   1  message   1.134 s  +10.25 us
   1   0  message  115.2 ms  +10.25 us

nothing ties 2 groups of processes to each other: offsets count from the first of each

problem  rank  operation   group  number  have it  of
orphan      0  all_reduce  dp         40        1   2
orphan      0  all_reduce  dp         41        1   2
$ heddle trace align tests/clocks/apart --top 1 --json
{
  "processes": 4,
  "clocks": 4,
  "collectives": 190,
  "messages": 384,
  "method": "floors",
  "form": "offsets and drifts",
  "ends_scatter_ps": 5491887,
  "slack_ps": 10250155,
  "constraints": 574,
  "violated_before": 382,
  "violated_after": 0,
  "worst_before_ps": 38987614000,
  "worst_after_ps": 0,
  "flat": false,
  "alignment": [
    {"rank": 0, "component": 0, "offset_ps": 0, "drift_ppm": 0, "uncertainty_ps": null, "least_ps": null, "most_ps": null, "used": 286, "file": "tests/clocks/apart/rank0.json.gz"},
    {"rank": 1, "component": 0, "offset_ps": 14999844755, "drift_ppm": 0.148, "uncertainty_ps": 102011, "least_ps": 14989703405, "most_ps": 15010107888, "used": 286, "file": "tests/clocks/apart/rank1.json.gz"},
    {"rank": 2, "component": 1, "offset_ps": 0, "drift_ppm": 0, "uncertainty_ps": null, "least_ps": null, "most_ps": null, "used": 288, "file": "tests/clocks/apart/rank2.json.gz"},
    {"rank": 3, "component": 1, "offset_ps": 38880097728, "drift_ppm": -124.598, "uncertainty_ps": 177447, "least_ps": 38869705372, "most_ps": 38890518309, "used": 288, "file": "tests/clocks/apart/rank3.json.gz"}
  ],
  "cycle": [
    {"from": 0, "to": 1, "by": "message", "time_ps": 1134461917000, "gap_ps": 10250155},
    {"from": 1, "to": 0, "by": "message", "time_ps": 115231440650, "gap_ps": 10250155}
  ],
  "components": 2,
  "unmatched": [
    {"problem": "orphan", "rank": 0, "op": "all_reduce", "group": "dp", "number": 40, "have": 1, "of": 2},
    {"problem": "orphan", "rank": 0, "op": "all_reduce", "group": "dp", "number": 41, "have": 1, "of": 2}
  ]
}
## What is wrong.
$ heddle trace align examples/traces/clocks/rank0.json.gz
error[E0106]: clocks are aligned between processes: there is 1
  hint: name the traces of all ranks, or the folder that they are in
[1]
$ heddle trace align examples/traces/clocks --set drift=99
error[E0801]: unknown setting 'drift=99'
  hint: --set drift=none, drift=linear, drift=4 (pieces), method=dpro, clocks=process (not one for each host)
[2]
$ heddle trace align examples/traces/clocks --set method
error[E0801]: unknown setting 'method'
  hint: --set drift=none, drift=linear, drift=4 (pieces), method=dpro, clocks=process (not one for each host)
[2]
$ heddle trace align examples/traces/clocks --steps 3
error[E0801]: `heddle trace align` has no option --steps
  hint: leave it out; questions that take it: replay, summary, diff, compare, blame, whatif, optimize, rescale
[2]
