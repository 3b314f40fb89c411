// Which links a layer has, in the orders that the kernels want.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/kernels.h"

namespace rewirl {

// What Groups points to.
struct GroupedLinks {
  std::vector<uint32_t> column, weight;     // weight is empty by four, where it would be the same as column
  std::vector<uint16_t> count, other, row;  // row: padded to whole groups
  PatternSet patterns = PatternSet::four;
  bool all = false;

  Groups view(const float* w) const {
    return {column.data(), first_weights().data(), count.data(), other.data(), row.data(), w, patterns, all};
  }
  int groups() const { return int(column.size()) - 1; }
  int64_t links() const { return column.empty() ? 0 : first_weights().back(); }
  const std::vector<uint32_t>& first_weights() const { return patterns == PatternSet::four ? column : weight; }
  int64_t bytes() const {
    return int64_t(column.size() + weight.size()) * 4 + int64_t(count.size() + other.size() + row.size()) * 2;
  }
};

// Splits the groups begin .. end into parts with similar numbers of links, and calls work for each, one per thread. `cost` is that
// of a link, in multiply-adds.
void for_groups(const Groups& links, int begin, int end, int64_t cost, const std::function<void(int, int)>& work);

// A position is where a block of `block` links can be: position = input * (n_out / block) + output / block.
using Position = uint32_t;
constexpr Position kNoPosition = UINT32_MAX;  // behind every position
struct Shape {
  int n_in, n_out, block;
  int64_t n_positions() const { return int64_t(n_in) * (n_out / block); }
};

// Throws std::invalid_argument for a shape that kernels cannot work on.
Shape checked_shape(int64_t n_in, int64_t n_out, int64_t block);
// Throws std::invalid_argument unless positions are ascending, unique and inside the shape; there may be none.
void check_positions(const Shape& shape, const int64_t* positions, int64_t n, std::vector<Position>& checked);

// Links in ascending positions, and for each link in that order (block by block) its slot among the weights by outputs.
struct ByPosition {
  std::vector<Position> positions;
  std::vector<uint32_t> slot;
};

// A layer's links by outputs, whose order is that of all flat arrays. Where they are not in blocks, the same links by inputs, whose
// rows may be sorted or must stay in their order; and for each of these its slot by outputs.
struct GroupedLayer {
  GroupedLinks outputs, inputs;
  std::vector<uint32_t> slot;

  bool has_inputs() const { return outputs.patterns != PatternSet::blocks; }
};
struct WiringRoom;  // of the thread's workspace
// Made from the order's positions, which get their slots.
void group(const Shape& shape, bool sort_inputs, ByPosition& order, GroupedLayer& to, WiringRoom& room);
// The same for a target's extra links, in the groups of its network's layer.
GroupedLinks beside(const GroupedLinks& outputs, const Shape& shape, ByPosition& order, WiringRoom& room);
// The order of a layer's links that were grouped before.
void by_position(const Shape& shape, const GroupedLinks& outputs, ByPosition& order);

// From one wiring to the next: `dropped` positions lose their links and `grown` positions get as many. Both lists are checked: ascending,
// none twice, the first taken, the second free; then they end in kNoPosition, so that no loop has to ask whether there are more.
struct Passage {
  std::vector<Position> dropped, grown;
  std::vector<uint32_t> gone, come;  // which of the old positions they were, and which of the new ones they are
  std::vector<uint32_t> old;         // of each new position that was there before, which of the old ones it is
  std::vector<uint32_t> from;        // of each new slot the old one, or, for new links, the number of all slots
};
// The new positions, in order; throws std::invalid_argument for lists that are not as they must be.
void replace(const ByPosition& before, Passage& passage, ByPosition& after);
// Where everything moves, once the new positions have slots. Makes the room that carry needs.
void follow(int block, const ByPosition& before, const ByPosition& after, Passage& passage, WiringRoom& room);
// The values of links that stay move from their old to their new slots; those of new links are 0.
void carry(const Passage& passage, float* values, WiringRoom& room) noexcept;

}  // namespace rewirl
