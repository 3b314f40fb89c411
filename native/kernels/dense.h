// The backward pass through a dense layer: matrix products whose tiles stay in registers. Part of kernels.cpp, for one instruction set.
#pragma once
#include <utility>

#include "kernels/kernels.h"
#include "kernels/panels.h"
#include "kernels/simd.h"

namespace rewirl::REWIRL_NAMESPACE {
namespace {

// ------------------------------------------------------- input gradients

// C inputs side by side and P vectors of batch: each load of dy serves C of them.
template <int C, int P>
REWIRL_INLINE void dense_inputs_tile(const InputGradients& a, int column, int first) {
  const int groups = a.rows / 4;
  const float* w = a.links.w + 4 * int64_t(column);
  vec acc[C][P] = {};
  for (int g = 0; g < groups; ++g, w += 4 * int64_t(a.columns)) {
    const float* dy = a.dy + 4 * g * a.stride + first * W;
    REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
      vec d[P];
      REWIRL_UNROLL for (int p = 0; p < P; ++p) d[p] = load(dy + r * a.stride + p * W);
      REWIRL_UNROLL for (int c = 0; c < C; ++c) {
        const vec ws = splat(w[4 * c + r]);
        REWIRL_UNROLL for (int p = 0; p < P; ++p) acc[c][p] += ws * d[p];
      }
    }
  }
  REWIRL_UNROLL for (int c = 0; c < C; ++c)
    REWIRL_UNROLL for (int p = 0; p < P; ++p) {
      const int64_t at = (column + c) * a.stride + (first + p) * W;
      store(a.dx + at, a.gate ? keep(load(a.gate + at) > vec{}, acc[c][p]) : acc[c][p]);
    }
}

// A copy: the compiler would otherwise assume that the stores below change it.
template <int P>
void dense_inputs_panel(const InputGradients a, int first) {
  int column = a.begin;
  for (; column + 4 <= a.end; column += 4) dense_inputs_tile<4, P>(a, column, first);
  for (; column < a.end; ++column) dense_inputs_tile<1, P>(a, column, first);
}

void dense_input_gradients(const InputGradients& a, int begin, int end) {
  for_panels<kPanel>(begin, end, [&](int first, int width) {
    with_width<kPanel>(width, [&](auto P) { dense_inputs_panel<P>(a, first); });
  });
}

// ------------------------------------------------------ weight gradients

// The lanes are inputs, so that no sum over lanes is needed. This needs x sample by sample. Panels of `kLanes` vectors
// of inputs lie one behind the other.
constexpr int kLanes = REWIRL_REGISTERS >= 32 ? 6 : 3;

// Transposes four vectors, one per row: the four numbers of a lane become neighbours.
REWIRL_INLINE void rows_together(vec (&v)[4]) {
  const vec ab = __builtin_shufflevector(v[0], v[1], REWIRL_PAIR_LOW), cd = __builtin_shufflevector(v[2], v[3], REWIRL_PAIR_LOW);
  const vec ef = __builtin_shufflevector(v[0], v[1], REWIRL_PAIR_HIGH), gh = __builtin_shufflevector(v[2], v[3], REWIRL_PAIR_HIGH);
  v[0] = __builtin_shufflevector(ab, cd, REWIRL_QUAD_LOW);
  v[1] = __builtin_shufflevector(ab, cd, REWIRL_QUAD_HIGH);
  v[2] = __builtin_shufflevector(ef, gh, REWIRL_QUAD_LOW);
  v[3] = __builtin_shufflevector(ef, gh, REWIRL_QUAD_HIGH);
}

void by_samples(const float* x, int64_t stride, int batch, int columns, float* to) {
  for_panels<kLanes>(0, vectors_of(columns), [&](int first, int vectors) {
    const int64_t width = vectors * W;
    for (int c = 0; c < width; c += 4)
      for (int b = 0; b < batch; b += 4) {  // rows of x are padded
        vec4 v[4];
        REWIRL_UNROLL for (int i = 0; i < 4; ++i) {
          const int column = first * W + c + i;
          v[i] = column < columns ? load4(x + column * stride + b) : vec4{};
        }
        const vec4 ab = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5), cd = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
        const vec4 ef = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7), gh = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
        float* at = to + b * width + c;
        store4(at, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
        store4(at + width, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
        store4(at + 2 * width, __builtin_shufflevector(ef, gh, 0, 1, 4, 5));
        store4(at + 3 * width, __builtin_shufflevector(ef, gh, 2, 3, 6, 7));
      }
    to += (batch + 3) / 4 * 4 * width;
  });
}

// The rows' numbers, lane by lane: of `columns` lanes, or all.
template <size_t... Q>
REWIRL_INLINE void put_lanes(vec (&rows)[4], float* to, int columns, std::index_sequence<Q...>) {
  rows_together(rows);
  REWIRL_UNROLL for (int i = 0; i < 4; ++i) {
    const auto put = [&](int column, vec4 four) __attribute__((always_inline)) {
      if (column < columns) store4(to + 4 * column, four);
    };
    (put(int(4 * Q) + i, part<int(Q)>(rows[i])), ...);
  }
}

template <int V>
void dense_weights_panel(const WeightGradients a, const float* x, int first, int begin, int end) {
  for (int g = begin; g < end; ++g) {
    const float* dy = a.dy + 4 * g * a.stride;
    vec s[V][4] = {};
    for (int b = 0; b < a.batch; ++b) {
      vec xs[V];
      REWIRL_UNROLL for (int v = 0; v < V; ++v) xs[v] = load(x + (int64_t(b) * V + v) * W);
      REWIRL_UNROLL for (int r = 0; r < 4; ++r) {
        const vec d = splat(dy[r * a.stride + b]);
        REWIRL_UNROLL for (int v = 0; v < V; ++v) s[v][r] += d * xs[v];
      }
    }
    float* dw = a.dw + 4 * (int64_t(g) * a.columns + first * W);
    const int columns = a.columns - first * W;
    REWIRL_UNROLL for (int v = 0; v < V; ++v)
      put_lanes(s[v], dw + v * 4 * W, columns - v * W, std::make_index_sequence<W / 4>{});
  }
}

void dense_weight_gradients(const WeightGradients& a, int begin, int end) {
  const float* x = a.samples;
  for_panels<kLanes>(0, vectors_of(a.columns), [&](int first, int width) {
    with_width<kLanes>(width, [&](auto V) { dense_weights_panel<V>(a, x, first, begin, end); });
    x += (a.batch + 3) / 4 * 4 * int64_t(width * W);
  });
}

}  // namespace
}  // namespace rewirl::REWIRL_NAMESPACE
