// One instruction set's kernels. Compiled once for each, with REWIRL_NAMESPACE and the compiler's flags set by CMake.
#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "flat.h"
#include "simd.h"

namespace rewirl::REWIRL_NAMESPACE {
namespace {

using AllPatterns = std::make_index_sequence<15>;
// Those that a target's extra links in blocks have; others are kept by rows.
using ExtraPatterns = std::index_sequence<0, 1, 14>;
static_assert(kPatterns[0] == 3 && kPatterns[1] == 12 && kPatterns[14] == 15);

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
REWIRL_INLINE void add_link(vec (&acc)[P], uint16_t other, vec ws, const float* x, int64_t stride) {
  const float* column = x + other * stride;
  REWIRL_UNROLL for (int p = 0; p < P; ++p) acc[p] += ws * load(column + p * W);
}

template <int P>
REWIRL_INLINE void add_rows(vec (&acc)[4][P], const Groups& links, int g, const float* x, int64_t stride) {
  const uint16_t* other = links.other + links.entry[g];
  const float* w = links.w + links.entry[g];
  const uint16_t* count = links.count + 5 * int64_t(g);
  for (const uint16_t* end = other + 4 * count[0]; other < end; other += 4, w += 4) {
    const vec four = repeat(load4(w));  // one load for four weights: loads are what this loop waits for
    add_link<P>(acc[0], other[0], splat_lane<0>(four), x, stride);
    add_link<P>(acc[1], other[1], splat_lane<1>(four), x, stride);
    add_link<P>(acc[2], other[2], splat_lane<2>(four), x, stride);
    add_link<P>(acc[3], other[3], splat_lane<3>(four), x, stride);
  }
  REWIRL_UNROLL for (int r = 0; r < 4; ++r)
    for (int n = count[1 + r]; n > 0; --n) add_link<P>(acc[r], *other++, splat(*w++), x, stride);
}

// `a` is a copy, or the compiler must fear that the stores below change it.
template <int P, bool by_rows>
void forward_panel(const Forward a, int first, int group_begin, int group_end) {
  const float* x = a.x + first * W;
  for (int g = group_begin; g < group_end; ++g) {
    const int rows = std::min(4, a.rows - 4 * g);
    const auto row = [&](int r) { return by_rows ? int(a.links.row[4 * int64_t(g) + r]) : 4 * g + r; };
    vec acc[4][P];
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
      const vec start = splat(a.bias && r < rows ? a.bias[row(r)] : 0.0f);
      REWIRL_UNROLL for (int p = 0; p < P; ++p) acc[r][p] = start;
    }
    if constexpr (by_rows)
      add_rows<P>(acc, a.links, g, x, a.stride);
    else
      add_group<P>(acc, a.links, g, x, a.stride, AllPatterns{});
    if (a.extra.entry) {
      if (by_rows || a.extra.by_rows)
        add_rows<P>(acc, a.extra, g, x, a.stride);
      else
        add_group<P>(acc, a.extra, g, x, a.stride, ExtraPatterns{});
    }
    if (a.relu)
      REWIRL_UNROLL for (int r = 0; r < 4; ++r)
        REWIRL_UNROLL for (int p = 0; p < P; ++p) acc[r][p] = relu(acc[r][p]);
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
      if (r >= rows) break;
      const int64_t at = row(r) * a.stride + first * W;
      if (a.gate)
        REWIRL_UNROLL for (int p = 0; p < P; ++p) acc[r][p] = keep(load(a.gate + at + p * W) > vec{}, acc[r][p]);
      REWIRL_UNROLL for (int p = 0; p < P; ++p) store(a.y + at + p * W, acc[r][p]);
    }
  }
}

template <int P>
REWIRL_INLINE void forward_width(const Forward& a, int first, int width, int begin, int end) {
  if (width == P) return (a.links.by_rows ? forward_panel<P, true> : forward_panel<P, false>)(a, first, begin, end);
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

// The gradients of E entries of each of four rows, which lie in turn: E times four sums.
template <int E>
REWIRL_INLINE void entry_gradients_of_rows(const float* const (&dy)[4], const uint16_t* other, float* dw, const float* x,
                                           int64_t stride, int vectors, bool add) {
  vec s[E][4] = {};
  const float* columns[E][4];
  REWIRL_UNROLL for (int e = 0; e < E; ++e)
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) columns[e][r] = x + other[4 * e + r] * stride;
  for (int p = 0; p < vectors; ++p) {
    vec d[4];
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) d[r] = load(dy[r] + p * W);
    REWIRL_UNROLL for (int e = 0; e < E; ++e)
      REWIRL_UNROLL for (int r = 0; r < 4; ++r) s[e][r] += d[r] * load(columns[e][r] + p * W);
  }
  REWIRL_UNROLL for (int e = 0; e < E; ++e) put<4>(dw + 4 * e, sum4(s[e][0], s[e][1], s[e][2], s[e][3]), add);
}

REWIRL_INLINE void group_gradients_of_rows(const WeightGradients& a, int g, int first, int vectors) {
  const uint16_t* other = a.links.other + a.links.entry[g];
  const uint16_t* count = a.links.count + 5 * int64_t(g);
  float* dw = a.dw + a.links.entry[g];
  const float* x = a.x + first * W;
  const float* dy[4];
  for (int r = 0; r < 4; ++r) dy[r] = a.dy + a.links.row[4 * int64_t(g) + r] * a.stride + first * W;
  const bool add = first > 0;
  int n = count[0];
  for (; n >= 3; n -= 3, other += 12, dw += 12) entry_gradients_of_rows<3>(dy, other, dw, x, a.stride, vectors, add);
  for (; n > 0; --n, other += 4, dw += 4) entry_gradients_of_rows<1>(dy, other, dw, x, a.stride, vectors, add);
  REWIRL_UNROLL for (int r = 0; r < 4; ++r)
    for (n = count[1 + r]; n > 0; --n, ++other, ++dw) {
      vec s{};
      const float* column = x + *other * a.stride;
      for (int p = 0; p < vectors; ++p) s += load(dy[r] + p * W) * load(column + p * W);
      *dw = add ? *dw + sum(s) : sum(s);
    }
}

// Vectors of batch per panel: long, since every panel of every link ends in a sum over lanes (the whole of a usual batch was
// fastest at all sparsities).
constexpr int kGradientPanel = 64;

// Copies again, for the compiler.
void gradients_by_patterns(const WeightGradients a, int first, int vectors, int begin, int end) {
  for (int g = begin; g < end; ++g) group_gradients(a, g, first, vectors, AllPatterns{});
}

void gradients_by_rows(const WeightGradients a, int first, int vectors, int begin, int end) {
  for (int g = begin; g < end; ++g) group_gradients_of_rows(a, g, first, vectors);
}

void weight_gradients(const WeightGradients& a, int begin, int end) {
  for_panels<kGradientPanel>(a.batch, [&](int first, int vectors) {
    (a.links.by_rows ? gradients_by_rows : gradients_by_patterns)(a, first, vectors, begin, end);
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

REWIRL_INLINE vec4 act_rows(const Groups& links, int g, const float* x) {
  constexpr int U = 2;
  const uint16_t* other = links.other + links.entry[g];
  const float* w = links.w + links.entry[g];
  const uint16_t* count = links.count + 5 * int64_t(g);
  const auto term = [x](const uint16_t* o, const float* weights) {
    return vec4{x[o[0]], x[o[1]], x[o[2]], x[o[3]]} * load4(weights);
  };
  vec4 acc[U] = {};
  int n = count[0];
  for (; n >= U; n -= U, other += 4 * U, w += 4 * U)
    REWIRL_UNROLL for (int u = 0; u < U; ++u) acc[u] += term(other + 4 * u, w + 4 * u);
  for (; n > 0; --n, other += 4, w += 4) acc[0] += term(other, w);
  vec4 total = acc[0] + acc[1];
  for (int r = 0; r < 4; ++r)
    for (n = count[1 + r]; n > 0; --n) total[r] += *w++ * x[*other++];
  return total;
}

void act_by_patterns(const Groups& links, const float* bias, const float* x, float* y, int groups, bool relu) {
  for (int g = 0; g < groups; ++g) {
    const vec4 out = load4(bias + 4 * g) + act_group(links, g, x, AllPatterns{});
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) y[4 * g + r] = relu && out[r] < 0 ? 0 : out[r];
  }
}

void act_by_rows(const Groups& links, const float* bias, const float* x, float* y, int groups, bool relu) {
  for (int g = 0; g < groups; ++g) {
    const vec4 out = act_rows(links, g, x);
    const uint16_t* row = links.row + 4 * int64_t(g);
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
      const float sum = bias[row[r]] + out[r];
      y[row[r]] = relu && sum < 0 ? 0 : sum;
    }
  }
}

void act(const Groups& links, const float* bias, const float* x, float* y, int groups, bool relu) {
  (links.by_rows ? act_by_rows : act_by_patterns)(links, bias, x, y, groups, relu);
}

constexpr Kernels table{REWIRL_NAME, forward, weight_gradients, row_sums, act, adam, polyak, small};

}  // namespace
}  // namespace rewirl::REWIRL_NAMESPACE

namespace rewirl {
const Kernels* REWIRL_ENTRY() { return &REWIRL_NAMESPACE::table; }
}  // namespace rewirl
