// Kernels that do not depend on the wiring: loops over a network's flat arrays. Part of kernels.cpp, for one instruction set.
#pragma once
#include <cmath>
#include <cstring>

#include "kernels/kernels.h"
#include "kernels/simd.h"

namespace rewirl::REWIRL_NAMESPACE {
namespace {

void adam(const Adam& a, int64_t begin, int64_t end) {
  // Copies of the constants: the compiler would otherwise assume that the stores below change them.
  const float beta1 = a.beta1, beta2 = a.beta2, l2 = a.l2, keep = a.keep, step = a.step_size, c = a.correction, eps = a.eps;
  float* __restrict w = a.w + begin;
  float* __restrict m = a.m + begin;
  float* __restrict v = a.v + begin;
  const float* __restrict g = a.g + begin;
  const int64_t n = end - begin;
  for (int64_t i = 0; i < n; ++i) {
    const float gi = g[i] + l2 * w[i];
    m[i] = beta1 * m[i] + (1 - beta1) * gi;
    v[i] = beta2 * v[i] + (1 - beta2) * gi * gi;
    w[i] = keep * w[i] - step * m[i] / (std::sqrt(v[i]) * c + eps);
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

// Several vectors at a time: the branch on how many scores are below the limit is mispredicted.
template <int B>
int64_t small_blocks(const float* w, int64_t blocks, float limit, uint64_t* found, int64_t* n_found) {
  constexpr int at_once = 4;
  alignas(64) float score[at_once * W];
  int64_t zeros = 0, n = 0;
  const auto look = [&](int64_t first, int vectors) __attribute__((always_inline)) {
    uint64_t below = 0;
    REWIRL_UNROLL for (int v = 0; v < vectors; ++v) {
      const vec s = scores<B>(w + (first + v * W) * B);  // the room behind an array makes this safe for the last vector
      store(score + v * W, s);
      below |= uint64_t(lanes(s < splat(limit))) << v * W;
    }
    if (first + vectors * W > blocks) below &= (uint64_t(1) << (blocks - first)) - 1;
    for (; below; below &= below - 1) {
      const int c = __builtin_ctzll(below);
      const float s = score[c];
      uint32_t bits;
      std::memcpy(&bits, &s, 4);  // magnitudes compare like their bits
      found[n] = uint64_t(bits) << 32 | uint64_t(first + c);
      n += s != 0.0f;
      zeros += s == 0.0f;
    }
  };
  int64_t i = 0;
  for (; i + at_once * W <= blocks; i += at_once * W) look(i, at_once);
  for (; i < blocks; i += W) look(i, 1);
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

}  // namespace
}  // namespace rewirl::REWIRL_NAMESPACE
