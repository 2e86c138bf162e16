$ heddle eval mlp-xs:layers=2,hidden=16 --batch 4 --random 7
name  type  shape   least      mean     most  not finite
0     f32   4 x 16      0  0.195864  1.21451           0
$ heddle eval mlp-xs:layers=2,hidden=16 --batch 4 --random 7 --float64 --json
{
  "arrays": [
    {"name": "0", "dtype": "f64", "shape": [4, 16], "min": 0, "mean": 0.1958638297992774, "max": 1.214511189419638, "not_finite": 0}
  ]
}
$ heddle eval mlp-xs:layers=1,hidden=4 --batch 2 --random 1 --train -o out; ls out
name       type  shape      least      mean      most  not finite
loss       f32   scalar   7.53348   7.53348   7.53348           0
h.0.w.new  f32   4 x 4   -1.20846  0.048836  0.839636           0
h.0.w.new.npy
loss.npy
## Different names are different files.
$ printf 'func @main(%%"a/b": f32[4], %%a_b: f32[4]) -> (f32[4], f32[4], f32[4]) {\n  %%"c/d" = relu %%"a/b"\n  %%c_d = neg %%a_b\n  return %%"c/d", %%c_d, %%"c/d"\n}\n' > names.heddle; heddle eval names.heddle --random 1 -o names; ls names
name   type  shape      least      mean     most  not finite
c/d    f32   4              0  0.309186  1.23674           0
c_d    f32   4      -0.264871  0.612988  1.59576           0
c/d.2  f32   4              0  0.309186  1.23674           0
c%2Fd.2.npy
c%2Fd.npy
c_d.npy
