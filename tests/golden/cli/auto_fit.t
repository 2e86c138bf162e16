## Automatic plans that leave tables whole need more host memory than hybrids: with less than that none of them fits, which is not the same as none being faster.
$ heddle plan gpt2 --batch 32 --seq 512 --train --optimizer adam --machine '1x2 v100 hostmem=1.6GiB' --strategy 'offload=states+params tp=2 mb=1 recompute=none' --auto | sed -n '/^  *strategy/,$p'
                      strategy                                     time         samples    memory
answer                dp=1 tp=2 pp=1 offload=params+states sp  721.7 ms  1.00x  44.34/s  9.94 GiB
hybrid, same degrees  dp=1 tp=2 pp=1 offload=params+states sp  721.7 ms  1.00x  44.34/s  9.94 GiB
hybrid, any degrees   dp=1 tp=2 pp=1 offload=params+states sp  721.7 ms  1.00x  44.34/s  9.94 GiB

answer       a hybrid: no automatic plan fits; of 2 simulated, too large for host memory: 2 (a node has 1.44 GiB, the smallest needs 2.77 GiB)
             computes 86.2 % of the time, communicates 4.3 %, idles 9.5 %
certificate  hybrids searched: 4; degrees split by dynamic programming: 1; of them simulated, by their estimates: 2
$ heddle plan gpt2 --batch 32 --seq 512 --train --optimizer adam --machine '1x2 v100 hostmem=1.6GiB' --strategy 'offload=states+params tp=2 mb=1 recompute=none' --auto --json | grep -E '"(automatic|simulated|too_large|host_too_large)"'
  "automatic": false,
  "simulated": 2,
  "too_large": 0,
  "host_too_large": 2,
$ heddle plan gpt2 --batch 32 --seq 512 --train --optimizer adam --machine '1x2 v100 hostmem=4GiB' --strategy 'offload=states+params tp=2 mb=1 recompute=none' --auto | grep -E '^a'
answer                dp=1 tp=2 pp=1 offload=params+states sp  721.7 ms  1.00x  44.34/s  9.94 GiB
answer       a hybrid: the automatic plan that was simulated is not faster
