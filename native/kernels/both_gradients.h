// Both gradients of a very sparse layer in one pass: each load of dy serves its inputs and its weights. Part of kernels.cpp, for one
// instruction set.
//
// Loads limit these passes, and in a wide layer they wait for the second-level cache. Only the longest vectors have registers enough
// that the sums over lanes, at the end of every panel, cost less than this saves.
#pragma once
#include <utility>

#include "kernels/gradients.h"
#include "kernels/kernels.h"
#include "kernels/panels.h"
#include "kernels/simd.h"

namespace rewirl::REWIRL_NAMESPACE {
namespace {

#if REWIRL_WIDTH == 16

// The links of row r of a group with the patterns `four`: one in each quad, then its single links.
struct RowLinks {
  const uint16_t* other;  // those of the group
  const float* w;
  int quads, single, r, links;

  int at(int i) const { return i < quads ? 4 * i + r : single + i; }
};

// U links, from number i of the row.
template <int U, int P>
REWIRL_INLINE void both_of_links(vec (&sums)[P], const vec (&x)[P], const RowLinks& row, int i, const float* dy, int64_t stride, float* dw,
                                 bool add) {
  vec s[4] = {};
  REWIRL_UNROLL for (int u = 0; u < U; ++u) {
    const int at = row.at(i + u);
    const float* column = dy + row.other[at] * stride;
    const vec ws = splat(row.w[at]);
    REWIRL_UNROLL for (int p = 0; p < P; ++p) {
      vec d = load(column + p * W);
      in_register(d);
      sums[p] += ws * d;
      s[u] = p == 0 ? x[p] * d : s[u] + x[p] * d;
    }
  }
  put_sums<U>(dw + i, s, add);
}

template <int P>
void both_panel(const BothGradients a, int first, int begin, int end) {
  const float* dy = a.dy + first * W;
  for (int g = begin; g < end; ++g) {
    const uint16_t* count = a.links.count + list_of(PatternSet::four).size * int64_t(g);
    const int quads = count[0];
    int64_t before = a.links.weight[g];
    RowLinks row{a.links.other + before, a.links.w + before, quads, 3 * quads, 0, 0};
    for (int r = 0; r < 4 && 4 * g + r < a.rows; ++r) {
      row.r = r;
      row.links = quads + count[1 + r];
      const int64_t at = a.links.row[4 * int64_t(g) + r] * a.stride + first * W;
      if (a.rows >= kWide && g + 1 < end) fetch_row<P>(a.dx, a.x, a.links.row[4 * int64_t(g + 1) + r] * a.stride + first * W);
      vec x[P], sums[P] = {};
      REWIRL_UNROLL for (int p = 0; p < P; ++p) x[p] = load(a.x + at + p * W);
      float* dw = a.dw + before;
      int i = 0;
      for (; i + 4 <= row.links; i += 4) both_of_links<4>(sums, x, row, i, dy, a.stride, dw, first > 0);
      if (i < row.links)
        with_width<3>(row.links - i, [&](auto U) { both_of_links<U>(sums, x, row, i, dy, a.stride, dw, first > 0); });
      REWIRL_UNROLL for (int p = 0; p < P; ++p) store(a.dx + at + p * W, a.gate ? keep(x[p] > vec{}, sums[p]) : sums[p]);
      before += row.links;
      row.single += count[1 + r];
    }
  }
}

// Vectors of batch per panel, whose sums and inputs fit the registers.
constexpr int kBothPanel = 8;

void both_gradients(const BothGradients& a, int begin, int end) {
  for_panels<kBothPanel>(0, vectors_of(a.batch), [&](int first, int width) {
    with_width<kBothPanel>(width, [&](auto P) { both_panel<P>(a, first, begin, end); });
  });
}

constexpr auto kBothGradients = &both_gradients;

#else
constexpr void (*kBothGradients)(const BothGradients&, int, int) = nullptr;
#endif

}  // namespace
}  // namespace rewirl::REWIRL_NAMESPACE
