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
name  type  shape      least      mean      most  not finite
0     f32   scalar   7.53348   7.53348   7.53348           0
1     f32   4 x 4   -1.20846  0.048836  0.839636           0
0.npy
1.npy
