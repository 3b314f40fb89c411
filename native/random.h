// Random numbers from one of NumPy's bit generators, without NumPy's own calls: inside an update, between kernels that take all of
// the caches, such a call takes longer than drawing the numbers.
#pragma once
#include <cstdint>

#include "batch.h"

namespace rewirl {

// What NumPy shows of a bit generator to other languages (its header numpy/random/bitgen.h).
struct BitGenerator {
  void* state;
  uint64_t (*next_uint64)(void*);
  uint32_t (*next_uint32)(void*);
  double (*next_double)(void*);
  uint64_t (*next_raw)(void*);
};

// n whole numbers from 0 up to, but not, `below`, all of them as likely.
void draw_integers(const BitGenerator& bits, int64_t below, int64_t* out, int64_t n);
// Every number of the batch from N(0, 1). How many bits are taken does not depend on the instruction set.
void draw_normal(const BitGenerator& bits, const Batch& out);

}  // namespace rewirl
