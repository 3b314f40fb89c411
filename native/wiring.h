// Which links a layer has, in the orders that the kernels want.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels.h"

namespace rewirl {

// A link as one number, row and column.
using Link = uint32_t;
inline Link link_at(uint32_t row, uint32_t column) { return row << 16 | column; }
inline uint16_t row_of(Link link) { return uint16_t(link >> 16); }
inline uint16_t column_of(Link link) { return uint16_t(link); }

// What Groups points to, and how it is made.
struct GroupedLinks {
  std::vector<uint32_t> column, weight;     // weight is empty by four, where it would be the same as column
  std::vector<uint16_t> count, other, row;  // row: padded to whole groups
  Kinds kinds = Kinds::four;

  GroupedLinks() = default;
  // Links by columns and then rows ascending; position[k] becomes where link k stands among the weights. Rows may be grouped
  // by how many links they have, or stay in their order; links of `block` neighbouring rows stay neighbours.
  GroupedLinks(int rows, int columns, const std::vector<Link>& links, bool may_sort, int block,
               std::vector<uint32_t>& position);
  // The same for further links beside those of `others`, in its groups.
  GroupedLinks(const GroupedLinks& others, const std::vector<Link>& links, int block, std::vector<uint32_t>& position);

  Groups view(const float* w) const { return {column.data(), first_weights().data(), count.data(), other.data(), row.data(), w, kinds}; }
  int groups() const { return int(column.size()) - 1; }
  int64_t links() const { return column.empty() ? 0 : first_weights().back(); }
  const std::vector<uint32_t>& first_weights() const { return kinds == Kinds::four ? column : weight; }
  int64_t bytes() const {
    return int64_t(column.size() + weight.size()) * 4 + int64_t(count.size() + other.size() + row.size()) * 2;
  }

  struct Member;

 private:
  void put(const std::vector<Link>& links, int block, std::vector<uint32_t>& position);
  void put_group(size_t g, const Member* begin, const Member* end, int block, std::vector<uint32_t>& position);
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
GroupedLinks by_outputs(const Shape& shape, const int64_t* places, int64_t n, InPlaceOrder& order);
// A target's extra links, in the groups of its network's layer.
GroupedLinks beside(const GroupedLinks& outputs, const Shape& shape, const int64_t* places, int64_t n, InPlaceOrder& order);
// The same links grouped by inputs, and for each of them its position by outputs.
GroupedLinks by_inputs(const Shape& shape, const InPlaceOrder& order, bool may_sort, std::vector<uint32_t>& position);
// What by_outputs or beside said of the order, found again.
void in_place_order(const Shape& shape, const GroupedLinks& links, InPlaceOrder& order);
// In each array, the values of links that stay move from their old to their new positions; those of new links become 0.
void carry(int block, const InPlaceOrder& before, const InPlaceOrder& after, const std::vector<float*>& arrays);

}  // namespace rewirl
