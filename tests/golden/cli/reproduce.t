## long: .ci/run has it without sanitizers
## The order of mBART's pipelines in SuperScaler's paper, by the best plans that `build/reproduce superscaler` finds: 1F1B with as many
## layers on each stage, interlaced in blocks, interlaced (docs/design/reproduction.md).
$ for s in 'dp=4 tp=2 pp=4 mb=32 recompute=selective overlap=pp+dp layers=equal' 'dp=4 tp=2 pp=4 mb=32 schedule=interlaced-block overlap=pp+dp' 'dp=4 tp=2 pp=4 mb=32 schedule=interlaced recompute=selective overlap=pp+dp'; do heddle sim mbart-4.7b --batch 512 --dtype f16 --train --optimizer adam --machine '4x8 v100 ib=100Gb/s' --strategy "$s" | sed -n 's/^time per step *//p'; done
14.37 s
10.91 s
9.817 s
## The longest sequences of GPT-3 1.3B on one device: co-shard fits 1.9 times what recomputation does, and not a step of 128 more.
$ for s in '9856 full' '9984 full' '18944 full coshard=4' '19072 full coshard=4'; do set -- $s; heddle sim gpt3-1.3b --batch 1 --seq $1 --dtype f16 --train --optimizer adam --machine '1x1 v100' --strategy "recompute=$2 $3" 2>&1 | grep -cE '^warning.*(fit|memory)|does not fit' | sed "s/^0/$1 $3 fits/;t;s/^1/$1 $3 does not fit/"; done
9856  fits
9984  does not fit
18944 coshard=4 fits
19072 coshard=4 does not fit
