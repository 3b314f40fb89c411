// Normal numbers, and actions of a tanh-squashed Gaussian with the backward pass through them. Part of kernels.cpp, for one instruction
// set.
#pragma once
#include "kernels/kernels.h"
#include "kernels/simd.h"
#include "runtime/limits.h"

namespace rewirl::REWIRL_NAMESPACE {
namespace {

// NaN stays.
REWIRL_INLINE vec clamped(vec x, float low, float high) {
  const vec up = x < splat(low) ? splat(low) : x;
  return up > splat(high) ? splat(high) : up;
}

// x = n log 2 + r with |r| ≤ log 2 / 2; exp r by its series, whose eighth term is below float's precision.
REWIRL_INLINE vec exponential(vec x) {
  const vec within = clamped(x, -87, 88);
  const vec magic = splat(12582912.0f);  // 1.5 · 2²³: adding it rounds to a whole number, in the last bits
  const vec shifted = within * 1.44269504f + magic, n = shifted - magic;
  const vec r = (within - n * 0.693359375f) + n * 2.12194440e-4f;  // log 2 in two parts, the first exact
  vec y = splat(1.0f / 5040);
  for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) y = y * r + c;
  const ivec exponent = reinterpret_cast<ivec>(shifted) - reinterpret_cast<ivec>(magic) + 127;
  return y * reinterpret_cast<vec>(exponent << 23);
}

// By e = exp(-2|x|): tanh|x| = (1 - e) / (1 + e).
REWIRL_INLINE vec tanh(vec x) {
  const vec e = exponential(-2.0f * magnitude(x)), positive = (1.0f - e) / (1.0f + e);
  return x < vec{} ? -positive : positive;
}

// log(1 + x) for 0 ≤ x ≤ 1: 2 artanh(x / (2 + x)) by its series.
REWIRL_INLINE vec log_of_one_plus(vec x) {
  const vec s = x / (x + 2.0f), square = s * s;
  vec y = splat(1.0f / 15);
  for (const float c : {1.0f / 13, 1.0f / 11, 1.0f / 9, 1.0f / 7, 1.0f / 5, 1.0f / 3, 1.0f}) y = y * square + c;
  return 2.0f * s * y;
}

// log x for 2⁻³² ≤ x ≤ 1: x = 2ⁿ m with m around 1, log m = 2 artanh((m - 1) / (m + 1)) by its series.
REWIRL_INLINE vec log_of_share(vec x) {
  const ivec bits = reinterpret_cast<ivec>(x), exponent = (bits - reinterpret_cast<ivec>(splat(0.70710678f))) >> 23;
  const vec m = reinterpret_cast<vec>(bits - (exponent << 23)), n = __builtin_convertvector(exponent, vec);
  const vec s = (m - 1.0f) / (m + 1.0f), square = s * s;
  vec y = splat(1.0f / 9);
  for (const float c : {1.0f / 7, 1.0f / 5, 1.0f / 3, 1.0f}) y = y * square + c;
  return 2.0f * s * y + n * 0.69314718f;
}

// Box and Muller: two shares of 32 bits make two independent numbers, √(-2 log a) cos 2πb and √(-2 log a) sin 2πb.
void normals(const uint64_t* bits, float* out) {
  constexpr int pairs = int(kNormals) / 2;
  alignas(64) int32_t as[pairs];
  alignas(64) uint32_t bs[pairs];
  for (int i = 0; i < pairs; ++i) {
    as[i] = int32_t(bits[i] >> 1 & 0x7fffffff);
    bs[i] = uint32_t(bits[i] >> 32);
  }
  for (int i = 0; i < pairs; i += W) {
    const vec a = (__builtin_convertvector(*reinterpret_cast<const ivec*>(as + i), vec) + 0.5f) * 0x1p-31f;
    // The angle is a number of quarter turns plus a rest of at most an eighth in either direction.
    const uvec32 b = *reinterpret_cast<const uvec32*>(bs + i), quarters = (b + (1u << 29)) >> 30;
    const vec left = __builtin_convertvector(reinterpret_cast<ivec>(b - (quarters << 30)), vec) * (3.14159265f * 0x1p-31f);
    const vec square = left * left;
    vec sin = splat(1.0f / 362880), cos = splat(1.0f / 40320);
    for (const float c : {-1.0f / 5040, 1.0f / 120, -1.0f / 6, 1.0f}) sin = sin * square + c;
    for (const float c : {-1.0f / 720, 1.0f / 24, -0.5f, 1.0f}) cos = cos * square + c;
    sin *= left;
    const ivec odd = -reinterpret_cast<ivec>(quarters & 1);
    const vec r = square_root(-2.0f * log_of_share(a));
    store(out + i, r * with_sign(odd ? sin : cos, ((quarters + 1) & 2) << 30));
    store(out + pairs + i, r * with_sign(odd ? cos : sin, (quarters & 2) << 30));
  }
}

void tanh_of(const float* x, float* out, int64_t n) {
  for (int64_t i = 0; i < n; i += W) store(out + i, tanh(load(x + i)));
}

void squash(const Squash& given) {
  const Squash a = given;  // a copy: the stores below cannot change it
  constexpr float log_2 = 0.69314718f, half_log_2pi = 0.91893853f;
  for (int p = 0; p < a.batch; p += W) {
    vec log_prob{};
    for (int i = 0; i < a.n_act; ++i) {
      const int64_t at = i * a.stride + p;
      const vec log_std = clamped(load(a.out + a.n_act * a.stride + at), kLogStdMin, kLogStdMax);
      const vec std = exponential(log_std), noise = load(a.noise + at);
      const vec u = load(a.out + at) + std * noise, size = magnitude(u);
      // Everything follows from e = exp(-2|u|): tanh|u| = (1 - e) / (1 + e), and 1 - tanh²u = 4e / (1 + e)².
      const vec e = exponential(-2.0f * size);
      const vec tanh = (1.0f - e) / (1.0f + e);
      const vec log_slope = 2.0f * (log_2 - size - log_of_one_plus(e));
      store(a.action + at, u < vec{} ? -tanh : tanh);
      store(a.std + at, std);
      log_prob += -0.5f * noise * noise - log_std - half_log_2pi - log_slope;
    }
    store(a.log_prob + p, log_prob);
  }
}

void through_squash(const Squash& given, const float* da1, const float* da2, float alpha_per_sample, float* d_out) {
  const Squash a = given;
  for (int i = 0; i < a.n_act; ++i)
    for (int p = 0; p < a.batch; p += W) {
      const int64_t at = i * a.stride + p, below = a.n_act * a.stride + at;
      const vec action = load(a.action + at), log_std = load(a.out + below);
      // d log π / du = 2 tanh u from the slope of tanh, d log π / d log std = -1
      const vec du = (load(da1 + at) + load(da2 + at)) * (1.0f - action * action) + 2 * alpha_per_sample * action;
      const vec d_log_std = du * load(a.std + at) * load(a.noise + at) - alpha_per_sample;
      store(d_out + at, du);
      store(d_out + below, keep(clamped(log_std, kLogStdMin, kLogStdMax) == log_std, d_log_std));
    }
}

}  // namespace
}  // namespace rewirl::REWIRL_NAMESPACE
