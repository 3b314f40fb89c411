// The backward pass through a layer: gradients of its inputs, weights and biases. Part of kernels.cpp, for one instruction set.
#pragma once
#include <algorithm>

#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "kernels/panels.h"
#include "kernels/simd.h"

namespace rewirl::REWIRL_NAMESPACE {
namespace {

// ------------------------------------------------------- input gradients

// Blocks: each entry adds the contribution of its four rows to the sums of its columns. The rows stay in registers, the sums in
// the first-level cache, where those of a panel are contiguous.
template <int K, int P, bool all>
REWIRL_INLINE void give_entries(const vec (&dy)[4][P], const uint16_t*& other, const float*& w, int n, float* sums, int begin,
                                int end) {
  constexpr Pattern pattern = kPattern[K];
  for (const uint16_t* last = other + n * pattern.columns(); other < last; other += pattern.columns(), w += pattern.links())
    REWIRL_UNROLL for (int c = 0; c < pattern.columns(); ++c) {
      const int column = other[c];
      if (!all && (column < begin || column >= end)) continue;
      float* to = sums + int64_t(column) * (P * W);
      vec s[P];
      REWIRL_UNROLL for (int p = 0; p < P; ++p) s[p] = load(to + p * W);
      REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
        if (pattern.column[r] != c) continue;
        const vec ws = splat(w[pattern.offset(r)]);
        REWIRL_UNROLL for (int p = 0; p < P; ++p) s[p] += ws * dy[r][p];
      }
      REWIRL_UNROLL for (int p = 0; p < P; ++p) store(to + p * W, s[p]);
    }
}

template <int P, bool all, size_t... I>
void give_panel(const InputGradients a, int first, float* sums, std::index_sequence<I...>) {
  const int groups = (a.rows + 3) / 4;
  std::fill(sums + int64_t(a.begin) * (P * W), sums + int64_t(a.end) * (P * W), 0.0f);
  for (int g = 0; g < groups; ++g) {
    vec dy[4][P];
    REWIRL_UNROLL for (int r = 0; r < 4; ++r)  // rows missing in the last group have no links
      REWIRL_UNROLL for (int p = 0; p < P; ++p)
        dy[r][p] = 4 * g + r < a.rows ? load(a.dy + a.links.row[4 * int64_t(g) + r] * a.stride + (first + p) * W) : vec{};
    const uint16_t* other = a.links.other + a.links.column[g];
    const float* w = a.links.w + a.links.weight[g];
    const uint16_t* count = a.links.count + int64_t(sizeof...(I)) * g;
    (give_entries<pattern_of<PatternSet::blocks, I>, P, all>(dy, other, w, count[I], sums, a.begin, a.end), ...);
  }
  for (int64_t c = a.begin; c < a.end; ++c)
    REWIRL_UNROLL for (int p = 0; p < P; ++p) {
      const int64_t at = c * a.stride + (first + p) * W;
      const vec s = load(sums + (c * P + p) * W);
      store(a.dx + at, a.gate ? keep(load(a.gate + at) > vec{}, s) : s);
    }
}

void input_gradients(const InputGradients& a, int begin, int end) {
  if (a.links.all) return dense_input_gradients(a, begin, end);
  float* sums = a.sums + int64_t(begin) * W * a.columns;  // all panels use the same memory in turn
  for_panels<kPanel>(begin, end, [&](int first, int width) {
    with_width<kPanel>(width, [&](auto P) {
      if (a.begin == 0 && a.end == a.columns) return give_panel<P, true>(a, first, sums, Runs<PatternSet::blocks>{});
      return give_panel<P, false>(a, first, sums, Runs<PatternSet::blocks>{});
    });
  });
}

// ------------------------------------------------------ weight gradients

// Several quads at once: one register for the sum of each link, the others for operands.
constexpr int kQuads = W == 16 ? 4 : 3, kSums = 4 * kQuads;

template <int N>
REWIRL_INLINE void put(float* dw, vec4 s, bool add) {
  if constexpr (N == 4) {
    store4(dw, add ? load4(dw) + s : s);
  } else {
    REWIRL_UNROLL for (int i = 0; i < N; ++i) dw[i] = add ? dw[i] + s[i] : s[i];
  }
}

// The sums over the lanes of s, one for each of N neighbouring links.
template <int N>
REWIRL_INLINE void put_sums(float* dw, const vec* s, bool add) {
#if REWIRL_WIDTH == 16
  if constexpr (N == 16) {
    uvec* to = reinterpret_cast<uvec*>(dw);
    const vec sums = sum16(s);
    *to = add ? *to + sums : sums;
    return;
  }
#endif
  REWIRL_UNROLL for (int k = 0; k + 4 <= N; k += 4)
    put<4>(dw + k, sum4(s[k], s[k + 1], s[k + 2], s[k + 3]), add);
  if constexpr (N % 4 > 0) {
    constexpr int k = N / 4 * 4;
    put<N % 4>(dw + k, sum4(s[k], s[k + 1], s[k + 2], s[k + 3]), add);
  }
}

// The gradients of E entries of one pattern, at most kSums sums over `vectors` of the batch. Each load of x serves all rows of its
// column, each load of dy all entries. With few sums each is kept as two, to hide the latency of additions.
template <int K, int E>
REWIRL_INLINE void entry_gradients(const float* const (&dy)[4], const uint16_t* other, float* dw, const float* x,
                                   int64_t stride, int vectors, bool add) {
  constexpr Pattern pattern = kPattern[K];
  constexpr int C = pattern.columns(), L = pattern.links(), N = E * L, parts = N <= 6 ? 2 : 1;
  // Twelve or more columns have more addresses than registers: each address is loaded once for two vectors.
  constexpr int at_once = C * E > 8 ? 2 : parts;
  vec s[parts][kSums] = {};
  const float* columns[E * C];
  REWIRL_UNROLL for (int i = 0; i < E * C; ++i) columns[i] = x + other[i] * stride;
  const auto add_vectors = [&](int p, auto n) __attribute__((always_inline)) {
    REWIRL_UNROLL for (int c = 0; c < C; ++c) {
      const auto x_at = [&](int e, int i) __attribute__((always_inline)) { return load(columns[e * C + c] + (p + i) * W); };
      const bool shared = pattern.rows_of(c) > 1;
      vec xs[E][n];
      if (shared)
        REWIRL_UNROLL for (int e = 0; e < E; ++e)
          REWIRL_UNROLL for (int i = 0; i < n; ++i) in_register(xs[e][i] = x_at(e, i));
      REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
        if (pattern.column[r] != c) continue;
        vec d[n];
        REWIRL_UNROLL for (int i = 0; i < n; ++i) in_register(d[i] = load(dy[r] + (p + i) * W));
        REWIRL_UNROLL for (int e = 0; e < E; ++e)
          REWIRL_UNROLL for (int i = 0; i < n; ++i)
            s[i % parts][e * L + pattern.offset(r)] += d[i] * (shared ? xs[e][i] : x_at(e, i));
      }
    }
  };
  int p = 0;
  for (; p + at_once <= vectors; p += at_once) add_vectors(p, std::integral_constant<int, at_once>{});
  if (p < vectors) add_vectors(p, std::integral_constant<int, 1>{});
  if constexpr (parts == 2)
    REWIRL_UNROLL for (int k = 0; k < N; ++k) s[0][k] += s[1][k];
  put_sums<N>(dw, s[0], add);
}

// The same for quads of four columns and a batch of P vectors: row by row, so that dy stays in registers and each address is loaded
// once.
template <int P>
REWIRL_INLINE void four_by_rows(const float* const (&dy)[4], const uint16_t* other, float* dw, const float* x, int64_t stride,
                                bool add) {
  vec s[kSums];
  REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
    vec d[P];
    REWIRL_UNROLL for (int p = 0; p < P; ++p) in_register(d[p] = load(dy[r] + p * W));
    REWIRL_UNROLL for (int q = 0; q < kQuads; ++q) {
      const float* column = x + other[4 * q + r] * stride;
      vec& sum = s[4 * q + r];
      sum = d[0] * load(column);
      REWIRL_UNROLL for (int p = 1; p < P; ++p) sum += d[p] * load(column + p * W);
    }
  }
  put_sums<kSums>(dw, s, add);
}

template <int P>
__attribute__((noinline)) void run_by_rows(const float* const (&dy)[4], const uint16_t* other, float* dw, int n, const float* x,
                                           int64_t stride, bool add) {
  for (; n > 0; n -= kQuads, other += kSums, dw += kSums) four_by_rows<P>(dy, other, dw, x, stride, add);
}

// Vectors of the batch that fit the registers besides the sums.
constexpr int kRowPanel = REWIRL_REGISTERS >= 32 && W == 16 ? 8 : 0;

// Whether `vectors` fit.
template <int P>
REWIRL_INLINE bool by_rows(const float* const (&dy)[4], const uint16_t* other, float* dw, int n, const float* x, int64_t stride,
                           int vectors, bool add) {
  if constexpr (P > 0) {
    if (vectors < P) return by_rows<P - 1>(dy, other, dw, n, x, stride, vectors, add);
    if (vectors == P) run_by_rows<P>(dy, other, dw, n, x, stride, add);
    return vectors == P;
  }
  return false;
}

// n entries of one pattern, n a multiple of E. Not inlined: it needs all registers for its addresses.
template <int K, int E>
__attribute__((noinline)) void run_gradients(const float* const (&dy)[4], const uint16_t* other, float* dw, int n,
                                             const float* x, int64_t stride, int vectors, bool add) {
  for (; n > 0; n -= E, other += E * kPattern[K].columns(), dw += E * kPattern[K].links())
    entry_gradients<K, E>(dy, other, dw, x, stride, vectors, add);
}

// First as many entries at once as there are sums, then fewer.
constexpr int most_entries(int links) { return kSums / links; }
constexpr int fewer_entries(int entries) { return entries > 4 ? entries / kQuads : 1; }

template <int K, int E>
REWIRL_INLINE void pattern_gradients(const float* const (&dy)[4], const uint16_t*& other, float*& dw, int n, const float* x,
                                  int64_t stride, int vectors, bool add) {
  if (const int whole = n / E * E; whole > 0) {
    constexpr int row_panel = kPattern[K].columns() == 4 && E == kQuads ? kRowPanel : 0;
    if (!by_rows<row_panel>(dy, other, dw, whole, x, stride, vectors, add))
      run_gradients<K, E>(dy, other, dw, whole, x, stride, vectors, add);
    other += whole * kPattern[K].columns();
    dw += whole * kPattern[K].links();
    n -= whole;
  }
  if constexpr (E > 1) pattern_gradients<K, fewer_entries(E)>(dy, other, dw, n, x, stride, vectors, add);
}

template <PatternSet patterns, size_t... I>
REWIRL_INLINE void group_gradients(const WeightGradients& a, int g, int first, int vectors, std::index_sequence<I...>) {
  const uint16_t* other = a.links.other + a.links.column[g];
  const uint16_t* count = a.links.count + int64_t(sizeof...(I)) * g;
  float* dw = a.dw + a.links.weight[g];
  const float* x = a.x + first * W;
  const float* dy[4];
  for (int r = 0; r < 4; ++r) dy[r] = a.dy + a.links.row[4 * int64_t(g) + r] * a.stride + first * W;
  // Panels of batch after the first add to the sums.
  (pattern_gradients<pattern_of<patterns, I>, most_entries(kPattern[pattern_of<patterns, I>].links())>(dy, other, dw, count[I], x, a.stride,
                                                                                     vectors, first > 0),
   ...);
}

// Vectors of batch per panel: long, since every panel of every link ends in a sum over lanes (the whole of a usual batch was
// fastest at all sparsities).
constexpr int kGradientPanel = 64;

// A copy: the compiler would otherwise assume that the stores below change it.
template <PatternSet patterns>
void weight_gradients_of(const WeightGradients a, int begin, int end) {
  for_panels<kGradientPanel>(0, vectors_of(a.batch), [&](int first, int vectors) {
    for (int g = begin; g < end; ++g) group_gradients<patterns>(a, g, first, vectors, Runs<patterns>{});
  });
}

void weight_gradients(const WeightGradients& a, int begin, int end) {
  if (a.links.all) return dense_weight_gradients(a, begin, end);
  REWIRL_WITH_PATTERNS(a.links.patterns, weight_gradients_of, a, begin, end)
}

void row_sums(const float* dy, int64_t stride, int batch, float* dbias, int rows) {
  const int vectors = vectors_of(batch);
  int i = 0;
  for (; i + 4 <= rows; i += 4) {  // four sums at a time, to hide the latency of additions
    vec s[4] = {};
    for (int p = 0; p < vectors; ++p)
      REWIRL_UNROLL for (int r = 0; r < 4; ++r) s[r] += load(dy + (i + r) * stride + p * W);
    store4(dbias + i, sum4(s[0], s[1], s[2], s[3]));
  }
  for (; i < rows; ++i) {
    vec s{};
    for (int p = 0; p < vectors; ++p) s += load(dy + i * stride + p * W);
    dbias[i] = sum(s);
  }
}

}  // namespace
}  // namespace rewirl::REWIRL_NAMESPACE
