#include "wiring.h"

#include <stdexcept>
#include <string>

namespace rewirl {

namespace {

std::string str(int64_t n) { return std::to_string(n); }

int index_of_pattern(int pattern) {
  for (int i = 0; i < 15; ++i)
    if (kPatterns[i] == pattern) return i;
  return -1;
}

int rows_in(int pattern) {
  constexpr int8_t counts[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
  return counts[pattern];
}

// Calls f(row, column, position) for every link, groups ascending.
template <class F>
void for_each_link(const GroupedLinks& links, const F& f) {
  int rows[15][4];  // of each pattern: a loop of fixed length within a run is quicker than tests of bits
  for (int i = 0; i < 15; ++i)
    for (int r = 0, n = 0; r < 4; ++r)
      if (kPatterns[i] >> r & 1) rows[i][n++] = r;
  for (int g = 0; g < links.groups(); ++g) {
    const uint16_t* other = links.other.data() + links.entry[g];
    uint32_t position = links.weight[g];
    for (int i = 0; i < 15; ++i) {
      const int per_entry = rows_in(kPatterns[i]);
      for (int n = links.count[15 * size_t(g) + i]; n > 0; --n, ++other)
        for (int r = 0; r < per_entry; ++r) f(4 * g + rows[i][r], int(*other), position++);
    }
  }
}

}  // namespace

GroupedLinks::GroupedLinks(int rows, const std::vector<uint16_t>& row, const std::vector<uint16_t>& column,
                           bool single, std::vector<uint32_t>& position) {
  int order[16];
  for (int pattern = 1; pattern < 16; ++pattern) order[pattern] = index_of_pattern(pattern);
  const size_t groups = size_t(rows + 3) / 4, n = row.size();
  std::vector<uint32_t> begin;    // each entry's first link
  std::vector<uint8_t> pattern;
  count.assign(groups * 15, 0);
  for (size_t k = 0; k < n;) {
    const int group = row[k] / 4;
    int bits = 0;
    begin.push_back(uint32_t(k));
    for (const uint16_t c = column[k]; k < n && row[k] / 4 == group && column[k] == c && !(single && bits); ++k)
      bits |= 1 << row[k] % 4;
    pattern.push_back(uint8_t(bits));
    ++count[size_t(group) * 15 + order[bits]];
  }
  entry.assign(groups + 1, 0);
  weight.assign(groups + 1, 0);
  std::vector<uint32_t> next_entry(groups * 15), next_weight(groups * 15);
  for (size_t g = 0; g < groups; ++g) {
    entry[g + 1] = entry[g];
    weight[g + 1] = weight[g];
    for (int i = 0; i < 15; ++i) {
      next_entry[g * 15 + i] = entry[g + 1];
      next_weight[g * 15 + i] = weight[g + 1];
      entry[g + 1] += count[g * 15 + i];
      weight[g + 1] += count[g * 15 + i] * uint32_t(rows_in(kPatterns[i]));
    }
  }
  other.resize(begin.size());
  position.resize(n);
  for (size_t e = 0; e < begin.size(); ++e) {
    const uint32_t k = begin[e];
    const size_t slot = size_t(row[k] / 4) * 15 + order[pattern[e]];
    other[next_entry[slot]++] = column[k];
    for (int i = 0; i < rows_in(pattern[e]); ++i) position[k + i] = next_weight[slot]++;
  }
}

Shape checked_shape(int64_t n_in, int64_t n_out, int64_t block) {
  if (n_in < 1 || n_in > 65535 || n_out < 1 || n_out > 65535)
    throw std::invalid_argument("a layer's widths must be from 1 to 65535, not " + str(n_in) + " and " + str(n_out));
  if (block != 1 && block != 2 && block != 4) throw std::invalid_argument("block must be 1, 2 or 4, not " + str(block));
  if (n_out % block) throw std::invalid_argument("block " + str(block) + " does not divide the layer's width " + str(n_out));
  return {int(n_in), int(n_out), int(block)};
}

void check_places(const Shape& shape, const int64_t* places, int64_t n) {
  if (n < 1) throw std::invalid_argument("a layer needs at least one link");
  for (int64_t k = 0; k < n; ++k) {
    if (places[k] < 0 || places[k] >= shape.n_places())
      throw std::invalid_argument("link " + str(k) + " is at place " + str(places[k]) + ", outside 0 to " +
                                  str(shape.n_places() - 1));
    if (k > 0 && places[k] <= places[k - 1])
      throw std::invalid_argument("places must be ascending and unique; number " + str(k) + " is not");
  }
}

GroupedLinks by_outputs(const Shape& shape, const int64_t* places, int64_t n, bool single, InPlaceOrder& order) {
  const int64_t per_input = shape.n_out / shape.block;
  std::vector<uint16_t> output(size_t(n) * shape.block), input(size_t(n) * shape.block);
  for (int64_t k = 0, j = 0; k < n; ++k) {
    while (places[k] >= (j + 1) * per_input) ++j;
    for (int b = 0; b < shape.block; ++b) {
      output[k * shape.block + b] = uint16_t((places[k] - j * per_input) * shape.block + b);
      input[k * shape.block + b] = uint16_t(j);
    }
  }
  order.places.assign(places, places + n);
  return GroupedLinks(shape.n_out, output, input, single, order.position);
}

GroupedLinks by_inputs(const Shape& shape, const InPlaceOrder& order, std::vector<uint32_t>& position) {
  // Places ascend by input; a stable counting sort by output gives rows (inputs) ascending within each column (output).
  const size_t n = order.position.size();
  const int64_t per_input = shape.n_out / shape.block;
  std::vector<uint16_t> input(n), output(n), row(n), column(n);
  std::vector<uint32_t> next(size_t(shape.n_out) + 1, 0), canonical(n), where;
  int64_t j = 0;
  for (size_t k = 0; k < n; ++k) {
    const int64_t place = order.places[k / shape.block];
    while (place >= (j + 1) * per_input) ++j;
    input[k] = uint16_t(j);
    output[k] = uint16_t((place - j * per_input) * shape.block + int64_t(k % shape.block));
    ++next[output[k] + 1];
  }
  for (int i = 0; i < shape.n_out; ++i) next[i + 1] += next[i];
  for (size_t k = 0; k < n; ++k) {
    const uint32_t at = next[output[k]]++;
    row[at] = input[k];
    column[at] = output[k];
    canonical[at] = order.position[k];
  }
  GroupedLinks out(shape.n_in, row, column, false, where);
  position.resize(n);
  for (size_t k = 0; k < n; ++k) position[where[k]] = canonical[k];
  return out;
}

InPlaceOrder in_place_order(const Shape& shape, const GroupedLinks& outputs) {
  std::vector<uint32_t> next(size_t(shape.n_in) + 1, 0);
  for_each_link(outputs, [&](int, int input, uint32_t) { ++next[input + 1]; });
  for (int j = 0; j < shape.n_in; ++j) next[j + 1] += next[j];
  InPlaceOrder out;
  out.position.resize(size_t(outputs.links()));
  out.places.resize(out.position.size() / shape.block);
  const int64_t per_input = shape.n_out / shape.block;
  for_each_link(outputs, [&](int output, int input, uint32_t position) {
    const uint32_t k = next[input]++;
    out.position[k] = position;
    if (k % shape.block == 0) out.places[k / shape.block] = input * per_input + output / shape.block;
  });
  return out;
}

void carry(int block, const InPlaceOrder& before, const InPlaceOrder& after, std::initializer_list<float*> arrays) {
  constexpr uint32_t kNew = UINT32_MAX;
  std::vector<uint32_t> from(after.position.size(), kNew);  // for each new position the old one
  size_t old = 0;
  for (size_t k = 0; k < after.places.size(); ++k) {
    while (old < before.places.size() && before.places[old] < after.places[k]) ++old;
    if (old < before.places.size() && before.places[old] == after.places[k])
      for (int b = 0; b < block; ++b) from[after.position[k * block + b]] = before.position[old * block + b];
  }
  for (float* values : arrays) {
    const std::vector<float> was(values, values + before.position.size());
    for (size_t k = 0; k < from.size(); ++k) values[k] = from[k] == kNew ? 0.0f : was[from[k]];
  }
}

}  // namespace rewirl
