// Vector types for the instruction set that this file is being compiled for.
//
// kernels.cpp is compiled once per instruction set, each time in a namespace of its own, so everything here is inside
// that namespace too. The width is a compile-time constant: vectors wider than the registers spill catastrophically.
#pragma once
#include <cstdint>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#ifdef REWIRL_WIDTH  // set by tests, to try the widest vectors on a machine without them
#define REWIRL_WIDER_THAN_REGISTERS
#else
#if defined(__AVX512F__)
#define REWIRL_WIDTH 16
#elif defined(__AVX2__)
#define REWIRL_WIDTH 8
#else
#define REWIRL_WIDTH 4
#endif
#endif

#if defined(__AVX512F__) || defined(__aarch64__)
#define REWIRL_REGISTERS 32
#else
#define REWIRL_REGISTERS 16
#endif

#define REWIRL_UNROLL _Pragma("GCC unroll 16")
#define REWIRL_INLINE inline __attribute__((always_inline))

namespace rewirl::REWIRL_NAMESPACE {

constexpr int W = REWIRL_WIDTH;

typedef float vec __attribute__((vector_size(4 * W), may_alias));
typedef float vec4 __attribute__((vector_size(16), may_alias));
typedef float vec4u __attribute__((vector_size(16), aligned(4), may_alias));
typedef float uvec __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef int32_t ivec4 __attribute__((vector_size(16), may_alias));
typedef int32_t ivec __attribute__((vector_size(4 * W), may_alias));
typedef uint32_t uvec32 __attribute__((vector_size(4 * W), may_alias));

// Keeps a loaded vector in a register: compilers would reload one that is used several times, and loads limit the kernels.
REWIRL_INLINE void in_register([[maybe_unused]] vec& v) {
#if defined(REWIRL_WIDER_THAN_REGISTERS)
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#elif defined(__AVX512F__)
  asm("" : "+v"(v));
#elif defined(__SSE2__)
  asm("" : "+x"(v));
#endif
}

inline vec splat(float s) { return s - vec{}; }
inline vec load(const float* p) { return *reinterpret_cast<const vec*>(p); }
inline void store(float* p, vec v) { *reinterpret_cast<vec*>(p) = v; }
inline vec4 splat4(float s) { return s - vec4{}; }
inline vec4 load4(const float* p) { return *reinterpret_cast<const vec4u*>(p); }
inline void store4(float* p, vec4 v) { *reinterpret_cast<vec4u*>(p) = v; }

// Four numbers repeated over all lanes, and one of them in all lanes: one load and shuffles instead of four loads. Not for the widest
// vectors: shuffles would take one of the two units that multiply.
#if REWIRL_WIDTH == 4
inline vec repeat(vec4 v) { return v; }
template <int r>
inline vec splat_lane(vec v) {
  return __builtin_shufflevector(v, v, r, r, r, r);
}
#elif REWIRL_WIDTH == 8
inline vec repeat(vec4 v) { return __builtin_shufflevector(v, v, 0, 1, 2, 3, 0, 1, 2, 3); }
template <int r>
inline vec splat_lane(vec v) {
  return __builtin_shufflevector(v, v, r, r, r, r, r + 4, r + 4, r + 4, r + 4);
}
#endif

// Where mask lanes are 0, the result is 0.
inline vec keep(ivec mask, vec v) { return reinterpret_cast<vec>(mask & reinterpret_cast<ivec>(v)); }

inline vec magnitude(vec v) { return keep(ivec{} + 0x7fffffff, v); }

// `sign` is 0, or the bit that changes the sign of v.
inline vec with_sign(vec v, uvec32 sign) { return reinterpret_cast<vec>(reinterpret_cast<uvec32>(v) ^ sign); }

inline vec square_root(vec v) {
  vec out;
  for (int i = 0; i < W; ++i) out[i] = __builtin_sqrtf(v[i]);
  return out;
}

// One bit for each lane whose mask is set.
inline uint32_t lanes(ivec mask) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask));
#elif defined(__AVX2__) && REWIRL_WIDTH == 8
  return uint32_t(_mm256_movemask_ps(reinterpret_cast<__m256>(mask)));
#elif defined(__SSE2__) && REWIRL_WIDTH == 4
  return uint32_t(_mm_movemask_ps(reinterpret_cast<__m128>(mask)));
#else
  uint32_t out = 0;
  for (int i = 0; i < W; ++i) out |= uint32_t(mask[i] & 1) << i;
  return out;
#endif
}

// NaN stays NaN (it is not < 0), so that it is not hidden.
inline vec relu(vec v) { return keep(~(v < vec{}), v); }
inline vec4 relu4(vec4 v) { return reinterpret_cast<vec4>(~(v < vec4{}) & reinterpret_cast<ivec4>(v)); }

// Four neighbouring lanes.
template <int q>
inline vec4 part(vec v) {
  return __builtin_shufflevector(v, v, 4 * q, 4 * q + 1, 4 * q + 2, 4 * q + 3);
}

// The sums over the lanes of four vectors, as one vector of four: a small transpose instead of four reductions.
#if REWIRL_WIDTH == 4
inline vec4 fold(vec v) { return v; }
#define REWIRL_PAIR_LOW 0, 4, 1, 5
#define REWIRL_PAIR_HIGH 2, 6, 3, 7
#define REWIRL_QUAD_LOW 0, 1, 4, 5
#define REWIRL_QUAD_HIGH 2, 3, 6, 7
#elif REWIRL_WIDTH == 8
inline vec4 fold(vec v) {
  return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
}
#define REWIRL_PAIR_LOW 0, 8, 1, 9, 4, 12, 5, 13
#define REWIRL_PAIR_HIGH 2, 10, 3, 11, 6, 14, 7, 15
#define REWIRL_QUAD_LOW 0, 1, 8, 9, 4, 5, 12, 13
#define REWIRL_QUAD_HIGH 2, 3, 10, 11, 6, 7, 14, 15
#else
inline vec4 fold(vec v) {
  return (__builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7)) +
         (__builtin_shufflevector(v, v, 8, 9, 10, 11) + __builtin_shufflevector(v, v, 12, 13, 14, 15));
}
#define REWIRL_PAIR_LOW 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define REWIRL_PAIR_HIGH 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define REWIRL_QUAD_LOW 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define REWIRL_QUAD_HIGH 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#endif

inline vec4 sum4(vec a, vec b, vec c, vec d) {
  const vec ab = __builtin_shufflevector(a, b, REWIRL_PAIR_LOW) + __builtin_shufflevector(a, b, REWIRL_PAIR_HIGH);
  const vec cd = __builtin_shufflevector(c, d, REWIRL_PAIR_LOW) + __builtin_shufflevector(c, d, REWIRL_PAIR_HIGH);
  return fold(__builtin_shufflevector(ab, cd, REWIRL_QUAD_LOW) + __builtin_shufflevector(ab, cd, REWIRL_QUAD_HIGH));
}

#if REWIRL_WIDTH == 16
// The sums over the lanes of sixteen vectors, as one. At every step half of the lanes of a and of b stay where they are, which
// takes no shuffle, and the others come to them.
template <int n>  // lanes that go together: 8, 4, 2, 1
inline vec add_halves(vec a, vec b) {
  constexpr auto from = [](int lane) { return lane & n ? 16 + lane : lane; };
#define REWIRL_LANES(of) \
  of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7), of(8), of(9), of(10), of(11), of(12), of(13), of(14), of(15)
#define REWIRL_OTHER(lane) from(lane) ^ n
  return __builtin_shufflevector(a, b, REWIRL_LANES(from)) + __builtin_shufflevector(a, b, REWIRL_LANES(REWIRL_OTHER));
#undef REWIRL_LANES
#undef REWIRL_OTHER
}
inline vec sum16(const vec* s) {
  vec h[8], q[4];
  REWIRL_UNROLL for (int i = 0; i < 8; ++i) h[i] = add_halves<8>(s[i], s[i + 8]);
  REWIRL_UNROLL for (int i = 0; i < 4; ++i) q[i] = add_halves<4>(h[i], h[i + 4]);
  return add_halves<1>(add_halves<2>(q[0], q[2]), add_halves<2>(q[1], q[3]));
}
#endif

inline float sum(vec v) {
  const vec4 f = fold(v);
  return (f[0] + f[2]) + (f[1] + f[3]);
}

}  // namespace rewirl::REWIRL_NAMESPACE
