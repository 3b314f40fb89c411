// Random numbers from NumPy's bit generators without calling NumPy: between kernels that use all of the caches, such a call takes
// longer than drawing the numbers.
#pragma once
#include <cstdint>

#include "networks/batch.h"

namespace rewirl {

// NumPy's C interface of a bit generator (numpy/random/bitgen.h).
struct BitGenerator {
  void* state;
  uint64_t (*next_uint64)(void*);
  uint32_t (*next_uint32)(void*);
  double (*next_double)(void*);
  uint64_t (*next_raw)(void*);
};

// n whole numbers, uniform in [0, below).
void draw_integers(const BitGenerator& bits, int64_t below, int64_t* out, int64_t n);
// Every number of the batch from N(0, 1). The number of bits drawn does not depend on the instruction set.
void draw_normal(const BitGenerator& bits, const Batch& out);

}  // namespace rewirl
