## needs MPI, long
## States are zero, as they are in a run; where there is torch, the losses are those of the run.
$ m='gpt2:layers=3,hidden=32,heads=4,vocab=64,positions=16'; set -- $m --batch 8 --seq 16 --train --optimizer adam --lr 0.01 --strategy dp=1; heddle export "$@" --seed 7 --arrays start -o loss.py; for f in start/*.[mv].npy; do tail -c +129 $f | tr -d '\000'; done | wc -c; heddle run "$@" --seed 7 --steps 3 | awk '/^ +[123] / { printf "%.4f\n", $2 }' >want; cat want; for p in python3 /usr/bin/python3; do if $p -c 'import torch' 2>/dev/null; then $p loss.py --arrays start --steps 3 | awk '/^step/ { printf "%.4f\n", $4 }' | cmp - want; break; fi; done
0
4.4811
4.0219
3.8746
