## Rows and columns of an Evoformer's tables over tensor ranks.
$ heddle verify alphafold2:layers=1,hidden=16,heads=2,head_dim=8,ffn=32,pair=16,msa=4,positions=8 --batch 4 --seq 8 --train --optimizer adam --strategy "dp=2 tp=2 axial zero=1" 2>&1 | grep "^plan\|^verdict"
plan       dp=2 tp=2 pp=1 zero=1 axial
verdict    equal: the plan computes what the model computes
$ heddle lower alphafold2:layers=1,hidden=16,heads=2,head_dim=8,ffn=32,pair=16,msa=4,positions=8 --batch 4 --seq 8 --strategy "tp=4 axial" --rank 0 | grep -o '= \(all_[a-z_]*\|reduce_scatter\) .*' | sed 's/%[0-9]*/%x/; s/{peers[^}]*} //'
= all_gather %x over tp plan ^14 : f32[4,1,2,8,8] loc("evoformer/row")
= all_to_all %x over tp plan ^25 : f32[4,4,2,16] loc("evoformer/column")
= all_to_all %x over tp plan ^43 : f32[4,1,8,16] loc("evoformer/column")
= all_to_all %x over tp plan ^51 : f32[4,4,2,16] loc("evoformer/outer")
= all_gather %x over tp plan ^57 : f32[4,4,8,8] loc("evoformer/outer")
= all_gather %x over tp plan ^75 : f32[4,8,8,16] loc("evoformer/outgoing")
= reduce_scatter %x over tp plan ^98 : f32[4,2,8,16] loc("evoformer/incoming")
= all_gather %x over tp plan ^118 : f32[4,1,2,8,8] loc("evoformer/start")
= all_to_all %x over tp plan ^129 : f32[4,8,2,16] loc("evoformer/end")
= all_gather %x over tp plan ^141 : f32[4,1,2,8,8] loc("evoformer/end")
= all_to_all %x over tp plan ^151 : f32[4,2,8,16] loc("evoformer/end")
= all_to_all %x over tp plan ^187 : f32[4,2,8,64] loc("head")
$ heddle verify gpt2 --batch 4 --strategy "tp=2 axial"
error[E0501]: axial: no function that main calls normalises a table of rows and columns
  --> gpt2
  hint: leave out axial
[1]
$ heddle verify alphafold2 --batch 4 --strategy "tp=3 axial"
error[E0502]: axial: neither 256 rows nor 256 columns are divisible by tp=3
  --> alphafold2: evoformer/row
  hint: tp=2
[1]
$ heddle verify alphafold2 --batch 4 --strategy "dp=2 axial"
error[E0509]: axial needs tp > 1; got tp=1
  --> --strategy:1:6
   1 | dp=2 axial
     |      ^
  hint: add tp=2, or leave out axial
[2]
