// Layer normalisation (Ba et al. 2016) without learned gain and bias. Part of kernels.cpp, for one instruction set.
//
// Activations are feature-major, so a sample is a column: every sum runs over rows, a vector of samples at a time.
#pragma once

#include "kernels/kernels.h"
#include "kernels/simd.h"

namespace rewirl::REWIRL_NAMESPACE {
namespace {

// The sum over all rows of term(row); four sums at once, to hide the latency of additions.
template <class Term>
REWIRL_INLINE vec sum_over(int rows, const Term& term) {
  vec sum[4] = {};
  int r = 0;
  for (; r + 4 <= rows; r += 4)
    REWIRL_UNROLL for (int i = 0; i < 4; ++i) sum[i] += term(r + i);
  for (; r < rows; ++r) sum[0] += term(r);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

void normalise(const Normalise& a, int begin, int end) {
  const vec n = splat(float(a.rows));
  for (int s = begin * W; s < end * W; s += W) {
    const auto z = [&](int r) { return load(a.z + r * a.stride + s); };
    const vec mean = sum_over(a.rows, z) / n;
    const vec variance = sum_over(a.rows, [&](int r) { const vec d = z(r) - mean; return d * d; }) / n;
    const vec scale = splat(1) / square_root(variance + splat(kNormEpsilon));
    if (a.scale) store(a.scale + s, scale);
    for (int r = 0; r < a.rows; ++r) {
      const vec normal = (z(r) - mean) * scale;
      if (a.normal) store(a.normal + r * a.stride + s, normal);
      store(a.y + r * a.stride + s, relu(normal));
    }
  }
}

void through_normalise(const ThroughNormalise& a, int begin, int end) {
  const vec n = splat(float(a.rows));
  for (int s = begin * W; s < end * W; s += W) {
    const auto d = [&](int r) { return load(a.d + r * a.stride + s); };
    const auto normal = [&](int r) { return load(a.normal + r * a.stride + s); };
    const vec mean = sum_over(a.rows, d) / n;
    const vec along = sum_over(a.rows, [&](int r) { return d(r) * normal(r); }) / n;
    const vec scale = load(a.scale + s);
    for (int r = 0; r < a.rows; ++r) store(a.d + r * a.stride + s, (d(r) - mean - normal(r) * along) * scale);
  }
}

}  // namespace
}  // namespace rewirl::REWIRL_NAMESPACE
