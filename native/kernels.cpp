// One instruction set's kernels. Compiled once for each, with REWIRL_NAMESPACE and the compiler's flags set by CMake.
#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "simd.h"

namespace rewirl::REWIRL_NAMESPACE {
namespace {

#define REWIRL_UNROLL _Pragma("GCC unroll 16")

// Calls f<P>(first vector) for panels of at most PMAX vectors that together cover the batch, as equal as can be: a panel
// of the features stays in the first-level cache while all links pass over it.
template <int P, class F>
inline void with_width(int width, int first, const F& f) {
  if constexpr (P >= 1) {
    if (width == P) return f(std::integral_constant<int, P>{}, first);
    with_width<P - 1>(width, first, f);
  }
}

template <int PMAX, class F>
inline void for_panels(int batch, const F& f) {
  const int vectors = (batch + W - 1) / W;
  const int panels = (vectors + PMAX - 1) / PMAX;
  for (int i = 0, first = 0; i < panels; ++i) {
    const int width = vectors / panels + (i < vectors % panels);
    with_width<PMAX>(width, first, f);
    first += width;
  }
}

// ---------------------------------------------------------------- forward

#ifndef FWD_U1
#define FWD_U1 2
#define FWD_P1 5
#define BWD_P1 4
#endif
// R output rows of a block at a time, U links in flight (independent sums hide the latency of a multiply-add), P vectors
// of batch: U*R*P accumulators must fit the registers.
template <int B>
struct Tile {
  static constexpr int R = B == 8 && REWIRL_REGISTERS < 32 ? 4 : B;
  static constexpr int U = B == 1 ? (REWIRL_REGISTERS < 32 ? FWD_U1 : 4) : B == 2 ? 2 : 1;
  static constexpr int P = REWIRL_REGISTERS < 32 ? (B == 1 ? FWD_P1 : 3) : (B == 1 ? 4 : B == 2 ? 4 : B == 4 ? 5 : 3);
};

template <int B, int R, int P>
inline void add_link(vec (&acc)[R][P], const float* x, const float* w) {
  vec xs[P];
  REWIRL_UNROLL for (int p = 0; p < P; ++p) xs[p] = load(x + p * W);
  REWIRL_UNROLL for (int r = 0; r < R; ++r) {
    const vec ws = splat(w[r]);
    REWIRL_UNROLL for (int p = 0; p < P; ++p) acc[r][p] += ws * xs[p];
  }
}

template <int B, int P>
void forward_panel(const Forward& a, int first, int row_begin, int row_end) {
  constexpr int R = Tile<B>::R, U = Tile<B>::U;
  const float* x = a.x + first * W;
  float* y = a.y + first * W;
  const int segments = a.extra.start ? 2 : 1;
  for (int row = row_begin; row < row_end; ++row) {
    for (int part = 0; part < B; part += R) {
      vec acc[U][R][P];
      REWIRL_UNROLL for (int u = 0; u < U; ++u)
        REWIRL_UNROLL for (int r = 0; r < R; ++r)
          REWIRL_UNROLL for (int p = 0; p < P; ++p)
            acc[u][r][p] = u == 0 ? splat(a.bias[row * B + part + r]) : vec{};
      for (int s = 0; s < segments; ++s) {
        const ByOutput& links = s == 0 ? a.links : a.extra;
        const uint16_t* in = links.input + links.start[row];
        const uint16_t* end = links.input + links.start[row + 1];
        const float* w = links.weight + int64_t(links.start[row]) * B + part;
        for (; in + U <= end; in += U, w += U * B)
          REWIRL_UNROLL for (int u = 0; u < U; ++u)
            add_link<B, R, P>(acc[u], x + in[u] * a.stride, w + u * B);
        for (; in < end; ++in, w += B) add_link<B, R, P>(acc[0], x + *in * a.stride, w);
      }
      REWIRL_UNROLL for (int r = 0; r < R; ++r)
        REWIRL_UNROLL for (int p = 0; p < P; ++p) {
          vec total = acc[0][r][p];
          REWIRL_UNROLL for (int u = 1; u < U; ++u) total += acc[u][r][p];
          store(y + (row * B + part + r) * a.stride + p * W, a.relu ? relu(total) : total);
        }
    }
  }
}

template <int B>
void forward_block(const Forward& a, int row_begin, int row_end) {
  for_panels<Tile<B>::P>(a.batch, [&](auto p, int first) {
    forward_panel<B, decltype(p)::value>(a, first, row_begin, row_end);
  });
}

// --------------------------------------------------------------- backward

// One input at a time over its links: the gradient of the input and those of the weights share each load of dy.
template <int B, int P, bool DX, bool DW>
inline void back_rows(const float* dy, int64_t stride, const float* w, const vec (&x)[P], vec (&dx)[P], vec& s, int r) {
  const vec ws = splat(DX ? w[r] : 0.0f);
  REWIRL_UNROLL for (int p = 0; p < P; ++p) {
    const vec d = load(dy + r * stride + p * W);
    if constexpr (DX) dx[p] += ws * d;
    if constexpr (DW) s = p == 0 ? x[p] * d : s + x[p] * d;
  }
}

inline void put4(float* dw, vec4 s, bool add) { store4(dw, add ? load4(dw) + s : s); }

template <int B, int P, bool DX, bool DW>
void backward_panel(const Backward& a, int first, int input_begin, int input_end) {
  const float* dy = a.dy + first * W;
  const bool add = first > 0;  // panels after the first add to the weights' gradients
  constexpr int G = B < 4 ? 4 / B : 1;  // links per group of four (or eight) sums
  for (int j = input_begin; j < input_end; ++j) {
    vec x[P], dx[P];
    REWIRL_UNROLL for (int p = 0; p < P; ++p) {
      x[p] = load(a.x + j * a.stride + (first + p) * W);
      dx[p] = vec{};
    }
    uint32_t k = a.start[j];
    const uint32_t end = a.start[j + 1];
    for (; k + G <= end; k += G) {
      const float* w = a.weight + int64_t(k) * B;
      REWIRL_UNROLL for (int q = 0; q < G * B; q += 4) {
        vec s[4];
        REWIRL_UNROLL for (int i = 0; i < 4; ++i) {
          const int g = (q + i) / B, r = (q + i) % B;
          back_rows<B, P, DX, DW>(dy + int64_t(a.row[k + g]) * B * a.stride, a.stride, w + g * B, x, dx, s[i], r);
        }
        if constexpr (DW) put4(a.dw + int64_t(k) * B + q, sum4(s[0], s[1], s[2], s[3]), add);
      }
    }
    for (; k < end; ++k) {
      REWIRL_UNROLL for (int r = 0; r < B; ++r) {
        vec s;
        back_rows<B, P, DX, DW>(dy + int64_t(a.row[k]) * B * a.stride, a.stride, a.weight + int64_t(k) * B, x, dx, s, r);
        if constexpr (DW) {
          float& out = a.dw[int64_t(k) * B + r];
          out = add ? out + sum(s) : sum(s);
        }
      }
    }
    if constexpr (DX)
      REWIRL_UNROLL for (int p = 0; p < P; ++p)
        store(a.dx + j * a.stride + (first + p) * W, a.relu ? keep(x[p] > vec{}, dx[p]) : dx[p]);
  }
}

template <int B>
void backward_block(const Backward& a, int input_begin, int input_end) {
  constexpr int P = REWIRL_REGISTERS < 32 ? BWD_P1 : 7;
  for_panels<P>(a.batch, [&](auto p, int first) {
    constexpr int Q = decltype(p)::value;
    if (a.dx && a.dw) return backward_panel<B, Q, true, true>(a, first, input_begin, input_end);
    if (a.dx) return backward_panel<B, Q, true, false>(a, first, input_begin, input_end);
    if (a.dw) return backward_panel<B, Q, false, true>(a, first, input_begin, input_end);
  });
}

void row_sums(const float* dy, int64_t stride, int batch, float* dbias, int begin, int end) {
  const int vectors = (batch + W - 1) / W;
  for (int i = begin; i < end; ++i) {
    vec s{};
    for (int p = 0; p < vectors; ++p) s += load(dy + i * stride + p * W);
    dbias[i] = sum(s);
  }
}

// -------------------------------------------------------- one observation

template <int B>
void act_block(const Backward& a, int n_in, float* y) {
  for (int j = 0; j < n_in; ++j) {
    const float x = a.x[j];
    if (x == 0.0f) continue;  // behind a ReLU about half of them
    const float* w = a.weight + int64_t(a.start[j]) * B;
    const uint16_t* end = a.row + a.start[j + 1];
    for (const uint16_t* row = a.row + a.start[j]; row < end; ++row, w += B) {
      float* out = y + *row * B;
      if constexpr (B >= 4) {
        REWIRL_UNROLL for (int r = 0; r < B; r += 4) store4(out + r, load4(out + r) + load4(w + r) * x);
      } else {
        REWIRL_UNROLL for (int r = 0; r < B; ++r) out[r] += w[r] * x;
      }
    }
  }
}

// ----------------------------------------------------- flat arrays

void adam(const Adam& a, int64_t begin, int64_t end) {
  // Copies of the constants, or the compiler must fear that the stores below change them.
  const float beta1 = a.beta1, beta2 = a.beta2, decay = a.weight_decay, step = a.step_size, c = a.correction, eps = a.eps;
  float* __restrict w = static_cast<float*>(__builtin_assume_aligned(a.w + begin, 64));
  float* __restrict m = static_cast<float*>(__builtin_assume_aligned(a.m + begin, 64));
  float* __restrict v = static_cast<float*>(__builtin_assume_aligned(a.v + begin, 64));
  const float* __restrict g = static_cast<const float*>(__builtin_assume_aligned(a.g + begin, 64));
  const int64_t n = end - begin;
  for (int64_t i = 0; i < n; ++i) {
    const float gi = g[i] + decay * w[i];
    m[i] = beta1 * m[i] + (1 - beta1) * gi;
    v[i] = beta2 * v[i] + (1 - beta2) * gi * gi;
    w[i] -= step * m[i] / (std::sqrt(v[i]) * c + eps);
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
int64_t small_block(const float* weight, int64_t blocks, float limit, uint64_t* found, int64_t capacity,
                    int64_t* n_found) {
  constexpr int C = 32;  // blocks looked at together: few chunks hold a small one, so the branch is cheap
  int64_t zeros = 0, n = 0;
  float score[C];
  for (int64_t i = 0; i < blocks; i += C) {
    const int count = int(std::min<int64_t>(C, blocks - i));
    for (int c = 0; c < count; ++c) {
      float s = 0;
      for (int r = 0; r < B; ++r) s += std::fabs(weight[(i + c) * B + r]);
      score[c] = s;
    }
    for (int c = count; c < C; ++c) score[c] = INFINITY;
    int below = 0;
    for (int c = 0; c < C; ++c) below += score[c] < limit;
    if (below == 0) continue;
    for (int c = 0; c < count; ++c) {
      if (!(score[c] < limit)) continue;
      if (score[c] == 0.0f) {
        ++zeros;
        continue;
      }
      uint32_t bits;
      std::memcpy(&bits, &score[c], 4);  // magnitudes compare like their bits
      if (n < capacity) found[n] = uint64_t(bits) << 32 | uint64_t(i + c);
      ++n;
    }
  }
  *n_found = n;
  return blocks - zeros;
}

// ----------------------------------------------------- the table

template <class F>
inline void with_block(int block, const F& f) {
  switch (block) {
    case 1: return f(std::integral_constant<int, 1>{});
    case 2: return f(std::integral_constant<int, 2>{});
    case 4: return f(std::integral_constant<int, 4>{});
    default: return f(std::integral_constant<int, 8>{});
  }
}

void forward(const Forward& a, int begin, int end) {
  with_block(a.block, [&](auto b) { forward_block<decltype(b)::value>(a, begin, end); });
}

void backward(const Backward& a, int begin, int end) {
  with_block(a.block, [&](auto b) { backward_block<decltype(b)::value>(a, begin, end); });
}

void act(const Backward& a, int n_in, float* y) {
  with_block(a.block, [&](auto b) { act_block<decltype(b)::value>(a, n_in, y); });
}

int64_t small(const float* weight, int64_t blocks, int block, float limit, uint64_t* found, int64_t capacity,
              int64_t* n_found) {
  int64_t nonzero = 0;
  with_block(block, [&](auto b) { nonzero = small_block<decltype(b)::value>(weight, blocks, limit, found, capacity, n_found); });
  return nonzero;
}

constexpr Kernels table{REWIRL_NAME, forward, backward, row_sums, act, adam, polyak, small};

}  // namespace
}  // namespace rewirl::REWIRL_NAMESPACE

namespace rewirl {
const Kernels* REWIRL_ENTRY() { return &REWIRL_NAMESPACE::table; }
}  // namespace rewirl
