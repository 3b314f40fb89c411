// Which links a layer has, in the orders that the kernels want.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels.h"

namespace rewirl {

// What Groups points to.
struct GroupedLinks {
  std::vector<uint32_t> column, weight;     // weight is empty by four, where it would be the same as column
  std::vector<uint16_t> count, other, row;  // row: padded to whole groups
  Kinds kinds = Kinds::four;
  bool all = false;

  Groups view(const float* w) const {
    return {column.data(), first_weights().data(), count.data(), other.data(), row.data(), w, kinds, all};
  }
  int groups() const { return int(column.size()) - 1; }
  int64_t links() const { return column.empty() ? 0 : first_weights().back(); }
  const std::vector<uint32_t>& first_weights() const { return kinds == Kinds::four ? column : weight; }
  int64_t bytes() const {
    return int64_t(column.size() + weight.size()) * 4 + int64_t(count.size() + other.size() + row.size()) * 2;
  }
};

// A place is where a block of `block` links can be: place = input * (n_out / block) + output / block.
using Place = uint32_t;
constexpr Place kNoPlace = UINT32_MAX;  // behind every place
struct Shape {
  int n_in, n_out, block;
  int64_t n_places() const { return int64_t(n_in) * (n_out / block); }
};

// Throws std::invalid_argument for a shape that kernels cannot work on.
Shape checked_shape(int64_t n_in, int64_t n_out, int64_t block);
// Throws std::invalid_argument unless places are ascending, unique and inside the shape; there may be none.
void check_places(const Shape& shape, const int64_t* places, int64_t n, std::vector<Place>& checked);

// Links in ascending places, and for each link in that order (block by block) its position among the weights by outputs.
struct InPlaceOrder {
  std::vector<Place> places;
  std::vector<uint32_t> position;
};

// Positions of links, in as few bits as they need: what a layer's way back reads most, but for its links.
struct Positions {
  std::vector<uint16_t> narrow;  // those of a layer that has no more links than 16 bits can tell apart
  std::vector<uint32_t> wide;

  size_t size() const { return narrow.size() + wide.size(); }
  int64_t bytes() const { return int64_t(narrow.size() * 2 + wide.size() * 4); }
  // Calls f with room for the positions of n links.
  template <class F>
  void fill(size_t n, const F& f) {
    const bool fits = n <= 65536;
    narrow.resize(fits ? n : 0);
    wide.resize(fits ? 0 : n);
    fits ? f(narrow.data()) : f(wide.data());
  }
  template <class F>
  void read(const F& f) const {
    wide.empty() ? f(narrow.data()) : f(wide.data());
  }
};

// A layer's links by outputs, whose order is that of all flat arrays. Where they are not in blocks, the same links by inputs, whose
// rows may be sorted or must stay in their order; and for each of these its position by outputs.
struct GroupedLayer {
  GroupedLinks outputs, inputs;
  Positions position;

  bool has_inputs() const { return outputs.kinds != Kinds::blocks; }
};
// Made from the order's places, which get their positions.
void group(const Shape& shape, bool sort_inputs, InPlaceOrder& order, GroupedLayer& to);
// The same for a target's extra links, in the groups of its network's layer.
GroupedLinks beside(const GroupedLinks& outputs, const Shape& shape, InPlaceOrder& order);
// The order of a layer's links that were grouped before.
void in_place_order(const Shape& shape, const GroupedLinks& outputs, InPlaceOrder& order);

// From one wiring to the next: `dropped` places lose their links and `grown` places get as many. Both lists are checked: ascending,
// none twice, the first taken, the second free; then they end in kNoPlace, so that no loop has to ask whether there are more.
struct Passage {
  std::vector<Place> dropped, grown;
  std::vector<uint32_t> gone, come;  // which of the old places they were, and which of the new ones they are
  std::vector<uint32_t> old;         // of each new place that was there before, which of the old ones it is
  std::vector<uint32_t> from;        // of each new position the old one, or, for new links, the number of all positions
};
// The new places, in order; throws std::invalid_argument for lists that are not as they must be.
void replace(const InPlaceOrder& before, Passage& passage, InPlaceOrder& after);
// Where everything moves, once the new places have positions. Makes the room that carry needs.
void follow(int block, const InPlaceOrder& before, const InPlaceOrder& after, Passage& passage);
// The values of links that stay move from their old to their new positions; those of new links are `fresh`.
void carry(const Passage& passage, float fresh, float* values) noexcept;

}  // namespace rewirl
