// What remains to be done for the gradient of a layer's inputs: row by row, each sample once. Part of kernels.cpp, for one instruction
// set.
//
// In wide layers such passes wait for memory, so that one does what several could: normalisation, gate, the sums for the biases before.
#pragma once

#include "kernels/kernels.h"
#include "kernels/simd.h"

namespace rewirl::REWIRL_NAMESPACE {
namespace {

template <bool product, bool moved>
void finish_rows(const FinishGradients a, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    const int64_t r = product ? a.row[i] : i;
    const vec w = splat(product ? a.w[i] : 1);
    const vec s = splat(moved ? a.a[r] : 1), e = splat(moved ? a.e[r] : 0), f = splat(moved ? a.f[r] : 0);
    float* d = a.d + r * a.stride;
    const float* x = a.x + r * a.stride;
    vec sums[2] = {};
    const auto finished = [&](int at) __attribute__((always_inline)) {
      const vec xs = load(x + at), before = product ? w * load(a.dy + at) : load(d + at);
      const vec after = moved ? s * before + (e + f * xs) : before;
      return a.gate ? keep(xs > vec{}, after) : after;
    };
    const int whole = a.batch / W * W;
    int at = 0;
    for (; at + 2 * W <= whole; at += 2 * W)
      REWIRL_UNROLL for (int k = 0; k < 2; ++k) {
        const vec out = finished(at + k * W);
        store(d + at + k * W, out);
        sums[k] += out;
      }
    for (; at < a.batch; at += W) {
      vec out = finished(at);
      // What is behind the batch must stay 0: sums over the batch run over it too.
      for (int k = a.batch - at; k < W; ++k) out[k] = 0;
      store(d + at, out);
      sums[0] += out;
    }
    if (a.sums) a.sums[r] = sum(sums[0] + sums[1]);
  }
}

void finish_gradients(const FinishGradients& a, int begin, int end) {
  if (a.w) return a.a ? finish_rows<true, true>(a, begin, end) : finish_rows<true, false>(a, begin, end);
  return a.a ? finish_rows<false, true>(a, begin, end) : finish_rows<false, false>(a, begin, end);
}

}  // namespace
}  // namespace rewirl::REWIRL_NAMESPACE
