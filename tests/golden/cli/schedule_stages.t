## long: .ci/run has it without sanitizers
## a schedule that is found: beside the named ones, drawn to scale, and as a file that is a schedule
$ heddle schedule --stages examples/stages.csv --memory 3 --microbatches 8 -o found.csv
schedule      found for examples/stages.csv
places        4
stages        4
microbatches  8
memory        3
time          324.0 us
bound         324.0 us: the work of place 3
gap           none: no schedule of these stages within this memory is faster

schedule              time  bubble  memory  fits  why not
found             324.0 us  19.1 %       3  yes
gpipe             371.0 us  29.4 %      12  no    over the limit
1f1b              362.0 us  27.6 %       4  no    over the limit
interleaved       357.0 us  26.6 %       7  no    over the limit
bfs               371.0 us  29.4 %      12  no    over the limit
zb-h1             324.0 us  19.1 %       6  no    over the limit
zb-h2             313.0 us  16.3 %    10.5  no    over the limit
zb-1p             313.0 us  16.3 %       6  no    over the limit
zb-2p             313.0 us  16.3 %    10.5  no    over the limit
zb-v                                              two stages on every place
zb-v-half                                         two stages on every place
zb-v-min                                          two stages on every place
dualpipev                                         two stages on every place
chimera                                           a second replica of the model
chimera-double                                    a second replica of the model
dualpipe                                          a second replica of the model
gems                                              a second replica of the model
interlaced                                        a first and a last stage on all places
interlaced-block                                  a first and a last stage on all places
3f1b                                              several passes of the forward

place  stages  tasks      idle  bubble  memory  activations
    0  0          24  84.00 us  25.9 %       3            3
    1  1          24  20.00 us   6.2 %       3            3
    2  2          24  108.0 us  33.3 %       3            3
    3  3          24  36.00 us  11.1 %       3            2
$ heddle schedule found.csv | head -n 4
schedule      found.csv
places        4
stages        4
microbatches  8
$ head -n 2 found.csv
# edges 0-2 1-2 2-3
0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0F4,0I2,0W2,0F5,0I3,0W3,0F6,0I4,0W4,0F7,0I5,0W5,0I6,0W6,0I7,0W7
$ heddle schedule --stages examples/stages.csv --memory 3 --mb 8 -o - | cmp - found.csv
$ printf 'stage,forward_us,input_us,weight_us,memory\n0,1,2,0,1\n1,1,2,0,1\n2,2.5,5,0,1\n' > chain.csv
$ heddle schedule --stages chain.csv --mb 4 --picture
schedule      found for chain.csv
places        3
stages        3
microbatches  4
time          36.00 us
bound         36.00 us: the work of place 2
gap           none: no schedule of these stages within this memory is faster

a column is 500.0 ns
place 0  00112233..............................aAAA......bBBB......cCCC......dDDD
place 1  ..00112233........................aAAA......bBBB......cCCC......dDDD....
place 2  ....00000111112222233333aAAAAAAAAAbBBBBBBBBBcCCCCCCCCCdDDDDDDDDD........

schedule              time  bubble  memory  fits  why not
found             36.00 us  50.0 %       4  yes
gpipe             36.00 us  50.0 %       4  yes
1f1b              36.00 us  50.0 %       3  yes
interleaved       36.00 us  50.0 %       4  yes
bfs               36.00 us  50.0 %       4  yes
zb-h1             36.00 us  50.0 %       3  yes
zb-h2             36.00 us  50.0 %       4  yes
zb-1p             36.00 us  50.0 %       3  yes
zb-2p             36.00 us  50.0 %       4  yes
zb-v                                              two stages on every place
zb-v-half                                         two stages on every place
zb-v-min                                          two stages on every place
dualpipev                                         two stages on every place
chimera                                           chimera needs an even number of places; got 3
chimera-double                                    chimera-double needs an even number of places; got 3
dualpipe                                          dualpipe needs 2 microbatches for each place; got 4 for 3 places
gems                                              gems needs an even number of places; got 3
interlaced                                        a first and a last stage on all places
interlaced-block                                  a first and a last stage on all places
3f1b                                              several passes of the forward

place  stages  tasks      idle  bubble  memory  activations
    0  0           8  24.00 us  66.7 %       4            4
    1  1           8  24.00 us  66.7 %       4            4
    2  2           8  6.000 us  16.7 %       4            4
$ heddle schedule --stages chain.csv --mb 4 --memory 1 --json
{
  "schedule": "found for chain.csv",
  "places": 3,
  "stages": 3,
  "microbatches": 4,
  "memory_limit": 1,
  "time_ps": 54000000,
  "bound_ps": 54000000,
  "bound_of": "chain",
  "bound_place": null,
  "gap": 0,
  "stopped": false,
  "by_schedule": [
    {"schedule": "found", "time_ps": 54000000, "bubble": 0.6666666666666667, "memory": 1, "fits": true, "why": null},
    {"schedule": "gpipe", "time_ps": 36000000, "bubble": 0.5, "memory": 4, "fits": false, "why": "over the limit"},
    {"schedule": "1f1b", "time_ps": 36000000, "bubble": 0.5, "memory": 3, "fits": false, "why": "over the limit"},
    {"schedule": "interleaved", "time_ps": 36000000, "bubble": 0.5, "memory": 4, "fits": false, "why": "over the limit"},
    {"schedule": "bfs", "time_ps": 36000000, "bubble": 0.5, "memory": 4, "fits": false, "why": "over the limit"},
    {"schedule": "zb-h1", "time_ps": 36000000, "bubble": 0.5, "memory": 3, "fits": false, "why": "over the limit"},
    {"schedule": "zb-h2", "time_ps": 36000000, "bubble": 0.5, "memory": 4, "fits": false, "why": "over the limit"},
    {"schedule": "zb-1p", "time_ps": 36000000, "bubble": 0.5, "memory": 3, "fits": false, "why": "over the limit"},
    {"schedule": "zb-2p", "time_ps": 36000000, "bubble": 0.5, "memory": 4, "fits": false, "why": "over the limit"},
    {"schedule": "zb-v", "time_ps": null, "bubble": null, "memory": null, "fits": null, "why": "two stages on every place"},
    {"schedule": "zb-v-half", "time_ps": null, "bubble": null, "memory": null, "fits": null, "why": "two stages on every place"},
    {"schedule": "zb-v-min", "time_ps": null, "bubble": null, "memory": null, "fits": null, "why": "two stages on every place"},
    {"schedule": "dualpipev", "time_ps": null, "bubble": null, "memory": null, "fits": null, "why": "two stages on every place"},
    {"schedule": "chimera", "time_ps": null, "bubble": null, "memory": null, "fits": null, "why": "chimera needs an even number of places; got 3"},
    {"schedule": "chimera-double", "time_ps": null, "bubble": null, "memory": null, "fits": null, "why": "chimera-double needs an even number of places; got 3"},
    {"schedule": "dualpipe", "time_ps": null, "bubble": null, "memory": null, "fits": null, "why": "dualpipe needs 2 microbatches for each place; got 4 for 3 places"},
    {"schedule": "gems", "time_ps": null, "bubble": null, "memory": null, "fits": null, "why": "gems needs an even number of places; got 3"},
    {"schedule": "interlaced", "time_ps": null, "bubble": null, "memory": null, "fits": null, "why": "a first and a last stage on all places"},
    {"schedule": "interlaced-block", "time_ps": null, "bubble": null, "memory": null, "fits": null, "why": "a first and a last stage on all places"},
    {"schedule": "3f1b", "time_ps": null, "bubble": null, "memory": null, "fits": null, "why": "several passes of the forward"}
  ],
  "by_place": [
    {"place": 0, "stages": "0", "tasks": 8, "idle_ps": 42000000, "bubble": 0.7777777777777778, "memory": 1, "activations": 1},
    {"place": 1, "stages": "1", "tasks": 8, "idle_ps": 42000000, "bubble": 0.7777777777777778, "memory": 1, "activations": 1},
    {"place": 2, "stages": "2", "tasks": 8, "idle_ps": 24000000, "bubble": 0.4444444444444444, "memory": 1, "activations": 1}
  ]
}
$ printf 'stage,forward_us,input_us,weight_us,memory,places\n0,1,1,0,0,0+1\n1,1,3,0,1,0\n2,1,3,0,1,1\n3,1,1,0,0,0+1\n' > shared.csv
$ heddle schedule --stages shared.csv --mb 4 --memory 2 --picture -o found.csv
schedule      found for shared.csv
places        2
stages        4
microbatches  4
memory        2
time          38.00 us
bound         38.00 us: the search left no order out
gap           none: no schedule of these stages within this memory is faster

a column is 1.000 us
place 0  0 0'. 0"a"1 1'. . . 1"b"2 a'A'A'2'. 2"c"3 b'B'B'3'. 3"d"c'C'C'a b c d'D'D'd
place 1  0 . 0'0"a"1 a'A'A'1'1"b"2 b'B'B'. 2'2"c"3 c'C'C'. 3'3"d"d'D'D'a b c . . . d

schedule              time  bubble  memory  fits  why not
found             38.00 us  15.8 %       2  yes
gpipe                                             one stage on every place
1f1b                                              one stage on every place
interleaved                                       stages on other places
bfs                                               stages on other places
zb-h1                                             stages on other places
zb-h2                                             one stage on every place
zb-1p                                             one stage on every place
zb-2p                                             one stage on every place
zb-v                                              stages on other places
zb-v-half                                         stages on other places
zb-v-min                                          stages on other places
dualpipev                                         stages on other places
chimera                                           one stage on every place
chimera-double                                    one stage on every place
dualpipe                                          one stage on every place
gems                                              one stage on every place
interlaced        36.00 us  11.1 %       3  no    over the limit
interlaced-block  42.00 us  23.8 %       2  yes
3f1b                                              several passes of the forward

place  stages  tasks      idle  bubble  memory  activations
    0  0 1 3      24  6.000 us  15.8 %       2            7
    1  0 2 3      24  6.000 us  15.8 %       1            6
$ cat found.csv
0F0,1F0,3F0,3B0,0F1,1F1,3F1,3B1,0F2,1B0,1F2,3F2,3B2,0F3,1B1,1F3,3F3,3B3,1B2,0B0,0B1,0B2,1B3,0B3
0F0,2F0,3F0,3B0,0F1,2B0,2F1,3F1,3B1,0F2,2B1,2F2,3F2,3B2,0F3,2B2,2F3,3F3,3B3,2B3,0B0,0B1,0B2,0B3
$ (echo stage,forward_us,input_us,weight_us,memory; for k in 0 1 2 3 4 5 6 7; do echo $k,100,100,100,1; done) > equal.csv; heddle schedule --stages equal.csv --mb 32 --memory 4 --time 1 | head -n 8
schedule      found for equal.csv
places        8
stages        8
microbatches  32
memory        4
time          15.10 ms
bound         14.50 ms: the work of place 0
gap           4.14 %: no schedule of these stages is faster by more; a longer --time may find a better one
$ heddle schedule --stages examples/stages.csv --mb 2 --picture | head -n 14
schedule      found for examples/stages.csv
places        4
stages        4
microbatches  2
time          108.0 us
bound         108.0 us: the work of place 1
gap           none: no schedule of these stages within this memory is faster

a column is 1.000 us
place 0  00000000001111111111........................................aAAAAAAAAAAAAAAAAAAA....bBBBBBBBBBBBBBBBBBBB....
place 1  0000000000000011111111111111................................aAAAAAAAAAAAAAAAAAAAAAAAbBBBBBBBBBBBBBBBBBBBBBBB
place 2  ...............000000000.....111111111............aAAAAAAAAAAAAAAAAA......bBBBBBBBBBBBBBBBBB................
place 3  .........................000000000000aAAAAAAAAAAA111111111111bBBBBBBBBBBBAAAAAAAAAAAABBBBBBBBBBBB...........

## stages on all places: interlaced and interlaced-block take part, and not where the stages between lie otherwise
$ printf 'stage,forward_us,input_us,weight_us,memory,places\n0,5,5,0,0,0+1+2+3\n1,10,20,0,1,0\n2,10,20,0,1,1\n3,10,20,0,1,2\n4,10,20,0,1,3\n5,10,20,0,0,0+1+2+3\n' > wide.csv
$ heddle schedule --stages wide.csv --mb 6 --memory 6 -o found.csv | grep -E '^(time|found|interlaced)'
time          510.0 us
found             510.0 us  17.6 %       6  yes
interlaced        510.0 us  17.6 %       6  yes
interlaced-block  560.0 us  25.0 %       4  yes
$ sed '3s/0$/1/;4s/1$/0/' wide.csv > swapped.csv; heddle schedule --stages swapped.csv --mb 6 --memory 6 | grep -E '^(time|found|interlaced)'
time          510.0 us
found             510.0 us  17.6 %       6  yes
interlaced                                        stages on other places
interlaced-block                                  stages on other places
## two towers that have nothing to do with each other share places: one may wait for the other, so less memory does
$ printf 'stage,forward_us,input_us,weight_us,memory,place,after\n0,1,1,1,1,0,\n1,1,1,0,1,1,0\n2,1,2,0,1,0,\n3,1,1,0,1,1,2\n' > towers.csv
$ heddle schedule --stages towers.csv --mb 3 --memory 1 -o - | tee found.csv
# edges 0-1 2-3
2F0,2B0,0F0,0I0,0W0,2F1,2B1,0F1,0I1,0W1,2F2,2B2,0F2,0I2,0W2
3F0,3B0,1F0,1B0,3F1,3B1,1F1,1B1,3F2,3B2,1F2,1B2
$ heddle schedule found.csv | head -n 5
schedule      found.csv
places        2
stages        4
microbatches  3
time          36, where a forward of a stage takes 1 and a backward 2
$ heddle schedule --stages towers.csv --mb 3 --memory 0.5
error[E0118]: place 0: one microbatch takes 1 up to stage 0, but the limit is 0.5
  --> towers.csv:2:1
   2 | 0,1,1,1,1,0,
     | ^
  hint: a higher limit, smaller microbatches, or fewer stages on the place
[1]
## no gradient goes from stage 2 to stage 1, so the backwards of 0 and 1 wait for their forwards alone, and a limit counts each pass by itself
$ printf 'stage,forward_us,input_us,weight_us,memory,place,after,send_us,no_gradient\n0,1,2,0,1,0,,10,\n1,1,2,0,1,1,0,10,\n2,1,2,0,1,0,1,10,1\n3,1,2,0,1,1,2,0,\n' > passes.csv
$ heddle schedule --stages passes.csv --mb 1 --memory 1 -o - 
# edges 0-1 1>2 2-3
0F0,0B0,2F0,2B0
1F0,1B0,3F0,3B0
$ heddle schedule interleaved --stages passes.csv --mb 2 -o passes_order.csv | grep ^time; cat passes_order.csv; heddle schedule passes_order.csv | grep ^time
time          55.00 us
# edges 0-1 1>2 2-3
0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1
1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1
time          15, where a forward of a stage takes 1 and a backward 2
$ printf '# edges 0>1\n0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n' > free.csv; heddle schedule free.csv --picture | grep ^place
places        2
place 0  0aA1bB...
place 1  .0..1aAbB
place  stages  tasks  idle  bubble  activations
$ printf 'stage,forward_us,input_us,weight_us,memory,no_gradient\n0,1,2,0,1,\n1,1,2,0,1,\n2,1,2,0,1,0\n' > bad.csv; heddle schedule --stages bad.csv --mb 1
error[E0118]: stage 2 gives stage 0 no gradient, but does not read it
  --> bad.csv:4:11
   4 | 2,1,2,0,1,0
     |           ^
  hint: no_gradient names some of the stages of `after`
[1]
## a stage on more places than the one before it: the others have not what is sent; its gradient they all have
$ printf 'stage,forward_us,input_us,weight_us,memory,places,after,send_us\n0,1,1,0,1,0,,100\n1,1,1,0,1,0+1+2+3,0,0\n' > more.csv; heddle schedule --stages more.csv --mb 1 | grep -e ^time -e ^bound
time          104.0 us
bound         104.0 us: what every microbatch must wait for
$ printf 'stage,forward_us,input_us,weight_us,memory,places,after,send_us\n0,1,1,0,1,0+1+2+3,,100\n1,1,1,0,1,0,0,0\n' > fewer.csv; heddle schedule --stages fewer.csv --mb 1 | grep -e ^time -e ^bound
time          104.0 us
bound         104.0 us: what every microbatch must wait for
$ printf 'stage,forward_us,input_us,weight_us,memory,place,after\n0,1,1,0,1,0,\n1,1,1,0,1,0,\n2,1,1,0,1,0,\n3,1,1,0,1,0,\n4,1,1,0,0,1,0+1\n5,1,1,0,0,1,1+2\n6,1,1,0,0,1,2+3\n7,1,1,0,0,1,3+0\n' > ring.csv
$ heddle schedule --stages ring.csv --mb 1 --memory 2
error[E0118]: no order was found in which one microbatch takes no more than 2
  --> ring.csv:2:1
   2 | 0,1,1,0,1,0,
     | ^
  hint: a higher limit, or smaller microbatches
[1]
$ heddle schedule --stages ring.csv --mb 1 --memory 3 | head -n 6
schedule      found for ring.csv
places        2
stages        8
microbatches  1
memory        3
time          14.00 us
## what is wrong with the file
$ heddle schedule --stages none.csv --mb 4
error[E0101]: cannot read 'none.csv': No such file or directory
[1]
$ : > empty.csv; heddle schedule --stages empty.csv --mb 4
error[E0118]: the file is empty
  --> empty.csv
[1]
$ printf 'stage,forward_us,input_us,memory\n0,1,2,1\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: column 'weight_us' is missing
  --> bad.csv:1:1
   1 | stage,forward_us,input_us,memory
     | ^
  hint: the first line names the columns: stage,forward_us,input_us,weight_us,memory[,place][,after][,send_us][,no_gradient]
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory,color\n0,1,2,0,1,red\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: unknown column 'color'
  --> bad.csv:1:44
   1 | stage,forward_us,input_us,weight_us,memory,color
     |                                            ^
  hint: the first line names the columns: stage,forward_us,input_us,weight_us,memory[,place][,after][,send_us][,no_gradient]
[1]
$ printf 'stage,forward,input_us,weight_us,memory\n0,1,2,0,1\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: unknown column 'forward'
  --> bad.csv:1:7
   1 | stage,forward,input_us,weight_us,memory
     |       ^
  hint: did you mean forward_us? The first line names the columns: stage,forward_us,input_us,weight_us,memory[,place][,after][,send_us][,no_gradient]
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory,place,places\n0,1,2,0,1,0,0\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: place and places are one column: give one of them
  --> bad.csv:1:1
   1 | stage,forward_us,input_us,weight_us,memory,place,places
     | ^
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: no stage stands below the names of the columns
  --> bad.csv:1:1
   1 | stage,forward_us,input_us,weight_us,memory
     | ^
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory\n0,1,2,0,1\n1,1,-2,0,1\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: input_us: '-2' is not a number from 0 to 100,000,000 with at most 6 digits after the point
  --> bad.csv:3:5
   3 | 1,1,-2,0,1
     |     ^
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory\n0,1,2,0,1\n1,1,2,0\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: fewer cells than the 5 columns of the first line
  --> bad.csv:3:1
   3 | 1,1,2,0
     | ^
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory\n0,1,2,0,1\n1,1,2,0,1.2345678\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: memory: '1.2345678' is not a number from 0 to 100,000,000 with at most 6 digits after the point
  --> bad.csv:3:9
   3 | 1,1,2,0,1.2345678
     |         ^
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory\n0,0,0,0,1\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: no stage takes any time
  --> bad.csv:2:1
   2 | 0,0,0,0,1
     | ^
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory\n0,1,2,0,1\n0,1,2,0,1\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: stage 0 is there twice
  --> bad.csv:3:1
   3 | 0,1,2,0,1
     | ^
  note: here first
    --> bad.csv:2:1
     2 | 0,1,2,0,1
       | ^
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory\nfirst,1,2,0,1\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: stage: 'first' is not the number of a stage, 0 to 1023
  --> bad.csv:2:1
   2 | first,1,2,0,1
     | ^
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory\n0,1,2,0,1\n2,1,2,0,1\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: stage 2 of 2 stages
  --> bad.csv:3:1
   3 | 2,1,2,0,1
     | ^
  hint: stages count from 0, and every one of them has a line
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory,place\n0,1,2,0,1,0\n1,1,2,0,1,2\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: 3 places, but no stage lies on place 1
  --> bad.csv:1:1
   1 | stage,forward_us,input_us,weight_us,memory,place
     | ^
  hint: places count from 0
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory,place\n0,1,2,0,1,0+0\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: place: '0+0' is not a list in which every number is there once
  --> bad.csv:2:11
   2 | 0,1,2,0,1,0+0
     |           ^
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory,place\n0,1,2,0,1,\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: place: '' is not a place, or several as 0+1
  --> bad.csv:2:11
   2 | 0,1,2,0,1,
     |           ^
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory,after\n0,1,2,0,1,\n1,1,2,0,1,4\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: stage 1 reads stage 4 of 2 stages
  --> bad.csv:3:11
   3 | 1,1,2,0,1,4
     |           ^
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory,after\n0,1,2,0,1,\n1,1,2,0,1,0+2\n2,1,2,0,1,1\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: a cycle: stage 1 reads stage 2, which waits for stage 1
  --> bad.csv:3:11
   3 | 1,1,2,0,1,0+2
     |           ^
  note: stage 2 is here
    --> bad.csv:4:11
     4 | 2,1,2,0,1,1
       |           ^
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory,after\n0,1,2,0,1,1\n1,1,2,0,1,\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: stage 0 reads stage 1, a later one
  --> bad.csv:2:11
   2 | 0,1,2,0,1,1
     |           ^
  hint: number the stages so that each reads earlier ones only
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory,after\n0,1,2,0,1,0\n' > bad.csv; heddle schedule --stages bad.csv --mb 4
error[E0118]: a cycle: stage 0 reads stage 0, which waits for stage 0
  --> bad.csv:2:11
   2 | 0,1,2,0,1,0
     |           ^
[1]
$ printf 'stage,forward_us,input_us,weight_us,memory,place\n0,1,2,0,1,0\n1,1,2,0,1.5,0\n' > bad.csv; heddle schedule --stages bad.csv --mb 4 --memory 2
error[E0118]: place 0: one microbatch takes 2.5 up to stage 1, but the limit is 2
  --> bad.csv:3:1
   3 | 1,1,2,0,1.5,0
     | ^
  hint: a higher limit, smaller microbatches, or fewer stages on the place
[1]
$ heddle schedule --stages chain.csv --mb 100000
error[E0901]: 3 stages x 100000 microbatches x 3 tasks are 900000 tasks; at most 65536
  --> chain.csv:2:1
   2 | 0,1,2,0,1
     | ^
  hint: fewer microbatches: the steady state is the same
[1]
## what does not go together
$ heddle schedule
error[E0801]: `heddle schedule` needs SCHEDULE, or --stages FILE
  hint: heddle schedule --help
[2]
$ heddle schedule --stages chain.csv
error[E0801]: `heddle schedule --stages` needs --mb
  hint: --mb 8
[2]
$ heddle schedule --stages chain.csv --mb 4 --pp 3
error[E0801]: --pp cannot be combined with --stages: the file says what there is
  hint: leave it out
[2]
$ heddle schedule 1f1b --stages chain.csv --mb 4
schedule      1f1b for chain.csv
places        3
stages        3
microbatches  4
time          36.00 us

place  stages  tasks      idle  bubble  memory  activations
    0  0           8  24.00 us  66.7 %       3            3
    1  1           8  24.00 us  66.7 %       2            2
    2  2           8  6.000 us  16.7 %       1            1
$ heddle schedule 1f1b --mb 4 --pp 4 --memory 3
error[E0801]: --memory applies to --stages only
  hint: add --stages FILE, or leave it out
[2]
$ heddle schedule --stages chain.csv --mb 4 --memory much
error[E0118]: memory: 'much' is not a number from 0 to 100,000,000
  hint: in the unit of the column memory, such as 8 or 2.5
[1]
## A schedule whose file has another name.
$ cp examples/zbv.csv il.out; heddle schedule il.out --stages examples/stages.csv
error[E0801]: il.out is a file, but its name does not end in .csv
  hint: rename it so
[2]
$ heddle schedule gpipe --pp 2 --mb 2 >gpipe; heddle schedule gpipe --pp 2 --mb 2 | cmp - gpipe
## All columns, and one of them again.
$ printf 'stage,forward_us,input_us,weight_us,memory,place,places,after,send_us,no_gradient,stage\n0,1,1,1,1,0,0,,1,,0\n' >all.csv; heddle schedule --stages all.csv --mb 4
error[E0118]: repeated column 'stage'
  --> all.csv:1:83
   1 | stage,forward_us,input_us,weight_us,memory,place,places,after,send_us,no_gradient,stage
     |                                                                                   ^
  hint: the first line names the columns: stage,forward_us,input_us,weight_us,memory[,place][,after][,send_us][,no_gradient]
[1]
