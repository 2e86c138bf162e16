## Another program says what events take: one a line, microseconds or - back. This one knows products.
$ heddle sim mlp-xs:layers=2,hidden=64 --batch 8 --train --strategy dp=2 --machine dgx-2 --predictor 'while read key; do case $key in matmul*) echo 2.5 ;; *) echo - ;; esac; done' | sed -n '/^cost source/,/^$/p;/^figure/p;/^predicted: /p'
cost source  count      time   share  spread known
launch time     18  91.20 us  72.1 %         0.0 %
link model       3  30.30 us  24.0 %         0.0 %
predicted        2  5.000 us   4.0 %         0.0 %
$ heddle sim mlp-xs:layers=2,hidden=64 --batch 8 --train --strategy dp=2 --machine dgx-2 --predictor 'while read key; do echo 1; done' | grep -E '^time per step|^predicted  '
time per step   23.00 us
predicted       23  23.00 us  100.0 %         0.0 %
## A search asks it too, of every event once.
$ heddle plan mlp-xs:layers=2,hidden=64 --batch 8 --train --machine '1x2 v100' --predictor 'n=0; while read key; do n=$((n + 1)); echo "$key" >>keys; echo 3; done' >found; sort keys | uniq -d | wc -l
0
## It ends, tells nonsense, or does not keep to a line for a line.
$ heddle sim mlp-xs --train --strategy dp=2 --machine dgx-2 --predictor 'read key; echo 5; exit 3'
error[E0119]: the predictor has ended with status 3 instead of an answer
  --> read key; echo 5; exit 3:2:1
   2 | relu f32[256,512] -> f32[256,512] on v100
     | ^
  hint: echo 'relu f32[256,512] -> f32[256,512] on v100' | read key; echo 5; exit 3
[1]
$ heddle sim mlp-xs --train --strategy dp=2 --machine dgx-2 --predictor 'kill -9 $$'
error[E0119]: the predictor was ended by signal 9
  --> kill -9 $$:1:1
   1 | matmul f32[256,512] f32[512,512] -> f32[256,512] on v100
     | ^
  hint: echo 'matmul f32[256,512] f32[512,512] -> f32[256,512] on v100' | kill -9 $$
[1]
$ heddle sim mlp-xs --train --strategy dp=2 --machine dgx-2 --predictor cat
error[E0119]: 'matmul f32[256,512] f32[512,512] -> f32[256,512] on v100' is no time: microseconds, such as 12.5, or - where it is not known
  --> cat:1:1
   1 | matmul f32[256,512] f32[512,512] -> f32[256,512] on v100
     | ^
  hint: echo 'matmul f32[256,512] f32[512,512] -> f32[256,512] on v100' | cat
[1]
$ heddle sim mlp-xs --train --strategy dp=2 --machine dgx-2 --predictor 'while read key; do printf "1\n2\n"; done'
error[E0119]: more than one line for one event
  --> while read key; do printf "1\n2\n"; done:1:1
   1 | matmul f32[256,512] f32[512,512] -> f32[256,512] on v100
     | ^
  hint: echo 'matmul f32[256,512] f32[512,512] -> f32[256,512] on v100' | while read key; do printf "1\n2\n"; done
[1]
$ heddle sim mlp-xs --train --strategy dp=2 --machine dgx-2 --predictor 'while read key; do echo -5; done'
error[E0119]: '-5' is no time: microseconds, such as 12.5, or - where it is not known
  --> while read key; do echo -5; done:1:1
   1 | matmul f32[256,512] f32[512,512] -> f32[256,512] on v100
     | ^
  hint: echo 'matmul f32[256,512] f32[512,512] -> f32[256,512] on v100' | while read key; do echo -5; done
[1]
## A search in which it fails says so.
$ heddle plan mlp-xs:layers=2,hidden=64 --batch 8 --train --machine '1x2 v100' --predictor true 2>&1 | grep -E 'predictor' | head -1
  note: 34 impossible, such as dp=1 tp=1 pp=2: the predictor has ended with status 0 instead of an answer
## What the command starts ends with it; a number is decimal.
$ heddle sim mlp-xs:layers=2,hidden=16 --batch 8 --train --strategy dp=1 --machine '1x1 cpu-core' --predictor 'while read x; do echo 1; done; sleep 98765' | grep -c '^time per step'; ps -eo args= | grep -c '^sleep 98765'
1
0
[1]
$ heddle sim mlp-xs:layers=2,hidden=16 --batch 8 --train --strategy dp=1 --machine '1x1 cpu-core' --predictor 'while read x; do echo 0x10; done' 2>&1 | head -n 1
error[E0119]: '0x10' is no time: microseconds, such as 12.5, or - where it is not known
