// loops_body.h - the loops of loops.h for one type and one set of registers. loops.c includes it with REAL, the type;
// NAME(x), x's name in this set; OF(f32, f64), what differs.

// ---- functions -------------------------------------------------------------------------------------------
// Both types are read as integers of their own width. MAGIC: added to a number of small size, leaves it rounded to an
// integer in the low bits.
#define BITS     OF(u32, u64)
#define MAGIC    OF(12582912.f, 6755399441055744.)
#define MANTISSA OF(23, 52)
#define BIAS     OF(127u, 1023u)

// 2^n, n a whole number within the exponents.
static inline REAL NAME(two_to)(REAL n) {
  union {
    REAL x;
    BITS b;
  } u = {.x = n + MAGIC};
  u.b = (u.b + BIAS) << MANTISSA;
  return u.x;
}

// e^r - 1 for |r| <= ln 2 / 2. Cephes' approximations.
static inline REAL NAME(expm1_small)(REAL r) {
  const REAL q = r * r;
#if IS_F32
  return ((((((1.9875691500e-4f * r + 1.3981999507e-3f) * r + 8.3334519073e-3f) * r + 4.1665795894e-2f) * r +
            1.6666665459e-1f) *
               r +
           5.0000001201e-1f) *
          q) +
         r;
#else
  const REAL p =
      r * ((1.26177193074810590878e-4 * q + 3.02994407707441961300e-2) * q + 9.99999999999999999910e-1);
  const REAL d =
      ((3.00198505138664455042e-6 * q + 2.52448340349684104192e-3) * q + 2.27265548208155028766e-1) * q +
      2.00000000000000000009;
  return 2 * p / (d - p);
#endif
}

// x = n ln 2 + r
static inline REAL NAME(reduce)(REAL x, REAL *n) {
  *n = (x * OF(1.44269504088896341f, 1.4426950408889634073599) + MAGIC) - MAGIC;
  return (x - *n * OF(0.693359375f, 6.93145751953125e-1)) -
         *n * OF(-2.12194440e-4f, 1.42860682030941723212e-6);
}

static inline REAL NAME(exp)(REAL x) {
  const REAL top = OF(104, 746);
  REAL n;
  x = x > top ? top : x < -top ? -top : x;
  const REAL p = 1 + NAME(expm1_small)(NAME(reduce)(x, &n));
  const REAL half = (n * (REAL)0.5 + MAGIC) - MAGIC; // 2^n itself may be outside the exponents
  return p * NAME(two_to)(half) * NAME(two_to)(n - half);
}

static inline REAL NAME(tanh)(REAL x) {
  const REAL top = OF(10, 20); // 1 from there
  REAL n;
  x = x > top ? top : x < -top ? -top : x;
  const REAL r = NAME(reduce)(2 * x, &n), s = NAME(two_to)(n), e = s * NAME(expm1_small)(r) + (s - 1);
  return e / (e + 2);
}

static inline REAL NAME(sigmoid)(REAL x) { return 1 / (1 + NAME(exp)(-x)); }

static inline REAL NAME(gelu_tanh)(REAL x) { // x (1 + tanh(u)) / 2
  return x * NAME(sigmoid)((REAL)(2 * 0.79788456080286535588) * (x + (REAL)0.044715 * x * x * x));
}
static inline REAL NAME(gelu_tanh_slope)(REAL x) { // x sigmoid(u(x))
  const REAL k = (REAL)(2 * 0.79788456080286535588), c = (REAL)0.044715 * x * x,
             s = NAME(sigmoid)(k * x * (1 + c));
  return s + x * s * (1 - s) * k * (1 + 3 * c);
}
static inline REAL NAME(silu_slope)(REAL x) {
  const REAL s = NAME(sigmoid)(x);
  return s * (1 + x * (1 - s));
}

// The normal distribution and the error function, by polynomials that tools/fit-erf.py has found: of P(-a) e^(a^2/2) / t in s,
// where t = 1 / (1 + a/4), in f32 1 / (1 + 0.3 a), and s is t between -1 and 1; and of erf(x) / x in x^2, for |x| <= 1.
// clang-format off
#if IS_F32
#define TAIL(T) \
  T(-6.3570877387e-6) T(1.7376910581e-6) T(8.1184288932e-5) T(-4.3299827308e-5) T(-0.0010075167827) \
  T(-0.00029626055728) T(0.015163802948) T(0.067650728179) T(0.16251608313) T(0.25593989615)
#define MIDDLE(T) \
  T(7.8758750627e-5) T(-0.00080168642872) T(0.0051890874234) T(-0.026854212011) T(0.11283594715) \
  T(-0.37612626667) T(1.1283791658)
#else
#define TAIL(T) \
  T(-2.81667530528179725243e-11) T(-6.58944070281026059746e-11) T(4.20405473140937745377e-10) \
  T(3.90994683098861502772e-10) T(-3.44355548612177644015e-9) T(8.25576489885697461514e-10) \
  T(2.09740065744829210302e-8) T(-2.88225726662107749864e-8) T(-1.08849299702582164244e-7) \
  T(3.03494863999413331401e-7) T(5.46004681844996926925e-7) T(-0.00000261598345047067610574) \
  T(-0.00000340557326396545526564) T(0.0000221175447981667750417) T(0.0000368020157471376624845) \
  T(-0.000184355222989148702529) T(-0.000625364764184885212781) T(0.00081471154751153438653) \
  T(0.0107265816942354986424) T(0.0390924888669858735711) T(0.0909766842067596365353) \
  T(0.155311025556181341296) T(0.203834599210629227111)
#define MIDDLE(T) \
  T(-7.79589882700214224164e-10) T(1.37200645467776856042e-8) T(-1.62084838018717059017e-7) \
  T(0.00000164474247033173624102) T(-0.0000149247369074196603376) T(0.000120552949048397079165) \
  T(-0.000854832597538969208056) T(0.00522397760711642273211) T(-0.0268661706432377703602) \
  T(0.112837916709450062655) T(-0.376126389031835404385) T(1.12837916709551256654)
#endif
// clang-format on
#define T(c, x) p = p * (x) + (REAL)(c);

// e^(-a^2/2): a^2 in two parts, for its rounding would count a^2 times.
static inline REAL NAME(bell)(REAL a) {
  const REAL c = a * OF(4097.f, 134217729.), high = c - (c - a), low = (a - high) * (a + high);
  REAL n;
  const REAL r = NAME(reduce)(high * high * (REAL)-0.5, &n) - low * (REAL)0.5;
  const REAL half = (n * (REAL)0.5 + MAGIC) - MAGIC;
  return (1 + NAME(expm1_small)(r)) * NAME(two_to)(half) * NAME(two_to)(n - half);
}

// P(-a), a >= 0, of which bell is NAME(bell)(a).
static inline REAL NAME(tail)(REAL a, REAL bell) {
  const REAL t = 1 / (1 + OF(0.3f, 0.25) * a),
             s = t * OF(2.4597701149f, 2.20512820512820512821) - OF(1.4597701149f, 1.20512820512820512821);
  REAL p = 0;
#define TERM(c) T(c, s)
  TAIL(TERM)
#undef TERM
  return t * p * bell;
}

static inline REAL NAME(size)(REAL x, REAL top) {
  const REAL a = x < 0 ? -x : x;
  return a > top ? top : a;
}

// x P(x) and its slope; beyond `top` the tail is nothing.
static inline REAL NAME(gelu_exact)(REAL x) {
  const REAL a = NAME(size)(x, OF(14.5f, 39)), p = NAME(tail)(a, NAME(bell)(a));
  return x * (x < 0 ? p : 1 - p);
}
static inline REAL NAME(gelu_exact_slope)(REAL x) {
  const REAL a = NAME(size)(x, OF(14.5f, 39)), bell = NAME(bell)(a), p = NAME(tail)(a, bell);
  const REAL way = a * (REAL)0.39894228040143267794 * bell;
  return x < 0 ? p - way : 1 - p + way;
}

static inline REAL NAME(erf)(REAL x) {
  const REAL a = NAME(size)(x, OF(10, 27)), z = a * (REAL)1.41421356237309504880, u = x * x;
  const REAL far = 1 - 2 * NAME(tail)(z, NAME(bell)(z));
  REAL p = 0;
#define TERM(c) T(c, u)
  MIDDLE(TERM)
#undef TERM
  return a <= 1 ? x * p : x < 0 ? -far : x > 0 ? far : x;
}
#undef T
#undef TAIL
#undef MIDDLE

// ---- element by element ----------------------------------------------------------------------------------
// Every unary operator on floats. Those of libm are computed in f64.
#define UNARY(DO)                                                                                            \
  DO(neg, -x)                                                                                                \
  DO(abs, x < 0 ? -x : x == 0 ? 0 : x)                                                                       \
  DO(exp, NAME(exp)(x))                                                                                      \
  DO(log, (REAL)log(x))                                                                                      \
  DO(sqrt, OF(sqrtf, sqrt)(x))                                                                               \
  DO(rsqrt, 1 / OF(sqrtf, sqrt)(x))                                                                          \
  DO(recip, 1 / x)                                                                                           \
  DO(tanh, NAME(tanh)(x))                                                                                    \
  DO(sigmoid, NAME(sigmoid)(x))                                                                              \
  DO(relu, x < 0 ? 0 : x)                                                                                    \
  DO(leaky_relu, x < 0 ? alpha * x : x)                                                                      \
  DO(silu, x *NAME(sigmoid)(x))                                                                              \
  DO(erf, NAME(erf)(x))                                                                                      \
  DO(sin, (REAL)sin(x))                                                                                      \
  DO(cos, (REAL)cos(x))                                                                                      \
  DO(tan, (REAL)tan(x))                                                                                      \
  DO(asin, (REAL)asin(x))                                                                                    \
  DO(acos, (REAL)acos(x))                                                                                    \
  DO(atan, (REAL)atan(x))                                                                                    \
  DO(sinh, (REAL)sinh(x))                                                                                    \
  DO(cosh, (REAL)cosh(x))                                                                                    \
  DO(asinh, (REAL)asinh(x))                                                                                  \
  DO(acosh, (REAL)acosh(x))                                                                                  \
  DO(atanh, (REAL)atanh(x))                                                                                  \
  DO(softplus, (REAL)(fmax(x, 0) + log1p(exp(-fabs((double)x)))))                                            \
  DO(floor, (REAL)floor(x))                                                                                  \
  DO(ceil, (REAL)ceil(x))                                                                                    \
  DO(round, (REAL)rint(x))                                                                                   \
  DO(sign, x > 0 ? 1 : x < 0 ? -1 : x)

static bool NAME(unary)(const elementwise *e, void *to, const void *from, i64 n) {
  const REAL alpha = (REAL)e->alpha, *v = from;
  REAL *y = to;
#define EACH_OF(expr)                                                                                        \
  {                                                                                                          \
    for (i64 i = 0; i < n; i++) {                                                                            \
      const REAL x = v[i];                                                                                   \
      y[i] = expr;                                                                                           \
    }                                                                                                        \
    return true;                                                                                             \
  }
  switch (e->op) {
#define DO(name, expr)                                                                                       \
  case OP_##name: EACH_OF(expr)
    UNARY(DO)
#undef DO
  case OP_gelu:
    if (e->tanh_form) EACH_OF(NAME(gelu_tanh)(x))
    EACH_OF(NAME(gelu_exact)(x))
  default: return false;
  }
#undef EACH_OF
}
#undef UNARY

// z = x OP y over one run; the common case is known to the compiler.
#define EACH(Z, expr)                                                                                        \
  {                                                                                                          \
    Z *z = to;                                                                                               \
    if (sx == 1 && sy == 1)                                                                                  \
      for (i64 i = 0; i < n; i++) {                                                                          \
        const REAL x = xs[i], y = ys[i];                                                                     \
        z[i] = (Z)(expr);                                                                                    \
      }                                                                                                      \
    else if (sx == 1 && sy == 0 && n > 0) {                                                                  \
      const REAL y = *ys;                                                                                    \
      for (i64 i = 0; i < n; i++) {                                                                          \
        const REAL x = xs[i];                                                                                \
        z[i] = (Z)(expr);                                                                                    \
      }                                                                                                      \
    } else                                                                                                   \
      for (i64 i = 0; i < n; i++) {                                                                          \
        const REAL x = xs[i * sx], y = ys[i * sy];                                                           \
        z[i] = (Z)(expr);                                                                                    \
      }                                                                                                      \
    return true;                                                                                             \
  }

static bool NAME(binary)(const elementwise *e, void *to, const void *x_, i64 sx, const void *y_, i64 sy,
                         i64 n) {
  const REAL *xs = x_, *ys = y_, alpha = (REAL)e->alpha;
  switch (e->op) {
  case OP_add: EACH(REAL, x + y)
  case OP_sub: EACH(REAL, x - y)
  case OP_mul: EACH(REAL, x * y)
  case OP_div: EACH(REAL, x / y)
  case OP_pow: EACH(REAL, pow(x, y))
  case OP_mod: EACH(REAL, e->of_x ? fmod(x, y) : python_mod(x, y))
  case OP_max: EACH(REAL, x > y || x != x ? x : y)
  case OP_min: EACH(REAL, x < y || x != x ? x : y)
  case OP_relu_dx: EACH(REAL, y <= 0 ? (alpha != 0 ? alpha * x : 0) : x)
  case OP_gelu_dx:
    if (e->tanh_form) EACH(REAL, x * NAME(gelu_tanh_slope)(y))
    EACH(REAL, x * NAME(gelu_exact_slope)(y))
  case OP_silu_dx: EACH(REAL, x * NAME(silu_slope)(y))
  case OP_tanh_dx: EACH(REAL, x * (1 - y * y))
  case OP_sigmoid_dx: EACH(REAL, x * y * (1 - y))
  default: return false;
  }
}

static bool NAME(compare)(opcode op, i64 *to, const void *x_, i64 sx, const void *y_, i64 sy, i64 n) {
  const REAL *xs = x_, *ys = y_;
  switch (op) {
  case OP_eq: EACH(i64, x == y)
  case OP_lt: EACH(i64, x < y)
  case OP_le: EACH(i64, x <= y)
  case OP_gt: EACH(i64, x > y)
  case OP_ge: EACH(i64, x >= y)
  default: return false;
  }
}
#undef EACH

static void NAME(select)(void *to, const i64 *m, i64 sm, const void *x_, i64 sx, const void *y_, i64 sy,
                         i64 n) {
  const REAL *x = x_, *y = y_;
  REAL *z = to;
  if (sm == 1 && sx == 1 && sy == 0) {
    const REAL other = n ? *y : 0;
    for (i64 i = 0; i < n; i++) z[i] = m[i] ? x[i] : other;
  } else
    for (i64 i = 0; i < n; i++) z[i] = m[i * sm] ? x[i * sx] : y[i * sy];
}

static void NAME(affine)(void *to, double a, const void *x_, double p, double b, i64 n) {
  const REAL *x = x_, k = (REAL)a, less = (REAL)p, c = (REAL)b;
  REAL *y = to;
  for (i64 i = 0; i < n; i++) y[i] = k * (x[i] - less) + c;
}

// In f64: what is left where the two cancel is what is wanted.
static void NAME(affine_of)(void *to, double a, const void *x_, double p, double b, const void *y_, double q,
                            i64 n) {
  const REAL *x = x_, *y = y_;
  REAL *z = to;
  for (i64 i = 0; i < n; i++) z[i] = (REAL)(a * (x[i] - p) + b * (y[i] - q));
}

// ---- sums ------------------------------------------------------------------------------------------------
// A sum of `expr` over i < n, in lanes.
#define SUM(to, n, expr)                                                                                     \
  {                                                                                                          \
    double lane_[LANES] = {0};                                                                               \
    i64 at_ = 0;                                                                                             \
    for (; at_ + LANES <= (n); at_ += LANES)                                                                 \
      for (int j_ = 0; j_ < LANES; j_++) {                                                                   \
        const i64 i = at_ + j_;                                                                              \
        lane_[j_] += (double)(expr);                                                                         \
      }                                                                                                      \
    for (; at_ < (n); at_++) {                                                                               \
      const i64 i = at_;                                                                                     \
      lane_[at_ % LANES] += (double)(expr);                                                                  \
    }                                                                                                        \
    (to) = sum_lanes(lane_);                                                                                 \
  }

static double NAME(sum)(const void *x_, i64 n) {
  const REAL *x = x_;
  double s;
  SUM(s, n, x[i])
  return s;
}

static double NAME(sum_of_squares)(const void *x_, double mean, i64 n) {
  const REAL *x = x_;
  double s;
  SUM(s, n, (x[i] - mean) * (x[i] - mean))
  return s;
}

static double NAME(dot)(const void *y_, const void *x_, double mean, i64 n) {
  const REAL *x = x_, *y = y_;
  double s;
  SUM(s, n, (double)y[i] * (x[i] - mean))
  return s;
}

static REAL NAME(largest)(const REAL *x, i64 n) { // of numbers
  REAL lane[LANES], top = -INFINITY;
  i64 i = 0;
  for (int j = 0; j < LANES; j++) lane[j] = -INFINITY;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  for (int j = 0; j < LANES; j++) top = lane[j] > top ? lane[j] : top;
  for (; i < n; i++) top = x[i] > top ? x[i] : top;
  return top;
}

#define FOLD(stride, expr)                                                                                   \
  {                                                                                                          \
    for (i64 i = 0; i < n; i++) {                                                                            \
      const double v = x[i * sx], s = a[i * (stride)];                                                       \
      a[i * (stride)] = expr;                                                                                \
    }                                                                                                        \
    return;                                                                                                  \
  }

static void NAME(fold)(opcode op, double *a, const void *x_, i64 sx, i64 n) {
  const REAL *x = x_;
  switch (op) {
  case OP_reduce_max: FOLD(0, v > s || v != v ? v : s)
  case OP_reduce_min: FOLD(0, v < s || v != v ? v : s)
  case OP_reduce_prod: FOLD(0, s * v)
  default:
    if (sx == 1)
      *a += NAME(sum)(x, n);
    else
      FOLD(0, s + v)
  }
}

static void NAME(fold_rows)(opcode op, double *a, const void *x_, i64 n) {
  const REAL *x = x_;
  const i64 sx = 1;
  switch (op) {
  case OP_reduce_max: FOLD(1, v > s || v != v ? v : s)
  case OP_reduce_min: FOLD(1, v < s || v != v ? v : s)
  case OP_reduce_prod: FOLD(1, s * v)
  default: FOLD(1, s + v)
  }
}
#undef FOLD

static void NAME(store)(void *to, const double *x, double scale, i64 n) {
  REAL *y = to;
  for (i64 i = 0; i < n; i++) y[i] = (REAL)(x[i] * scale);
}

// ---- rows ------------------------------------------------------------------------------------------------

static void NAME(exp_of)(REAL *y, const REAL *x, REAL less, i64 n) {
  for (i64 i = 0; i < n; i++) y[i] = NAME(exp)(x[i] - less);
}

static double NAME(sum_exp)(const void *x_, double top, i64 n) {
  enum { CHUNK = 512 };
  const REAL *x = x_;
  REAL e[CHUNK];
  double sum = 0;
  for (i64 k = 0; k < n; k += CHUNK) {
    const i64 m = MIN(n - k, (i64)CHUNK);
    NAME(exp_of)(e, x + k, (REAL)top, m);
    sum += NAME(sum)(e, m);
  }
  return sum;
}

static double NAME(log_sum_exp)(const void *x, i64 n) {
  const double top = NAME(largest)(x, n);
  return top + log(NAME(sum_exp)(x, top, n));
}

static void NAME(softmax)(opcode op, void *to, const void *x_, i64 n) {
  const REAL *x = x_;
  REAL *y = to, top = NAME(largest)(x, n);
  if (op == OP_hardmax) {
    i64 best = 0;
    while (best < n && x[best] != top) best++;
    for (i64 i = 0; i < n; i++) y[i] = i == (best < n ? best : 0);
    return;
  }
  if (top == -INFINITY) top = 0; // all masked: not a number follows from 0/0
  if (op == OP_log_softmax) {
    const REAL l = (REAL)log(NAME(sum_exp)(x, top, n));
    for (i64 i = 0; i < n; i++) y[i] = x[i] - top - l;
    return;
  }
  NAME(exp_of)(y, x, top, n);
  const REAL by = (REAL)(1 / NAME(sum)(y, n));
  for (i64 i = 0; i < n; i++) y[i] *= by;
}

static void NAME(softmax_dx)(void *to, const void *dy_, const void *y_, i64 n) { // dx = y (dy - sum(dy y))
  const REAL *dy = dy_, *y = y_;
  REAL *dx = to;
  double sum;
  SUM(sum, n, (double)dy[i] * y[i])
  const REAL dot = (REAL)sum;
  for (i64 i = 0; i < n; i++) dx[i] = y[i] * (dy[i] - dot);
}

static void NAME(attend_scores)(void *x_, i64 n, double a_, const void *bias_, i64 sb) {
  REAL *x = x_, a = (REAL)a_;
  const REAL *bias = bias_;
  if (!bias)
    for (i64 i = 0; i < n; i++) x[i] *= a;
  else if (sb == 1)
    for (i64 i = 0; i < n; i++) x[i] = a * x[i] + bias[i];
  else
    for (i64 i = 0; i < n; i++) x[i] = a * x[i] + bias[i * sb];
}

static void NAME(attend_mask)(void *x_, i64 n, const u8 *mask, i64 sm, double value_) {
  REAL *x = x_, value = (REAL)value_;
  for (i64 i = 0; i < n; i++)
    if (!mask[i * sm]) x[i] = value;
}

static double NAME(attend_exp)(void *x_, i64 n, double *top, double *sum) {
  REAL *x = x_;
  const double here = NAME(largest)(x, n), most = here > *top || here != here ? here : *top;
  const double less = most == -INFINITY ? 0 : most; // so far all are masked
  const double before = *top == -INFINITY ? 0 : (double)NAME(exp)((REAL)(*top - less));
  NAME(exp_of)(x, x, (REAL)less, n);
  *sum = *sum * before + NAME(sum)(x, n), *top = most;
  return before;
}

static void NAME(attend_dx)(void *x_, void *dp_, i64 n, double lse_, double dot_) {
  REAL *x = x_, *dp = dp_;
  const REAL lse = (REAL)lse_, dot = (REAL)dot_;
  NAME(exp_of)(x, x, lse, n);
  for (i64 i = 0; i < n; i++) dp[i] = x[i] * (dp[i] - dot);
}

static void NAME(xent_dx)(void *to, const void *x_, double lse, double g, i64 hit, i64 n) {
  const REAL *x = x_, l = (REAL)lse, k = (REAL)g;
  REAL *dx = to;
  for (i64 i = 0; i < n; i++) dx[i] = k * NAME(exp)(x[i] - l);
  if (hit >= 0) dx[hit] = k * (NAME(exp)(x[hit] - l) - 1);
}

static row_stats NAME(stats)(const void *x_, i64 n, bool rms, double eps) {
  const REAL *x = x_;
  const double mean = rms ? 0 : NAME(sum)(x, n) / (double)n;
  return (row_stats){n, mean, 1 / sqrt(NAME(sum_of_squares)(x, mean, n) / (double)n + eps)};
}

static void NAME(norm)(const row_stats *s, void *to, const void *x_, const void *g_, const void *b_) {
  const REAL *x = x_, *g = g_, *b = b_, mean = (REAL)s->mean, inv = (REAL)s->inv;
  REAL *y = to;
  if (b)
    for (i64 i = 0; i < s->n; i++) y[i] = (x[i] - mean) * inv * g[i] + b[i];
  else
    for (i64 i = 0; i < s->n; i++) y[i] = (x[i] - mean) * inv * g[i];
}

// dx = inv (d - mean(d) - h mean(d h)), d = dy g, h the normalised x
static void NAME(norm_dx)(const row_stats *s, bool rms, void *to, const void *dy_, const void *x_,
                          const void *g_) {
  const REAL *dy = dy_, *x = x_, *g = g_, mean = (REAL)s->mean, inv = (REAL)s->inv;
  REAL *dx = to;
  double sum = 0, dot;
  if (!rms) SUM(sum, s->n, (double)dy[i] * g[i])
  SUM(dot, s->n, (double)dy[i] * g[i] * (x[i] - s->mean))
  const REAL m = (REAL)(sum / (double)s->n), d = (REAL)(dot * s->inv / (double)s->n);
  for (i64 i = 0; i < s->n; i++) dx[i] = inv * (dy[i] * g[i] - m - (x[i] - mean) * inv * d);
}

static void NAME(norm_dg)(const row_stats *s, double *dg, const void *dy_, const void *x_, i64 from,
                          i64 end) {
  const REAL *dy = dy_, *x = x_;
  for (i64 i = from; i < end; i++) dg[i] += (double)dy[i] * (x[i] - s->mean) * s->inv;
}

// ---- optimizers: formulas as in PyTorch ------------------------------------------------------------------

static void NAME(sgd)(void *to, const void *w_, const void *g_, double lr_, double decay_, i64 n) {
  const REAL *w = w_, *g = g_, lr = (REAL)lr_, decay = (REAL)decay_;
  REAL *w2 = to;
  for (i64 i = 0; i < n; i++) w2[i] = w[i] - lr * (g[i] + decay * w[i]);
}

static void NAME(momentum)(void *to, void *m2_, const void *w_, const void *g_, const void *m_, double lr_,
                           double mu_, double decay_, bool ahead, i64 n) {
  const REAL *w = w_, *g = g_, *m = m_, lr = (REAL)lr_, mu = (REAL)mu_, decay = (REAL)decay_;
  REAL *w2 = to, *m2 = m2_;
  for (i64 i = 0; i < n; i++) {
    const REAL d = g[i] + decay * w[i], v = mu * m[i] + d;
    w2[i] = w[i] - lr * (ahead ? d + mu * v : v);
    m2[i] = v;
  }
}

static void NAME(adam)(const adam_step *s, void *to, void *m2_, void *v2_, const void *w_, const void *g_,
                       const void *m_, const void *v_, i64 n) {
  const REAL *w = w_, *g = g_, *m = m_, *v = v_;
  REAL *w2 = to, *m2 = m2_, *v2 = v2_;
  const REAL b1 = (REAL)s->b1, b2 = (REAL)s->b2, r1 = (REAL)(1 - s->b1), r2 = (REAL)(1 - s->b2),
             l2 = (REAL)(s->decoupled ? 0 : s->decay), keep = (REAL)(s->decoupled ? 1 - s->lr * s->decay : 1),
             by = (REAL)(s->lr / s->c1), root = (REAL)(1 / sqrt(s->c2)), eps = (REAL)s->eps;
  for (i64 i = 0; i < n; i++) {
    const REAL d = g[i] + l2 * w[i], mi = b1 * m[i] + r1 * d, vi = b2 * v[i] + r2 * d * d;
    w2[i] = keep * w[i] - by * mi / (OF(sqrtf, sqrt)(vi) * root + eps);
    m2[i] = mi;
    v2[i] = vi;
  }
}

static const ker_loops NAME(loops) = {.unary = NAME(unary),
                                      .binary = NAME(binary),
                                      .compare = NAME(compare),
                                      .select = NAME(select),
                                      .affine = NAME(affine),
                                      .affine_of = NAME(affine_of),
                                      .sum = NAME(sum),
                                      .sum_of_squares = NAME(sum_of_squares),
                                      .dot = NAME(dot),
                                      .fold = NAME(fold),
                                      .fold_rows = NAME(fold_rows),
                                      .store = NAME(store),
                                      .softmax = NAME(softmax),
                                      .softmax_dx = NAME(softmax_dx),
                                      .attend_scores = NAME(attend_scores),
                                      .attend_mask = NAME(attend_mask),
                                      .attend_exp = NAME(attend_exp),
                                      .attend_dx = NAME(attend_dx),
                                      .log_sum_exp = NAME(log_sum_exp),
                                      .sum_exp = NAME(sum_exp),
                                      .xent_dx = NAME(xent_dx),
                                      .stats = NAME(stats),
                                      .norm = NAME(norm),
                                      .norm_dx = NAME(norm_dx),
                                      .norm_dg = NAME(norm_dg),
                                      .sgd = NAME(sgd),
                                      .momentum = NAME(momentum),
                                      .adam = NAME(adam)};

#undef SUM
#undef BITS
#undef MAGIC
#undef MANTISSA
#undef BIAS
