## One node of each kind, wherever it stands.
$ m='gpt2:layers=4,hidden=512,heads=8,vocab=5000 --batch 32 --seq 256 --train --top 1'; for x in '1x2 v100 + 1x8 v100 eth=1Gb/s' '1x8 v100 + 1x2 v100 eth=1Gb/s' '1x1 v100 + 1x8 v100 eth=1Gb/s'; do heddle plan $m --machine "$x" | grep '^winner\|^one'; done
winner       dp=1 tp=2 pp=5 mb=32
one device   0.31x the time, 86.36 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
one node     0.06x the time, 16.12 ms: --devices 8 --strategy 'dp=8 tp=1 pp=1 skip=2'
winner       dp=2 tp=1 pp=5 mb=16
one device   0.33x the time, 86.36 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
one node     0.06x the time, 16.12 ms: --devices 8 --strategy 'dp=8 tp=1 pp=1'
winner         dp=3 tp=1 pp=3 mb=4 dp.shares=auto
one device     0.27x the time, 86.36 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
one node       0.05x the time, 16.12 ms: --devices 8 --strategy 'dp=8 tp=1 pp=1 skip=1'
$ heddle plan gpt2:layers=4,hidden=512,heads=8,vocab=5000 --batch 32 --seq 256 --train --top 1 --machine '1x8 v100' --strategy 'dp=8' | grep '^winner' -A1
winner       dp=8 tp=1 pp=1
             computes 86.6 % of the time, communicates 13.4 %, idles 0.0 %; MFU 39.5 %; needs 263 MiB of 28.8 GiB
## Nodes that are not used whole are none; powers of two are asked only of nodes that are one.
$ heddle plan gpt2:layers=4,hidden=512,heads=8,vocab=5000 --batch 32 --seq 256 --train --top 1 --machine '2x8 v100 eth=1Gb/s' --strategy 'skip=4' | grep '^winner\|^one'
winner         dp=3 tp=1 pp=4 mb=8 dp.shares=auto skip=4
one device     0.40x the time, 86.36 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1 skip=4'
one node       0.07x the time, 16.12 ms: --devices 8 --strategy 'dp=8 tp=1 pp=1 skip=8'
$ heddle plan gpt2:layers=4,hidden=512,heads=8,vocab=5000 --batch 36 --seq 256 --train --top 1 --machine '2x6 v100 eth=1Gb/s' --devices 8 --powers-of-two | grep '^winner\|^one'
winner       dp=1 tp=2 pp=4 mb=4
one device   0.30x the time, 95.71 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
one node     0.07x the time, 21.56 ms: --devices 6 --strategy 'dp=6 tp=1 pp=1'
## Of several kinds, too, in any order.
$ for x in '1x4 t4 + 1x4 h100 ib=100Gb/s' '1x4 h100 + 1x4 t4 ib=100Gb/s'; do heddle plan gpt2 --batch 10 --train --machine "$x" --strategy 'dp=8 dp.shares=auto zero=0 recompute=none' | grep '^winner\|^one [dn]'; done
winner         dp=8 tp=1 pp=1 dp.shares=auto
one device     0.63x the time, 203.2 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1 skip=4'
one node       0.18x the time, 59.48 ms: --devices 4 --strategy 'dp=2 tp=2 pp=1 skip=4'
winner         dp=8 tp=1 pp=1 dp.shares=auto
one device     0.63x the time, 203.2 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
one node       0.18x the time, 59.48 ms: --devices 4 --strategy 'dp=2 tp=2 pp=1'
$ heddle plan gpt2:layers=4,hidden=512,heads=8,vocab=5000 --batch 32 --seq 256 --train --machine '1x2 p100 + 2x4 v100 ib=100Mb/s' | grep '^winner\|^one [dn]'
winner       dp=2 tp=1 pp=1
one node     0.32x the time, 26.90 ms: --devices 4 --strategy 'dp=4 tp=1 pp=1 skip=2'
## What was said holds, but for degrees, the order, and how ranks, layers and samples are dealt out.
$ m='gpt2:layers=4,hidden=512,heads=8,vocab=5000 --batch 32 --seq 256 --train --optimizer adam --top 1 --machine'; for s in zero=0 'overlap=*' 'mbs=1' 'pp=4 schedule=gpipe'; do heddle plan $m '2x4 v100 eth=1Gb/s' --strategy "$s" | grep '^winner\|^one'; done
winner       dp=1 tp=2 pp=4 mb=32
one device   0.32x the time, 86.71 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
one node     0.10x the time, 27.25 ms: --devices 4 --strategy 'dp=4 tp=1 pp=1'
winner       dp=1 tp=2 pp=4 mb=32
one device   0.32x the time, 86.71 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
one node     0.09x the time, 25.80 ms: --devices 4 --strategy 'dp=4 tp=1 pp=1 overlap=pp+dp'
winner       dp=1 tp=2 pp=4 mb=32
one device   0.61x the time, 166.0 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1 mb=32'
one node     0.16x the time, 44.08 ms: --devices 4 --strategy 'dp=4 tp=1 pp=1 mb=8'
winner       dp=1 tp=2 pp=4 mb=32 schedule=gpipe
one device   0.22x the time, 86.71 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
one node     0.07x the time, 27.25 ms: --devices 4 --strategy 'dp=4 tp=1 pp=1'
$ heddle plan examples/batchnorm.heddle --train --machine '2x2 v100 ib=10Mb/s' --strategy 'bn=sync pp=1' | grep '^winner\|^one'
winner       dp=4 tp=1 pp=1 bn=sync
one device   0.05x the time, 248.9 us: --devices 1 --strategy 'dp=1 tp=1 pp=1 bn=sync'
one node     0.05x the time, 247.1 us: --devices 2 --strategy 'dp=1 tp=1 pp=2 bn=sync'
$ heddle plan gpt2:layers=4,hidden=512,heads=8,vocab=5000 --batch 32 --seq 256 --train --optimizer adam --top 1 --machine '2x4 v100 eth=1Gb/s hostmem=64GiB hostbw=10GB/s' --strategy 'offload=states update=host prefetch=4' | grep '^winner\|^one'
winner       dp=4 tp=1 pp=2 mb=8 zero=1 offload=states prefetch=4 update=host
one device   0.44x the time, 133.6 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1 offload=states prefetch=4 update=host'
one node     0.23x the time, 69.93 ms: --devices 4 --strategy 'dp=4 tp=1 pp=1 zero=1 offload=states prefetch=4 update=host'
## Parts: the first has them, and all together what the whole has.
$ m='gpt2:layers=4,hidden=512,heads=8,vocab=5000 --batch 32 --seq 256 --train --optimizer adam --powers-of-two --machine'; for k in 1 2 3; do heddle plan $m '4x4 v100 eth=1Gb/s' --strategy 'tp=1,2 recompute=none' --part $k/3 -o p$k >o$k.txt; grep -c one_node p$k; done; heddle plan $m '4x4 v100 eth=1Gb/s' --strategy 'tp=1,2 recompute=none' >whole.txt; heddle merge p1 p2 p3 >merged.txt; diff whole.txt merged.txt && grep '^one' merged.txt
1
0
0
one device   0.24x the time, 86.71 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1'
one node     0.07x the time, 27.25 ms: --devices 4 --strategy 'dp=4 tp=1 pp=1'
## On one device what needs several is not left out.
$ heddle plan gpt2:layers=4 --batch 8 --seq 64 --train --machine '1x1 v100' --strategy 'zero=0 mb=1' --what-if | grep 'other values\|=\* '
             other values of some choices are not in it; --strategy 'attention=*' has them, --what-if tries each
attention=*         dp=1 tp=1 pp=1 attention=fused                                            23.32 ms   1.02x  808 MiB
## The plan is on one device, and nodes have devices of several kinds.
$ heddle plan mlp-xs --batch 24 --machine '1x2 v100' --train --strategy 'mb=4 skip=1' | grep '^one '
[1]
$ printf 'nodes: [{count: 2, devices: 1 t4 + 3 h100, nics: 400 Gb/s, link: switch 300 GB/s}]\n' > nodes.yaml; heddle plan gpt2:layers=8,hidden=2048,heads=16,vocab=1024 --batch 64 --dtype f16 --train --machine nodes.yaml --top 1 --strategy 'dp=8 dp.shares=equal' | grep '^one '
one device   0.48x the time, 383.7 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1 mb=2 skip=1'
one node     0.17x the time, 138.4 ms: --devices 4 --strategy 'dp=4 tp=1 pp=1 zero=1 dp.shares=auto'
one more       of the last column: how much faster a step would be with one more device of the kind, if no device ever waited; --what-if searches plans with more
$ heddle plan gpt2:layers=8,hidden=2048,heads=16,vocab=1024 --batch 64 --dtype f16 --train --machine '1x1 t4 + 1x1 h100 ib=400Gb/s' --top 1 --strategy 'dp=2 dp.shares=equal' | grep '^one '
one device   0.12x the time, 383.7 ms: --devices 1 --strategy 'dp=1 tp=1 pp=1 mb=2 skip=1'
one more       of the last column: how much faster a step would be with one more device of the kind, if no device ever waited; --what-if searches plans with more
