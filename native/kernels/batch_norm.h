// Batch normalisation of a layer's inputs. Part of kernels.cpp, for one instruction set.
//
// Normalised inputs are a x + c, with one a and one c for each input. So they are never written down: a layer with the weights W a
// and the biases b + W c gives the same outputs from x itself. This takes work for each link, not for each sample.
#pragma once

#include "kernels/kernels.h"
#include "kernels/panels.h"
#include "kernels/simd.h"

namespace rewirl::REWIRL_NAMESPACE {
namespace {

// Mean and variance of each row: a row stays in the first-level cache between the two sums. Behind the batch there is padding,
// which does not count.
void moments(const Moments& a, int begin, int end) {
  const int whole = a.batch / W * W;
  const float n = float(a.batch);
  const auto row_sum = [&](const float* x, const auto& term) __attribute__((always_inline)) {
    vec s[4] = {};
    int i = 0;
    for (; i + 4 * W <= whole; i += 4 * W)
      REWIRL_UNROLL for (int k = 0; k < 4; ++k) s[k] += term(load(x + i + k * W));
    for (; i < whole; i += W) s[0] += term(load(x + i));
    if (i < a.batch) {
      const vec last = term(load(x + i));
      for (int k = 0; k < a.batch - i; ++k) s[1][k] += last[k];
    }
    return sum((s[0] + s[1]) + (s[2] + s[3]));
  };
  for (int r = begin; r < end; ++r) {
    const float* x = a.x + r * a.stride;
    const float mean = row_sum(x, [](vec v) { return v; }) / n;
    a.mean[r] = mean;
    a.variance[r] = row_sum(x, [mean](vec v) { const vec d = v - splat(mean); return d * d; }) / n;
  }
}

// Calls f(rows that have a link, weights before it, its columns) for each entry of a group; the number of weights is that of the rows.
template <int K, class F>
REWIRL_INLINE void each_entry(const uint16_t*& other, int64_t& at, int n, const F& f) {
  constexpr Pattern pattern = kPattern[K];
  for (; n > 0; --n, other += pattern.columns(), at += pattern.links()) f(std::integral_constant<int, K>{}, at, other);
}

template <PatternSet patterns, class F, size_t... I>
REWIRL_INLINE void each_entry_of(const Groups& links, int g, const F& f, std::index_sequence<I...>) {
  const uint16_t* other = links.other + links.column[g];
  int64_t at = links.weight[g];
  const uint16_t* count = links.count + int64_t(sizeof...(I)) * g;
  (each_entry<pattern_of<patterns, I>>(other, at, count[I], f), ...);
}

// The weights of an entry by rows; 0 where a row has no link.
template <int K>
REWIRL_INLINE vec4 by_rows_of(const float* w) {
  constexpr Pattern pattern = kPattern[K];
  if constexpr (pattern.links() == 4) return load4(w);
  vec4 out{};
  REWIRL_UNROLL for (int r = 0; r < 4; ++r)
    if (pattern.has(r)) out[r] = w[pattern.offset(r)];
  return out;
}
template <int K>
REWIRL_INLINE void put_by_rows(float* w, vec4 v) {
  constexpr Pattern pattern = kPattern[K];
  if constexpr (pattern.links() == 4) return store4(w, v);
  REWIRL_UNROLL for (int r = 0; r < 4; ++r)
    if (pattern.has(r)) w[pattern.offset(r)] = v[r];
}

REWIRL_INLINE vec4 at_rows(const float* values, const uint16_t* row) {
  return vec4{values[row[0]], values[row[1]], values[row[2]], values[row[3]]};
}

template <PatternSet patterns>
void fold_of(const Fold a, int begin, int end) {
  for (int g = begin; g < end; ++g) {
    const uint16_t* row = a.links.row + 4 * int64_t(g);
    vec4 shifted = at_rows(a.bias, row);
    each_entry_of<patterns>(a.links, g, [&](auto K, int64_t at, const uint16_t* other) __attribute__((always_inline)) {
      const vec4 w = by_rows_of<K>(a.links.w + at);
      put_by_rows<K>(a.weights + at, w * values<K>(other, a.a));
      shifted += w * values<K>(other, a.c);
    }, Runs<patterns>{});
    REWIRL_UNROLL for (int r = 0; r < 4; ++r)
      if (4 * g + r < a.rows) a.biases[row[r]] = shifted[r];
  }
}

void fold(const Fold& a, int begin, int end) { REWIRL_WITH_PATTERNS(a.links.patterns, fold_of, a, begin, end) }

template <PatternSet patterns>
void through_fold_of(const ThroughFold a, int groups) {
  for (int g = 0; g < groups; ++g) {
    const vec4 db = at_rows(a.db, a.links.row + 4 * int64_t(g));
    each_entry_of<patterns>(a.links, g, [&](auto K, int64_t at, const uint16_t* other) __attribute__((always_inline)) {
      constexpr Pattern pattern = kPattern[K];
      const vec4 w = by_rows_of<K>(a.links.w + at), dw = by_rows_of<K>(a.dw + at), wb = w * db, wg = w * dw;
      put_by_rows<K>(a.dw + at, dw * values<K>(other, a.a) + db * values<K>(other, a.c));
      REWIRL_UNROLL for (int c = 0; c < pattern.columns(); ++c) {
        float plain = 0, along = 0;
        REWIRL_UNROLL for (int r = 0; r < 4; ++r)
          if (pattern.column[r] == c) plain += wb[r], along += wg[r];
        a.plain[other[c]] += plain;
        a.along[other[c]] += along;
      }
    }, Runs<patterns>{});
  }
}

void through_fold(const ThroughFold& a, int groups) { REWIRL_WITH_PATTERNS(a.links.patterns, through_fold_of, a, groups) }

}  // namespace
}  // namespace rewirl::REWIRL_NAMESPACE
