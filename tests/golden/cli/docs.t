$ heddle help
sh: 1: heddle: Permission denied
[127]
$ heddle version
sh: 1: heddle: Permission denied
[127]
$ heddle version --json
sh: 1: heddle: Permission denied
[127]
$ heddle help --json
sh: 1: heddle: Permission denied
[127]
$ heddle help machines --json
sh: 1: heddle: Permission denied
[127]
$ heddle show --help
sh: 1: heddle: Permission denied
[127]
$ heddle choices
sh: 1: heddle: Permission denied
[127]
$ heddle ops matmul
sh: 1: heddle: Permission denied
[127]
$ heddle ops all_reduce
sh: 1: heddle: Permission denied
[127]
$ heddle ops layernorm --json
sh: 1: heddle: Permission denied
[127]
$ heddle ops | head -5
sh: 1: heddle: Permission denied
$ heddle explain E0502
sh: 1: heddle: Permission denied
[127]
$ heddle explain E0502 --json
sh: 1: heddle: Permission denied
[127]
$ heddle machines
sh: 1: heddle: Permission denied
[127]
$ heddle machines dgx-h100
sh: 1: heddle: Permission denied
[127]
$ heddle machines "2x8 h100 ib=8x400Gb/s + 1x4 a40" --json
sh: 1: heddle: Permission denied
[127]
$ heddle machines --json | head -3
sh: 1: heddle: Permission denied
$ heddle ops --json | head -3
sh: 1: heddle: Permission denied
$ heddle explain --json | head -3
sh: 1: heddle: Permission denied
$ heddle show --list | head -5
sh: 1: heddle: Permission denied
$ heddle show --list --json | head -3
sh: 1: heddle: Permission denied
