#include "updates/random.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "runtime/runtime.h"

namespace rewirl {

void draw_integers(const BitGenerator& bits, int64_t below, int64_t* out, int64_t n) {
  if (below < 1) throw std::invalid_argument("there are no whole numbers from 0 up to, but not, " + std::to_string(below));
  Section section;
  const uint64_t range = uint64_t(below), unfair = (0 - range) % range;  // 2⁶⁴ mod range
  for (int64_t i = 0; i < n; ++i) {
    // Lemire 2019: the whole part of range · (a number in [0, 1)), with rejection where some numbers would be more likely than others.
    unsigned __int128 product;
    do {
      product = static_cast<unsigned __int128>(bits.next_uint64(bits.state)) * range;
    } while (uint64_t(product) < unfair);
    out[i] = int64_t(product >> 64);
  }
}

void draw_normal(const BitGenerator& bits, const Batch& out) {
  Section section;
  uint64_t drawn[kNormals / 2];
  alignas(64) float some[kNormals];
  int64_t used = kNormals;
  for (int64_t f = 0; f < out.features(); ++f)
    for (int64_t s = 0; s < out.size();) {
      if (used == kNormals) {
        for (uint64_t& d : drawn) d = bits.next_uint64(bits.state);
        kernels().normals(drawn, some);
        used = 0;
      }
      const int64_t n = std::min(out.size() - s, kNormals - used);
      std::copy_n(some + used, n, out.data() + f * out.stride() + s);
      s += n;
      used += n;
    }
}

}  // namespace rewirl
