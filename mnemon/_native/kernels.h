/* What loops compiled to C are made of: functions that compilers vectorise, and a matrix product. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define KERNEL static __attribute__((noinline))

INLINE float bits_to_float(int32_t i) { union { int32_t i; float f; } u = {.i = i}; return u.f; }
INLINE int32_t float_to_bits(float f) { union { int32_t i; float f; } u = {.f = f}; return u.i; }

/* exp(x) = 2^n exp(r), |r| <= log(2) / 2; the power of two in two factors, so that it can reach both ends. */
INLINE float fast_exp(float x) {
  float y = x > 89.0f ? 89.0f : x;
  y = y < -87.5f ? -87.5f : y;
  float n = __builtin_rintf(y * 1.44269504088896341f);
  float r = y - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  int32_t k = (int32_t)n, half = k >> 1;
  float e = p * bits_to_float((half + 127) << 23) * bits_to_float((k - half + 127) << 23);
  return x < -87.3f ? 0.0f : e;
}

INLINE float fast_sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

/* A polynomial near zero, where 1 - 2 / (exp(2x) + 1) would cancel. */
INLINE float fast_tanh(float x) {
  float a = __builtin_fabsf(x), z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  p = p * z * x + x;
  float far = 1.0f - 2.0f / (fast_exp(a + a) + 1.0f);
  far = x < 0.0f ? -far : far;
  return a < 0.625f ? p : far;
}

/* x = 2^n m with m in [sqrt(1/2), sqrt(2)); the logarithm of m by a polynomial. */
INLINE float fast_log(float x) {
  float safe = x < 1.17549435e-38f ? 1.17549435e-38f : x;
  int32_t bits = float_to_bits(safe);
  float n = (float)((bits >> 23) - 126);
  float m = bits_to_float((bits & 0x007fffff) | 0x3f000000);
  int low = m < 0.707106781186547524f;
  n = low ? n - 1.0f : n;
  m = low ? m + m - 1.0f : m - 1.0f;
  float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float y = p * m * z + n * -2.12194440e-4f - 0.5f * z;
  y = m + y + n * 0.693359375f;
  y = x < 1.17549435e-38f ? -__builtin_inff() : y; /* as if subnormal numbers were zero */
  y = x > 3.402823466e38f ? x : y;
  return x < 0.0f || x != x ? __builtin_nanf("") : y;
}

INLINE float fast_log1p(float x) {
  float u = 1.0f + x;
  float y = fast_log(u) + (x - (u - 1.0f)) / u;
  return u == 1.0f || x > 3.402823466e38f ? x : y;
}

INLINE float fast_pow(float x, float y) {
  float e = fast_exp(y * fast_log(x));
  e = x == 0.0f ? (y > 0.0f ? 0.0f : __builtin_inff()) : e;
  return y == 0.0f ? 1.0f : e;
}

#pragma omp declare reduction(largest : float : omp_out = omp_out > omp_in || omp_out != omp_out ? omp_out : omp_in) \
    initializer(omp_priv = -__builtin_inff())
#pragma omp declare reduction(smallest : float : omp_out = omp_out < omp_in || omp_out != omp_out ? omp_out : omp_in) \
    initializer(omp_priv = __builtin_inff())

INLINE float sign_of(float x) { return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x); }

/* C[m, n] = A[m, k] B[k, n]. B is packed in panels of NR columns, so that a tile of C stays in registers. */
#if defined(__AVX512F__)
#define VL 16
#define MR 12
#elif defined(__AVX2__)
#define VL 8
#define MR 6
#else
#define VL 4
#define MR 4
#endif
#define NR (2 * VL)
typedef float vector __attribute__((vector_size(VL * 4), aligned(4), may_alias));

/* Where A[row, i] is: rows one after another, or turned. */
#ifdef TURNED
#define ENTRY(row, i) a[(i) * lda + (row)]
#else
#define ENTRY(row, i) a[(row) * lda + (i)]
#endif
#define TILE(ROWS, VECTORS)                                                                                     \
  static void tile_##ROWS##_##VECTORS(const float *restrict a, long lda, const float *restrict b,               \
                                      float *restrict c, long ldc, long k, long columns) {                      \
    vector sums[ROWS][VECTORS];                                                                                 \
    for (int r = 0; r < ROWS; r++)                                                                              \
      for (int v = 0; v < VECTORS; v++) sums[r][v] = (vector){0};                                               \
    for (long i = 0; i < k; i++, b += VECTORS * VL) {                                                           \
      vector row[VECTORS];                                                                                      \
      for (int v = 0; v < VECTORS; v++) row[v] = *(const vector *)(b + v * VL);                                 \
      for (int r = 0; r < ROWS; r++)                                                                            \
        for (int v = 0; v < VECTORS; v++) sums[r][v] += ENTRY(r, i) * row[v];                                   \
    }                                                                                                           \
    if (columns == VECTORS * VL) {                                                                              \
      for (int r = 0; r < ROWS; r++)                                                                            \
        for (int v = 0; v < VECTORS; v++) *(vector *)(c + r * ldc + v * VL) = sums[r][v];                       \
    } else {                                                                                                    \
      for (int r = 0; r < ROWS; r++) {                                                                          \
        float whole[VECTORS * VL];                                                                              \
        for (int v = 0; v < VECTORS; v++) *(vector *)(whole + v * VL) = sums[r][v];                             \
        for (long j = 0; j < columns; j++) c[r * ldc + j] = whole[j];                                           \
      }                                                                                                         \
    }                                                                                                           \
  }
#define TILES(ROWS) TILE(ROWS, 1) TILE(ROWS, 2)
TILES(1) TILES(2) TILES(3) TILES(4)
#if MR > 4
TILES(5) TILES(6)
#endif
#if MR > 6
TILES(7) TILES(8) TILES(9) TILES(10) TILES(11) TILES(12)
#endif
typedef void tile(const float *restrict, long, const float *restrict, float *restrict, long, long, long);
#define PAIR(ROWS) {tile_##ROWS##_1, tile_##ROWS##_2}
static tile *const tiles[MR + 1][2] = {{0, 0}, PAIR(1), PAIR(2), PAIR(3), PAIR(4),
#if MR > 4
                                       PAIR(5), PAIR(6),
#endif
#if MR > 6
                                       PAIR(7), PAIR(8), PAIR(9), PAIR(10), PAIR(11), PAIR(12),
#endif
};

INLINE long packed_size(long k, long n) { return k * (n / NR * NR + (n % NR > VL ? NR : n % NR ? VL : 0)); }

/* The panels of B[i, j] = b[i * row + j * column]. */
static void pack(const float *b, long row, long column, long k, long n, float *packed) {
  for (long first = 0; first < n; first += NR) {
    long columns = n - first < NR ? n - first : NR, width = columns > VL ? NR : VL;
    for (long i = 0; i < k; i++)
      for (long j = 0; j < width; j++) *packed++ = j < columns ? b[i * row + (first + j) * column] : 0.0f;
  }
}

static void product(const float *a, long lda, const float *packed, float *c, long ldc, long m, long k, long n) {
  long blocks = (m + MR - 1) / MR;
  for (long first = 0; first < n; first += NR) {
    long columns = n - first < NR ? n - first : NR, vectors = columns > VL ? 2 : 1;
    for (long block = 0, row = 0; block < blocks; block++) {
      long rows = (m - row + blocks - block - 1) / (blocks - block);
      tiles[rows][vectors - 1](a + row * lda, lda, packed, c + row * ldc + first, ldc, k, columns);
      row += rows;
    }
    packed += k * vectors * VL;
  }
}

#ifdef TURNED
/* C[k, n] = A[depth, k]^T B[depth, n], as a sum over pieces that stay in cache. */
static void sum_of_outer_products(const float *a, const float *b, float *c, long depth, long k, long n) {
  enum { PIECE = 256 };
  float *packed = aligned_alloc(64, (packed_size(PIECE, n) * sizeof(float) + 63) / 64 * 64);
  memset(c, 0, k * n * sizeof(float));
  for (long first = 0; first < depth; first += PIECE, a += PIECE * k, b += PIECE * n) {
    long size = depth - first < PIECE ? depth - first : PIECE;
    pack(b, n, 1, size, n, packed);
    const float *panel = packed;
    for (long column = 0; column < n; column += NR) {
      long columns = n - column < NR ? n - column : NR, vectors = columns > VL ? 2 : 1;
      for (long row = 0; row < k; row += MR) {
        long rows = k - row < MR ? k - row : MR;
        float sums[MR * NR];
        tiles[rows][vectors - 1](a + row, k, panel, sums, NR, size, vectors * VL);
        for (long r = 0; r < rows; r++)
          for (long j = 0; j < columns; j++) c[(row + r) * n + column + j] += sums[r * NR + j];
      }
      panel += size * vectors * VL;
    }
  }
  free(packed);
}
#endif

#ifdef LOOSE_PRODUCTS
/* Products with matrices that are used once, where they are. Rows of B, or the vectors that are multiplied, have at
   least VL entries. A last piece that is not full begins earlier and is done twice in part. */
#if VL == 16
#define WIDEST 4
#else
#define WIDEST 2
#endif
#define STRIDED(ROWS, VECTORS)                                                                                  \
  static void strided_##ROWS##_##VECTORS(const float *restrict a, long row, long column,                        \
                                         const float *restrict b, long ldb, float *restrict c, long ldc,        \
                                         long k) {                                                              \
    vector sums[ROWS][VECTORS];                                                                                 \
    for (int r = 0; r < ROWS; r++)                                                                              \
      for (int v = 0; v < VECTORS; v++) sums[r][v] = (vector){0};                                               \
    for (long i = 0; i < k; i++, b += ldb, a += column) {                                                       \
      vector each[VECTORS];                                                                                     \
      for (int v = 0; v < VECTORS; v++) each[v] = *(const vector *)(b + v * VL);                                \
      for (int r = 0; r < ROWS; r++)                                                                            \
        for (int v = 0; v < VECTORS; v++) sums[r][v] += a[r * row] * each[v];                                   \
    }                                                                                                           \
    for (int r = 0; r < ROWS; r++)                                                                              \
      for (int v = 0; v < VECTORS; v++) *(vector *)(c + r * ldc + v * VL) = sums[r][v];                         \
  }
#if WIDEST == 4
#define WIDTHS(ROWS) STRIDED(ROWS, 1) STRIDED(ROWS, 2) STRIDED(ROWS, 3) STRIDED(ROWS, 4)
#define ALL(ROWS) {strided_##ROWS##_1, strided_##ROWS##_2, strided_##ROWS##_3, strided_##ROWS##_4}
#else
#define WIDTHS(ROWS) STRIDED(ROWS, 1) STRIDED(ROWS, 2)
#define ALL(ROWS) {strided_##ROWS##_1, strided_##ROWS##_2}
#endif
WIDTHS(1) WIDTHS(2) WIDTHS(3) WIDTHS(4)
typedef void strided(const float *restrict, long, long, const float *restrict, long, float *restrict, long, long);
static strided *const strided_tiles[4][WIDEST] = {ALL(1), ALL(2), ALL(3), ALL(4)};

/* C[m, n] = A[m, k] B[k, n], A[i, j] = a[i * row + j * column], with rows of B and C of contiguous entries. */
static void loose_product(const float *a, long row, long column, const float *b, long ldb, float *c, long ldc, long m,
                          long k, long n) {
  long blocks = (m + 3) / 4;
  for (long first = 0; first < n;) {
    long left = n - first, vectors = left < VL ? 1 : left / VL < WIDEST ? left / VL : WIDEST;
    if (left < VL) first = n - VL;
    for (long block = 0, i = 0; block < blocks; block++) {
      long rows = (m - i + blocks - block - 1) / (blocks - block);
      strided_tiles[rows - 1][vectors - 1](a + i * row, row, column, b + first, ldb, c + i * ldc + first, ldc, k);
      i += rows;
    }
    first += vectors * VL;
  }
}

/* Sums of VL vectors, each in its place: neighbouring entries are added until one is left. */
#define LOW(i, w) ((i) / (2 * w) * (2 * w) + (i) % w + ((i) % (2 * w) < w ? 0 : VL))
#define HIGH(i, w) (LOW(i, w) + w)
#if VL == 16
#define EACH(F, w) F(0, w), F(1, w), F(2, w), F(3, w), F(4, w), F(5, w), F(6, w), F(7, w), F(8, w), F(9, w), \
                   F(10, w), F(11, w), F(12, w), F(13, w), F(14, w), F(15, w)
#elif VL == 8
#define EACH(F, w) F(0, w), F(1, w), F(2, w), F(3, w), F(4, w), F(5, w), F(6, w), F(7, w)
#else
#define EACH(F, w) F(0, w), F(1, w), F(2, w), F(3, w)
#endif
#ifdef __clang__
#define CHOOSE(x, y, F, w) __builtin_shufflevector(x, y, EACH(F, w))
#else
typedef int32_t lanes __attribute__((vector_size(VL * 4)));
#define CHOOSE(x, y, F, w) __builtin_shuffle(x, y, (lanes){EACH(F, w)})
#endif
#define HALVE(w)                                                                                                \
  for (int i = 0; i < VL / 2 / w; i++)                                                                          \
    v[i] = CHOOSE(v[2 * i], v[2 * i + 1], LOW, w) + CHOOSE(v[2 * i], v[2 * i + 1], HIGH, w);
INLINE vector sums_of(vector v[VL]) {
  HALVE(1)
  HALVE(2)
#if VL > 4
  HALVE(4)
#endif
#if VL > 8
  HALVE(8)
#endif
  return v[0];
}

/* C[m, n] = A[m, k] B[n, k]^T, with rows of all three of contiguous entries. */
static void inner_products(const float *a, long lda, const float *b, long ldb, float *c, long ldc, long m, long k,
                           long n) {
  long whole = k / VL * VL;
  for (long i = 0; i < m; i++, a += lda, c += ldc) {
    if (n < VL)
      for (long j = 0; j < n; j++) {
        float sum = 0;
        _Pragma("omp simd reduction(+:sum)") for (long l = 0; l < k; l++) sum += a[l] * b[j * ldb + l];
        c[j] = sum;
      }
    else
      for (long j = 0; j < n; j += VL) {
        long first = j + VL > n ? n - VL : j;
        const float *rows = b + first * ldb;
        vector sums[VL];
        for (int r = 0; r < VL; r++) sums[r] = (vector){0};
        for (long l = 0; l < whole; l += VL) {
          vector each = *(const vector *)(a + l);
          for (int r = 0; r < VL; r++) sums[r] += each * *(const vector *)(rows + r * ldb + l);
        }
        vector sum = sums_of(sums);
        for (long l = whole; l < k; l++)
          for (int r = 0; r < VL; r++) sum[r] += a[l] * rows[r * ldb + l];
        *(vector *)(c + first) = sum;
      }
  }
}
#endif

/* XLA's interface for foreign functions, as far as it is needed here; see xla/ffi/api/c_api.h. */
#include "xla/ffi/api/c_api.h"

static void run(void *const *in, void *const *out);

XLA_FFI_Error *loop(XLA_FFI_CallFrame *frame) {
  for (XLA_FFI_Extension_Base *e = frame->extension_start; e; e = e->next)
    if (e->type == XLA_FFI_Extension_Metadata) {
      XLA_FFI_Metadata *metadata = ((XLA_FFI_Metadata_Extension *)e)->metadata;
      metadata->api_version.major_version = XLA_FFI_API_MAJOR;
      metadata->api_version.minor_version = XLA_FFI_API_MINOR;
      return 0;
    }
  void *in[frame->args.size + 1], *out[frame->rets.size + 1];
  for (long i = 0; i < frame->args.size; i++) in[i] = ((XLA_FFI_Buffer *)frame->args.args[i])->data;
  for (long i = 0; i < frame->rets.size; i++) out[i] = ((XLA_FFI_Buffer *)frame->rets.rets[i])->data;
  run(in, out);
  return 0;
}
