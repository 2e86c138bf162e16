## What makes no difference to a plan's program is not a plan of its own.
$ heddle plan gpt2:layers=2,hidden=64,heads=4,vocab=128 --batch 4 --seq 16 --train --machine '1x4 v100' --strategy 'dp=1 tp=4 pp=1 mb=1 recompute=none materialise=*' | grep -E '^ *tp|^[0-9]|^certificate'
   tp  materialise      time         samples   memory  limited by
1   4  p2p          1.072 ms  1.00x  3,732/s  498 KiB  computation 81 %
2   4  inter        1.115 ms  1.04x  3,589/s  498 KiB  communication 22 %
certificate  3 plans: 2 fit, 0 too large, 0 too slow, 0 impossible, 1 equal to another;
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=128 --batch 4 --seq 16 --train --machine '1x4 v100' --strategy 'dp=1 tp=1 pp=4 mb=1 recompute=none materialise=inter,intra' | grep -E '^ *pp|^[0-9]|^certificate'
   pp      time         samples   memory  limited by
1   4  1.438 ms  1.00x  2,781/s  975 KiB  bubble 72 %
certificate  2 plans: 1 fit, 0 too large, 0 too slow, 0 impossible, 1 equal to another;
$ heddle plan mlp-xs:layers=4,hidden=8 --batch 4 --train --machine '1x2 v100' --strategy 'dp=1 tp=1 pp=2 mb=2 recompute=none materialise=*' | grep -E '^ *pp|^[0-9]|^certificate'
   pp  mb      time          samples    memory  limited by
1   2   2  303.1 us  1.00x  13,196/s  6.50 KiB  bubble 41 %
certificate  3 plans: 1 fit, 0 too large, 0 too slow, 0 impossible, 2 equal to another;
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=128 --batch 4 --seq 16 --train --machine '1x4 v100' --strategy 'dp=1 tp=1 pp=4 mb=1,2 recompute=none overlap=none buffers=*' | grep -E '^ *pp|^[0-9]|^certificate'
   pp  mb  overlap      time         samples    memory  limited by
1   4   1  none     1.438 ms  1.00x  2,781/s   975 KiB  bubble 70 %
2   4   2  none     2.241 ms  1.56x  1,785/s  1.33 MiB  bubble 57 %
certificate  4 plans: 2 fit, 0 too large, 0 too slow, 1 impossible, 1 equal to another;
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=128 --batch 4 --seq 16 --train --machine '1x4 v100' --strategy 'dp=1 tp=1 pp=4 mb=1 recompute=none places=inorder,1/2/3/4' | grep -E '^ *pp|^[0-9]|^certificate'
   pp      time         samples   memory  limited by
1   4  1.438 ms  1.00x  2,781/s  975 KiB  bubble 72 %
certificate  2 plans: 1 fit, 0 too large, 0 too slow, 0 impossible, 1 equal to another;
## Where there is one channel for each pass and peer, peer and pass differ in the names of streams alone; where there are forwards alone, pass and one.
$ heddle plan gpt2:layers=4,hidden=64,heads=4,vocab=128 --batch 4 --seq 16 --train --machine '1x2 v100' --strategy 'dp=1 tp=1 pp=2 mb=2 recompute=none channels=*' | grep -E '^ *pp|^[0-9]|^certificate'
   pp  mb  channels      time         samples    memory  limited by
1   2   2  peer      2.628 ms  1.00x  1,522/s  1.97 MiB  bubble 30 %
2   2   2  one       2.628 ms  1.00x  1,522/s  1.97 MiB  bubble 30 %
certificate  3 plans: 2 fit, 0 too large, 0 too slow, 0 impossible, 1 equal to another;
$ heddle plan mlp-xs:layers=4,hidden=8 --batch 4 --machine '1x4 v100' --strategy 'dp=1 tp=1 pp=4 mb=2 channels=*' | grep -E '^ *pp|^[0-9]|^certificate'
   pp  mb  channels      time          samples    memory  limited by
1   4   2  peer      77.02 us  1.00x  51,935/s  2.00 KiB  bubble 74 %
2   4   2  pass      77.02 us  1.00x  51,935/s  2.00 KiB  bubble 74 %
certificate  3 plans: 2 fit, 0 too large, 0 too slow, 0 impossible, 1 equal to another;
