// One instruction set's kernels. Compiled once for each, with REWIRL_NAMESPACE and the compiler's flags set by CMake.
#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "simd.h"

namespace rewirl::REWIRL_NAMESPACE {
namespace {

#define REWIRL_UNROLL _Pragma("GCC unroll 16")
#define REWIRL_INLINE inline __attribute__((always_inline))

using AllPatterns = std::make_index_sequence<15>;
// Those that a target's few extra links have: a block of two, one row, all four.
using ExtraPatterns = std::index_sequence<0, 1, 6, 7, 8, 9, 14>;
static_assert(kPatterns[0] == 3 && kPatterns[1] == 12 && kPatterns[6] == 1 && kPatterns[7] == 2 && kPatterns[8] == 4 &&
              kPatterns[9] == 8 && kPatterns[14] == 15);

constexpr int popcount(int pattern) { return pattern ? pattern % 2 + popcount(pattern / 2) : 0; }

// Vectors of batch per panel. 4·P sums, P activations and a weight must fit the registers, and a panel of 256 features
// the first-level cache.
constexpr int kPanel = REWIRL_REGISTERS >= 32 ? 4 : 3;

// Calls f(first vector, vectors) for panels of at most `most` vectors that together cover the batch, as equal as can be.
template <int most, class F>
REWIRL_INLINE void for_panels(int batch, const F& f) {
  const int vectors = (batch + W - 1) / W;
  const int panels = (vectors + most - 1) / most;
  for (int i = 0, first = 0; i < panels; ++i) {
    const int width = vectors / panels + (i < vectors % panels);
    f(first, width);
    first += width;
  }
}

// ---------------------------------------------------------------- forward

template <int M, int P>
REWIRL_INLINE void add_entries(vec (&acc)[4][P], const uint16_t*& other, const float*& w, int n, const float* x,
                               int64_t stride) {
  for (const uint16_t* end = other + n; other < end; ++other, w += popcount(M)) {
    vec xs[P];
    REWIRL_UNROLL for (int p = 0; p < P; ++p) xs[p] = load(x + *other * stride + p * W);
    int k = 0;
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
      if (!(M >> r & 1)) continue;
      const vec ws = splat(w[k++]);
      REWIRL_UNROLL for (int p = 0; p < P; ++p) acc[r][p] += ws * xs[p];
    }
  }
}

template <int P, size_t... I>
REWIRL_INLINE void add_group(vec (&acc)[4][P], const Groups& links, int g, const float* x, int64_t stride,
                             std::index_sequence<I...>) {
  const uint16_t* other = links.other + links.entry[g];
  const float* w = links.w + links.weight[g];
  const uint16_t* count = links.count + 15 * int64_t(g);
  (add_entries<kPatterns[I], P>(acc, other, w, count[I], x, stride), ...);
}

template <int P>
void forward_panel(const Forward& a, int first, int group_begin, int group_end) {
  const float* x = a.x + first * W;
  for (int g = group_begin; g < group_end; ++g) {
    const int rows = std::min(4, a.rows - 4 * g);
    vec acc[4][P];
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
      const vec start = splat(a.bias && r < rows ? a.bias[4 * g + r] : 0.0f);
      REWIRL_UNROLL for (int p = 0; p < P; ++p) acc[r][p] = start;
    }
    add_group<P>(acc, a.links, g, x, a.stride, AllPatterns{});
    if (a.extra.entry) add_group<P>(acc, a.extra, g, x, a.stride, ExtraPatterns{});
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
      if (r >= rows) break;
      const int64_t at = (4 * int64_t(g) + r) * a.stride + first * W;
      REWIRL_UNROLL for (int p = 0; p < P; ++p) {
        vec out = acc[r][p];
        if (a.relu) out = relu(out);
        if (a.gate) out = keep(load(a.gate + at + p * W) > vec{}, out);
        store(a.y + at + p * W, out);
      }
    }
  }
}

template <int P>
REWIRL_INLINE void forward_width(const Forward& a, int first, int width, int begin, int end) {
  if (width == P) return forward_panel<P>(a, first, begin, end);
  if constexpr (P > 1) forward_width<P - 1>(a, first, width, begin, end);
}

void forward(const Forward& a, int begin, int end) {
  for_panels<kPanel>(a.batch, [&](int first, int width) { forward_width<kPanel>(a, first, width, begin, end); });
}

// ------------------------------------------------------ weight gradients

template <int N>
REWIRL_INLINE void put(float* dw, vec4 s, bool add) {
  if constexpr (N == 4) {
    store4(dw, add ? load4(dw) + s : s);
  } else {
    REWIRL_UNROLL for (int i = 0; i < N; ++i) dw[i] = add ? dw[i] + s[i] : s[i];
  }
}

// The gradients of E entries of one pattern, at most twelve sums over `vectors` of batch: each load of x serves all rows of
// the pattern, each load of dy all entries. Where there are few sums each is kept as two, or they would wait for each other.
template <int M, int E>
REWIRL_INLINE void entry_gradients(const float* dy, const uint16_t* other, float* dw, const float* x, int64_t stride,
                                   int vectors, bool add) {
  constexpr int c = popcount(M), N = E * c, parts = N <= 6 ? 2 : 1;
  vec s[parts][12] = {};
  const float* columns[E];
  REWIRL_UNROLL for (int e = 0; e < E; ++e) columns[e] = x + other[e] * stride;
  const auto add_vector = [&](vec* sums, int p) __attribute__((always_inline)) {
    vec d[4];
    REWIRL_UNROLL for (int r = 0; r < 4; ++r)
      if (M >> r & 1) d[r] = load(dy + r * stride + p * W);
    REWIRL_UNROLL for (int e = 0; e < E; ++e) {
      const vec xs = load(columns[e] + p * W);
      int k = e * c;
      REWIRL_UNROLL for (int r = 0; r < 4; ++r)
        if (M >> r & 1) sums[k++] += d[r] * xs;
    }
  };
  int p = 0;
  for (; p + parts <= vectors; p += parts)
    REWIRL_UNROLL for (int i = 0; i < parts; ++i) add_vector(s[i], p + i);
  for (; p < vectors; ++p) add_vector(s[0], p);
  if constexpr (parts == 2)
    REWIRL_UNROLL for (int k = 0; k < N; ++k) s[0][k] += s[1][k];
  REWIRL_UNROLL for (int k = 0; k + 4 <= N; k += 4)
    put<4>(dw + k, sum4(s[0][k], s[0][k + 1], s[0][k + 2], s[0][k + 3]), add);
  if constexpr (N % 4 > 0) {
    constexpr int k = N / 4 * 4;
    put<N % 4>(dw + k, sum4(s[0][k], s[0][k + 1], s[0][k + 2], s[0][k + 3]), add);
  }
}

// As many entries at once as fill twelve sums, then fewer.
constexpr int most_entries(int rows) { return 12 / rows; }
constexpr int fewer_entries(int entries) { return entries > 4 ? entries / 3 : 1; }

template <int M, int E>
REWIRL_INLINE void pattern_gradients(const float* dy, const uint16_t*& other, float*& dw, const uint16_t* end,
                                     const float* x, int64_t stride, int vectors, bool add) {
  constexpr int c = popcount(M);
  for (; other + E <= end; other += E, dw += E * c) entry_gradients<M, E>(dy, other, dw, x, stride, vectors, add);
  if constexpr (E > 1) pattern_gradients<M, fewer_entries(E)>(dy, other, dw, end, x, stride, vectors, add);
}

template <size_t... I>
REWIRL_INLINE void group_gradients(const WeightGradients& a, int g, int first, int vectors, std::index_sequence<I...>) {
  const uint16_t* other = a.links.other + a.links.entry[g];
  const uint16_t* count = a.links.count + 15 * int64_t(g);
  float* dw = a.dw + a.links.weight[g];
  const float* x = a.x + first * W;
  const float* dy = a.dy + 4 * int64_t(g) * a.stride + first * W;
  const int64_t stride = a.stride;
  // Panels of batch after the first add to the sums.
  (pattern_gradients<kPatterns[I], most_entries(popcount(kPatterns[I]))>(dy, other, dw, other + count[I], x, stride,
                                                                         vectors, first > 0),
   ...);
}

// Vectors of batch per panel: long, since every panel of every link ends in a sum over lanes (the whole of a usual batch was
// fastest at all sparsities).
constexpr int kGradientPanel = 64;

void weight_gradients(const WeightGradients& a, int begin, int end) {
  for_panels<kGradientPanel>(a.batch, [&](int first, int vectors) {
    for (int g = begin; g < end; ++g) group_gradients(a, g, first, vectors, AllPatterns{});
  });
}

void row_sums(const float* dy, int64_t stride, int batch, float* dbias, int rows) {
  const int vectors = (batch + W - 1) / W;
  for (int i = 0; i < rows; ++i) {
    vec s{};
    for (int p = 0; p < vectors; ++p) s += load(dy + i * stride + p * W);
    dbias[i] = sum(s);
  }
}

// -------------------------------------------------------- one observation

constexpr int rank(int pattern, int r) { return pattern >> r & 1 ? popcount(pattern & ((1 << r) - 1)) : 0; }

// The four rows are the lanes of one small vector: an entry's weights are spread to their lanes by a fixed shuffle, other
// lanes fill with whatever is there and are dropped once at the end.
template <int M>
REWIRL_INLINE vec4 act_entries(const uint16_t*& other, const float*& w, int n, const float* x) {
  constexpr int c = popcount(M), U = 4;
  vec4 acc[U] = {};
  const uint16_t* const end = other + n;
  const auto term = [](const float* weights, float value) {
    const vec4 v = load4(weights);
    return __builtin_shufflevector(v, v, rank(M, 0), rank(M, 1), rank(M, 2), rank(M, 3)) * value;
  };
  for (; other + U <= end; other += U, w += U * c)
    REWIRL_UNROLL for (int u = 0; u < U; ++u) acc[u] += term(w + u * c, x[other[u]]);
  for (; other < end; ++other, w += c) acc[0] += term(w, x[*other]);
  const vec4 total = (acc[0] + acc[1]) + (acc[2] + acc[3]);
  return vec4{M & 1 ? total[0] : 0, M & 2 ? total[1] : 0, M & 4 ? total[2] : 0, M & 8 ? total[3] : 0};
}

template <size_t... I>
REWIRL_INLINE vec4 act_group(const Groups& links, int g, const float* x, std::index_sequence<I...>) {
  const uint16_t* other = links.other + links.entry[g];
  const float* w = links.w + links.weight[g];
  const uint16_t* count = links.count + 15 * int64_t(g);
  vec4 total{};
  ((total += count[I] ? act_entries<kPatterns[I]>(other, w, count[I], x) : vec4{}), ...);
  return total;
}

void act(const Groups& links, const float* bias, const float* x, float* y, int groups, bool relu) {
  for (int g = 0; g < groups; ++g) {
    const vec4 out = load4(bias + 4 * g) + act_group(links, g, x, AllPatterns{});
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) y[4 * g + r] = relu && out[r] < 0 ? 0 : out[r];
  }
}

// ----------------------------------------------------------- flat arrays

void adam(const Adam& a, int64_t begin, int64_t end) {
  // Copies of the constants, or the compiler must fear that the stores below change them.
  const float beta1 = a.beta1, beta2 = a.beta2, decay = a.weight_decay, step = a.step_size, c = a.correction, eps = a.eps;
  float* __restrict w = static_cast<float*>(__builtin_assume_aligned(a.w + begin, 64));
  float* __restrict m = static_cast<float*>(__builtin_assume_aligned(a.m + begin, 64));
  float* __restrict v = static_cast<float*>(__builtin_assume_aligned(a.v + begin, 64));
  const float* __restrict g = static_cast<const float*>(__builtin_assume_aligned(a.g + begin, 64));
  const int64_t n = end - begin;
  for (int64_t i = 0; i < n; ++i) {
    const float gi = g[i] + decay * w[i];
    m[i] = beta1 * m[i] + (1 - beta1) * gi;
    v[i] = beta2 * v[i] + (1 - beta2) * gi * gi;
    w[i] -= step * m[i] / (std::sqrt(v[i]) * c + eps);
  }
}

void polyak(float* __restrict target, const float* __restrict online, float tau, int64_t n) {
  const float rest = 1 - tau;
  if (online)
    for (int64_t i = 0; i < n; ++i) target[i] = tau * online[i] + rest * target[i];
  else
    for (int64_t i = 0; i < n; ++i) target[i] *= rest;
}

template <int B>
REWIRL_INLINE vec scores(const float* w) {
  if constexpr (B == 1) {
    return magnitude(*reinterpret_cast<const uvec*>(w));
  } else {
    vec out;
    for (int i = 0; i < W; ++i) {
      out[i] = std::fabs(w[i * B]);
      for (int r = 1; r < B; ++r) out[i] += std::fabs(w[i * B + r]);
    }
    return out;
  }
}

template <int B>
int64_t small_blocks(const float* w, int64_t blocks, float limit, uint64_t* found, int64_t* n_found) {
  int64_t zeros = 0, n = 0;
  for (int64_t i = 0; i < blocks; i += W) {
    const vec score = scores<B>(w + i * B);  // the room behind an array makes this safe for the last vector
    uint32_t below = lanes(score < splat(limit));
    if (i + W > blocks) below &= (1u << (blocks - i)) - 1;
    for (; below; below &= below - 1) {
      const int c = __builtin_ctz(below);
      const float s = score[c];
      uint32_t bits;
      std::memcpy(&bits, &s, 4);  // magnitudes compare like their bits
      found[n] = uint64_t(bits) << 32 | uint64_t(i + c);
      n += s != 0.0f;
      zeros += s == 0.0f;
    }
  }
  *n_found = n;
  return blocks - zeros;
}

int64_t small(const float* w, int64_t blocks, int block, float limit, uint64_t* found, int64_t* n_found) {
  switch (block) {
    case 1: return small_blocks<1>(w, blocks, limit, found, n_found);
    case 2: return small_blocks<2>(w, blocks, limit, found, n_found);
    default: return small_blocks<4>(w, blocks, limit, found, n_found);
  }
}

constexpr Kernels table{REWIRL_NAME, forward, weight_gradients, row_sums, act, adam, polyak, small};

}  // namespace
}  // namespace rewirl::REWIRL_NAMESPACE

namespace rewirl {
const Kernels* REWIRL_ENTRY() { return &REWIRL_NAMESPACE::table; }
}  // namespace rewirl
