// Loops over groups of links and over panels of a batch. Part of kernels.cpp, for one instruction set.
#pragma once
#include <utility>

#include "kernels/kernels.h"
#include "kernels/simd.h"

namespace rewirl::REWIRL_NAMESPACE {
namespace {

// A group's runs, one for each possible pattern.
template <PatternSet patterns>
using Runs = std::make_index_sequence<size_t(list_of(patterns).size)>;
template <PatternSet patterns, size_t run>
constexpr int pattern_of = list_of(patterns).pattern[run];

// Calls f<patterns>() for the patterns that are given.
#define REWIRL_WITH_PATTERNS(given, f, ...)                  \
  switch (given) {                                        \
    case PatternSet::blocks: return f<PatternSet::blocks>(__VA_ARGS__); \
    case PatternSet::two: return f<PatternSet::two>(__VA_ARGS__);       \
    default: return f<PatternSet::four>(__VA_ARGS__);              \
  }

// The factor of each row's weight in an entry; any number for rows without a link.
template <int K>
REWIRL_INLINE vec4 values(const uint16_t* other, const float* x) {
  if constexpr (kPattern[K].columns() == 1) {
    return splat4(x[other[0]]);
  } else if constexpr (kPattern[K].columns() == 4) {
    return vec4{x[other[0]], x[other[1]], x[other[2]], x[other[3]]};
  } else {
    constexpr auto lane = [](int r) { return 4 * kPattern[K].column[r] + r; };
    return __builtin_shufflevector(splat4(x[other[0]]), splat4(x[other[1]]), lane(0), lane(1), lane(2), lane(3));
  }
}

// Vectors of batch per panel. 4·P sums, P activations and a weight must fit the registers, and a panel of 256 features
// the first-level cache.
constexpr int kPanel = REWIRL_REGISTERS >= 32 ? 4 : 3;

// Rows from which on a layer's activations do not stay in the second-level cache.
constexpr int kWide = 1024;
constexpr int kLine = 16;  // floats in a cache line

// Fetches a row that is written next, and one that is read with it, unless that is null. Rows come in any order, which processors do
// not foresee: without this a wide layer waits for memory at every row, however few links it has.
template <int P>
REWIRL_INLINE void fetch_row(float* to, const float* from, int64_t at) {
  for (int i = 0; i < P * W; i += kLine) __builtin_prefetch(to + at + i, 1);
  if (from)
    for (int i = 0; i < P * W; i += kLine) __builtin_prefetch(from + at + i);
}

constexpr int vectors_of(int batch) { return (batch + W - 1) / W; }

// Calls f(first vector, vectors) for panels of at most `most` vectors that together cover begin .. end, as equal as possible. The
// narrow ones first: panels of two vectors then begin where cache lines do.
template <int most, class F>
REWIRL_INLINE void for_panels(int begin, int end, const F& f) {
  const int vectors = end - begin;
  const int panels = (vectors + most - 1) / most;
  for (int i = 0, first = begin; i < panels; ++i) {
    const int width = vectors / panels + (i >= panels - vectors % panels);
    f(first, width);
    first += width;
  }
}

// Calls f with a width of at most `most` vectors as a compile-time constant, as arrays in registers require.
template <int most, class F>
REWIRL_INLINE void with_width(int width, const F& f) {
  if (width == most) return f(std::integral_constant<int, most>{});
  if constexpr (most > 1) with_width<most - 1>(width, f);
}

}  // namespace
}  // namespace rewirl::REWIRL_NAMESPACE
