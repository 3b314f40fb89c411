// Which links a layer has, in the orders that the kernels want.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "kernels.h"

namespace rewirl {

// What Groups points to, and how it is made.
struct GroupedLinks {
  std::vector<uint32_t> entry, weight;
  std::vector<uint16_t> count, other;

  GroupedLinks() = default;
  // Link k is (row[k], column[k]); links of one column and one group of rows must be neighbours, rows ascending. position[k]
  // becomes where link k stands among the weights. With `single` every link is an entry of its own:
  // for a target's few extra links, whose patterns would be runs of nothing.
  GroupedLinks(int rows, const std::vector<uint16_t>& row, const std::vector<uint16_t>& column, bool single,
               std::vector<uint32_t>& position);

  Groups view(const float* w) const { return {entry.data(), weight.data(), count.data(), other.data(), w}; }
  int groups() const { return int(entry.size()) - 1; }
  int64_t links() const { return weight.empty() ? 0 : weight.back(); }
  int64_t bytes() const { return int64_t(entry.size() + weight.size()) * 4 + int64_t(count.size() + other.size()) * 2; }
};

// A place is where a block of `block` links can be: place = input * (n_out / block) + output / block.
struct Shape {
  int n_in, n_out, block;
  int64_t n_places() const { return int64_t(n_in) * (n_out / block); }
};

// Throws std::invalid_argument for a shape that kernels cannot work on.
Shape checked_shape(int64_t n_in, int64_t n_out, int64_t block);
// Throws std::invalid_argument unless places are ascending, unique and inside the shape.
void check_places(const Shape& shape, const int64_t* places, int64_t n);

// Links in ascending places, and for each link in that order (block by block) its position among the weights by outputs.
struct InPlaceOrder {
  std::vector<int64_t> places;
  std::vector<uint32_t> position;
};

// The links at these places grouped by outputs, whose order is that of all flat arrays, and where each stands in it.
GroupedLinks by_outputs(const Shape& shape, const int64_t* places, int64_t n, bool single, InPlaceOrder& order);
// The same links grouped by inputs, and for each of them its position by outputs.
GroupedLinks by_inputs(const Shape& shape, const InPlaceOrder& order, std::vector<uint32_t>& position);
// What by_outputs said of the order, found again.
InPlaceOrder in_place_order(const Shape& shape, const GroupedLinks& outputs);
// In each array, the values of links that stay move from their old to their new positions; those of new links become 0.
void carry(int block, const InPlaceOrder& before, const InPlaceOrder& after, std::initializer_list<float*> arrays);

}  // namespace rewirl
