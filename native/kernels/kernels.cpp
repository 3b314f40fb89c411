// One instruction set's kernels. Compiled once for each, with REWIRL_NAMESPACE and the compiler's flags set by CMake.
#include "kernels/kernels.h"

#include <algorithm>

#include "kernels/batch_norm.h"
#include "kernels/both_gradients.h"
#include "kernels/dense.h"
#include "kernels/finish.h"
#include "kernels/flat.h"
#include "kernels/gaussian.h"
#include "kernels/gradients.h"
#include "kernels/normalise.h"
#include "kernels/panels.h"
#include "kernels/simd.h"

namespace rewirl::REWIRL_NAMESPACE {
namespace {

// ---------------------------------------------------------------- forward

template <int P>
REWIRL_INLINE void add_link(vec (&acc)[P], uint16_t other, vec ws, const float* x, int64_t stride) {
  const float* column = x + other * stride;
  REWIRL_UNROLL for (int p = 0; p < P; ++p) acc[p] += ws * load(column + p * W);
}

template <int K, int P>
REWIRL_INLINE void add_entries(vec (&acc)[4][P], const uint16_t*& other, const float*& w, int n, const float* x,
                               int64_t stride) {
  constexpr Pattern pattern = kPattern[K];
  for (const uint16_t* end = other + n * pattern.columns(); other < end; other += pattern.columns(), w += pattern.links()) {
#if REWIRL_WIDTH < 16
    if constexpr (pattern.columns() == 4) {
      const vec four = repeat(load4(w));  // one load for four weights: loads limit this loop
      add_link<P>(acc[0], other[0], splat_lane<0>(four), x, stride);
      add_link<P>(acc[1], other[1], splat_lane<1>(four), x, stride);
      add_link<P>(acc[2], other[2], splat_lane<2>(four), x, stride);
      add_link<P>(acc[3], other[3], splat_lane<3>(four), x, stride);
      continue;
    }
#endif
    REWIRL_UNROLL for (int c = 0; c < pattern.columns(); ++c) {
      vec xs[P];
      REWIRL_UNROLL for (int p = 0; p < P; ++p) xs[p] = load(x + other[c] * stride + p * W);
      REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
        if (pattern.column[r] != c) continue;
        const vec ws = splat(w[pattern.offset(r)]);
        REWIRL_UNROLL for (int p = 0; p < P; ++p) acc[r][p] += ws * xs[p];
      }
    }
  }
}

template <PatternSet patterns, int P, size_t... I>
REWIRL_INLINE void add_group(vec (&acc)[4][P], const Groups& links, int g, const float* x, int64_t stride,
                             std::index_sequence<I...>) {
  const uint16_t* other = links.other + links.column[g];
  const float* w = links.w + links.weight[g];
  const uint16_t* count = links.count + int64_t(sizeof...(I)) * g;
  (add_entries<pattern_of<patterns, I>, P>(acc, other, w, count[I], x, stride), ...);
}

// `a` is a copy: the compiler would otherwise assume that the stores below change it.
template <PatternSet patterns, int P, bool wide>
void forward_panel(const Forward a, int first, int group_begin, int group_end) {
  const float* x = a.x + first * W;
  for (int g = group_begin; g < group_end; ++g) {
    const int rows = std::min(4, a.rows - 4 * g);
    const uint16_t* row = a.links.row + 4 * int64_t(g);
    if constexpr (wide)
      if (g + 1 < group_end)
        REWIRL_UNROLL for (int r = 4; r < 8; ++r) fetch_row<P>(a.y, a.gate, row[r] * a.stride + first * W);
    vec acc[4][P];
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
      const vec start = splat(a.bias && r < rows ? a.bias[row[r]] : 0.0f);
      REWIRL_UNROLL for (int p = 0; p < P; ++p) acc[r][p] = start;
    }
    add_group<patterns>(acc, a.links, g, x, a.stride, Runs<patterns>{});
    constexpr PatternSet extra = patterns == PatternSet::blocks ? PatternSet::blocks : PatternSet::four;
    if (a.extra.w) add_group<extra>(acc, a.extra, g, x, a.stride, Runs<extra>{});
    if (a.relu)
      REWIRL_UNROLL for (int r = 0; r < 4; ++r)
        REWIRL_UNROLL for (int p = 0; p < P; ++p) acc[r][p] = relu(acc[r][p]);
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
      if (r >= rows) break;
      const int64_t at = row[r] * a.stride + first * W;
      if (a.gate)
        REWIRL_UNROLL for (int p = 0; p < P; ++p) acc[r][p] = keep(load(a.gate + at + p * W) > vec{}, acc[r][p]);
      REWIRL_UNROLL for (int p = 0; p < P; ++p) store(a.y + at + p * W, acc[r][p]);
    }
  }
}

template <PatternSet patterns>
void forward_of(const Forward& a, int begin, int end) {
  for_panels<kPanel>(0, vectors_of(a.batch), [&](int first, int width) {
    with_width<kPanel>(width, [&](auto P) {
      if (W == 16 && a.rows >= kWide) return forward_panel<patterns, P, true>(a, first, begin, end);
      forward_panel<patterns, P, false>(a, first, begin, end);
    });
  });
}

void forward(const Forward& a, int begin, int end) { REWIRL_WITH_PATTERNS(a.links.patterns, forward_of, a, begin, end) }

// -------------------------------------------------------- one observation

// The four rows are the lanes of one small vector; lanes without a link collect arbitrary numbers and are dropped at the end.
template <int K>
REWIRL_INLINE vec4 act_entries(const uint16_t*& other, const float*& w, int n, const float* x) {
  constexpr Pattern pattern = kPattern[K];
  constexpr int C = pattern.columns(), L = pattern.links(), U = 4;
  vec4 acc[U] = {};
  const auto term = [x](const uint16_t* o, const float* weights) __attribute__((always_inline)) {
    const vec4 v = load4(weights);
    constexpr auto lane = [](int r) { return kPattern[K].has(r) ? kPattern[K].offset(r) : 0; };
    return __builtin_shufflevector(v, v, lane(0), lane(1), lane(2), lane(3)) * values<K>(o, x);
  };
  for (; n >= U; n -= U, other += U * C, w += U * L)
    REWIRL_UNROLL for (int u = 0; u < U; ++u) acc[u] += term(other + u * C, w + u * L);
  for (; n > 0; --n, other += C, w += L) acc[0] += term(other, w);
  const vec4 total = (acc[0] + acc[1]) + (acc[2] + acc[3]);
  return vec4{pattern.has(0) ? total[0] : 0, pattern.has(1) ? total[1] : 0, pattern.has(2) ? total[2] : 0, pattern.has(3) ? total[3] : 0};
}

template <PatternSet patterns, size_t... I>
REWIRL_INLINE vec4 act_group(const Groups& links, int g, const float* x, std::index_sequence<I...>) {
  const uint16_t* other = links.other + links.column[g];
  const float* w = links.w + links.weight[g];
  const uint16_t* count = links.count + int64_t(sizeof...(I)) * g;
  vec4 total{};
  ((total += count[I] ? act_entries<pattern_of<patterns, I>>(other, w, count[I], x) : vec4{}), ...);
  return total;
}

template <PatternSet patterns>
void act_of(const Groups& links, const float* bias, const float* x, float* y, int groups, bool relu) {
  for (int g = 0; g < groups; ++g) {
    const uint16_t* row = links.row + 4 * int64_t(g);
    vec4 out = act_group<patterns>(links, g, x, Runs<patterns>{}) + vec4{bias[row[0]], bias[row[1]], bias[row[2]], bias[row[3]]};
    if (relu) out = relu4(out);
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) y[row[r]] = out[r];
  }
}

void act(const Groups& links, const float* bias, const float* x, float* y, int groups, bool relu) {
  REWIRL_WITH_PATTERNS(links.patterns, act_of, links, bias, x, y, groups, relu)
}

constexpr Kernels table{REWIRL_NAME, W, kQuads, forward, weight_gradients, by_samples, input_gradients, kBothGradients, row_sums, act, normalise,
                        through_normalise, moments, fold, through_fold, finish_gradients, adam, polyak, small, normals, tanh_of, squash, through_squash};

}  // namespace
}  // namespace rewirl::REWIRL_NAMESPACE

namespace rewirl {
const Kernels* REWIRL_ENTRY() { return &REWIRL_NAMESPACE::table; }
}  // namespace rewirl
