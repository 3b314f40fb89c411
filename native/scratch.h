// Activations that nobody asks for once a call is over, or soon after: all networks share them, so that they stay in the
// caches. Each thread that calls has its own.
#pragma once
#include <vector>

#include "batch.h"

namespace rewirl {

struct Scratch {
  std::vector<Batch> buffers;
  std::shared_ptr<float> room;
  int64_t room_for = 0;
  uint64_t owner = 0;  // the backward whose gradients are in the buffers; no two have the same number

  // The first `features` rows of a buffer; what was in it is lost.
  Batch at(size_t slot, int64_t features, int64_t size) {
    if (buffers.size() <= slot) buffers.resize(slot + 1);
    Batch& buffer = buffers[slot];
    if (buffer.size() != size || buffer.features() < features) buffer = Batch(features, size);
    return buffer.rows(0, features);
  }

  // Room for n numbers, whatever is in it.
  float* numbers(int64_t n) {
    if (n > room_for) {
      room = aligned_floats(n);
      room_for = n;
    }
    return room.get();
  }
};

inline Scratch& scratch() {
  static thread_local Scratch mine;
  return mine;
}

}  // namespace rewirl
