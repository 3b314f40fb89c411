// Memory for what lives no longer than a call, or a little longer, kept from call to call: asking the system for it takes longer than
// the work, and what all networks share stays in the caches. Each thread that enters the core has one; entry points pass it on.
#pragma once
#include <array>
#include <vector>

#include "networks/batch.h"
#include "networks/grouping.h"
#include "networks/wiring.h"

namespace rewirl {

// For grouping a layer's links.
struct WiringRoom {
  Rows by_inputs, by_outputs;
  std::vector<uint32_t> link;
  std::vector<float> was;
  grouping::Room grouping;
};

struct Workspace {
  // ---------------------------------------------- forward and backward passes
  std::vector<Batch> buffers;
  std::shared_ptr<float> room;
  int64_t room_for = 0;
  uint64_t owner = 0;  // the backward whose gradients are in the buffers; no two have the same number

  // The first `features` rows of a buffer; what was in it is lost.
  Batch at(size_t number, int64_t features, int64_t size) {
    if (buffers.size() <= number) buffers.resize(number + 1);
    Batch& buffer = buffers[number];
    if (buffer.size() != size || buffer.features() < features) buffer = Batch(features, size, buffer);
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

  // ------------------------------------------------------------------ rewiring
  WiringRoom wiring;
  ByPosition after;
  Passage passage;

  // Orders of the last few layers that were asked: who adapts a network asks each layer twice.
  struct KeptOrder {
    ByPosition order;
    uint64_t wiring = 0;
  };
  std::array<KeptOrder, 4> orders;
  size_t next_order = 0;
};

inline Workspace& workspace() {
  static thread_local Workspace mine;
  return mine;
}

}  // namespace rewirl
