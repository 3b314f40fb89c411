#include "wiring.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace rewirl {

namespace {

std::string str(int64_t n) { return std::to_string(n); }

struct IndexOfPattern {
  uint8_t index[16] = {};
  constexpr IndexOfPattern() {
    for (uint8_t i = 0; i < 15; ++i) index[kPatterns[i]] = i;
  }
  constexpr size_t operator[](size_t pattern) const { return index[pattern]; }
};
constexpr IndexOfPattern kIndexOfPattern;

int rows_in(int pattern) {
  constexpr int8_t counts[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
  return counts[pattern];
}

// Where the links of one row stand when links are kept by rows: the first `shared` of them four apart, the others in a run.
struct RowOfLinks {
  uint32_t first, shared, rest;
  uint32_t at(uint32_t i) const { return i < shared ? first + 4 * i : rest + (i - shared); }
};

RowOfLinks row_of_links(const GroupedLinks& links, size_t slot) {
  const size_t g = slot / 4, r = slot % 4;
  const uint16_t* count = links.count.data() + 5 * g;
  RowOfLinks out{uint32_t(links.entry[g] + r), count[0], links.entry[g] + 4u * count[0]};
  for (size_t i = 0; i < r; ++i) out.rest += count[1 + i];
  return out;
}

// slot_of[row[slot]] = slot
std::vector<uint16_t> slots(const std::vector<uint16_t>& row) {
  std::vector<uint16_t> slot_of(row.size());
  for (size_t slot = 0; slot < row.size(); ++slot) slot_of[row[slot]] = uint16_t(slot);
  return slot_of;
}

// Calls f(row, column, position) for every link; for any one column, rows ascend.
template <class F>
void for_each_link(const GroupedLinks& links, const F& f) {
  const std::vector<uint16_t> slot_of = slots(links.row);
  if (links.by_rows) {
    for (size_t row = 0; row < slot_of.size(); ++row) {
      const size_t slot = slot_of[row];
      const RowOfLinks mine = row_of_links(links, slot);
      const uint32_t n = mine.shared + links.count[5 * (slot / 4) + 1 + slot % 4];
      for (uint32_t i = 0; i < n; ++i) f(int(row), int(links.other[mine.at(i)]), mine.at(i));
    }
    return;
  }
  int offset[15][4];  // of each pattern's rows: a loop of fixed length within a run is quicker than tests of bits
  for (int i = 0; i < 15; ++i)
    for (int r = 0, n = 0; r < 4; ++r)
      if (kPatterns[i] >> r & 1) offset[i][n++] = r;
  for (size_t first = 0; first < slot_of.size(); first += 4) {
    const size_t g = slot_of[first] / 4;
    const uint16_t* other = links.other.data() + links.entry[g];
    uint32_t position = links.weight[g];
    for (int i = 0; i < 15; ++i) {
      const int per_entry = rows_in(kPatterns[i]);
      for (int n = links.count[15 * g + i]; n > 0; --n, ++other)
        for (int r = 0; r < per_entry; ++r) f(int(first) + offset[i][r], int(*other), position++);
    }
  }
}

// Splits places into outputs and inputs, one pair per link.
void split(const Shape& shape, const int64_t* places, int64_t n, std::vector<uint16_t>& output, std::vector<uint16_t>& input) {
  const int64_t per_input = shape.n_out / shape.block;
  output.resize(size_t(n) * shape.block);
  input.resize(output.size());
  for (int64_t k = 0, j = 0; k < n; ++k) {
    while (places[k] >= (j + 1) * per_input) ++j;
    for (int b = 0; b < shape.block; ++b) {
      output[k * shape.block + b] = uint16_t((places[k] - j * per_input) * shape.block + b);
      input[k * shape.block + b] = uint16_t(j);
    }
  }
}

}  // namespace

// Runs of links that share a column and a group of four neighbouring rows. No branch depends on the wiring, which nothing
// could foresee: that makes this several times as fast.
struct GroupedLinks::Entries {
  std::vector<uint32_t> first;  // of each entry its first link, and the number of links at the end
  std::vector<uint8_t> pattern;
  std::vector<uint16_t> count;  // 15 per group of rows
  int64_t runs = 0;             // of patterns that are there, over all groups

  Entries(int rows, const std::vector<uint16_t>& row, const std::vector<uint16_t>& column)
      : first(row.size() + 1), pattern(row.size() + 1), count(size_t(rows + 3) / 4 * 15) {
    uint32_t before = UINT32_MAX;
    size_t n = 0;
    for (size_t k = 0; k < row.size(); ++k) {
      const uint32_t key = uint32_t(row[k] / 4) << 16 | column[k];
      n += key != before;
      first[n] = uint32_t(k + 1);
      pattern[n] |= uint8_t(1 << row[k] % 4);
      before = key;
    }
    first.resize(n + 1);  // now, of each entry, one past its last link, and 0 in front
    pattern.erase(pattern.begin());
    pattern.resize(n);
    for (size_t e = 0; e < n; ++e) ++count[size_t(row[first[e]] / 4) * 15 + kIndexOfPattern[pattern[e]]];
    runs = std::count_if(count.begin(), count.end(), [](uint16_t c) { return c > 0; });
  }
  int64_t size() const { return int64_t(pattern.size()); }
};

GroupedLinks::GroupedLinks(int rows, const std::vector<uint16_t>& row_, const std::vector<uint16_t>& column,
                           bool may_be_by_rows, std::vector<uint32_t>& position)
    : row(size_t(rows + 3) / 4 * 4) {
  const Entries entries(rows, row_, column);
  std::iota(row.begin(), row.end(), uint16_t(0));
  // An entry of several links saves loads; a run ends in a branch that the processor does not foresee, which by rows happens
  // about twice in a group. Measured on Zen 3: such a branch costs as much as seven loads.
  const int64_t saved = int64_t(row_.size()) - entries.size(), groups = int64_t(row.size()) / 4;
  by_rows = may_be_by_rows && saved < 7 * (entries.runs - 2 * groups);
  if (by_rows) {
    // Rows with as many links follow each other, so that the ends of their loops can be foreseen.
    std::vector<uint32_t> links(row.size());
    for (const uint16_t r : row_) ++links[r];
    std::stable_sort(row.begin(), row.end(), [&](uint16_t a, uint16_t b) { return links[a] > links[b]; });
  }
  by_rows ? put_by_rows(row_, column, position) : put_by_patterns(entries, row_, column, position);
}

GroupedLinks::GroupedLinks(const GroupedLinks& others, const std::vector<uint16_t>& row_, const std::vector<uint16_t>& column,
                           bool by_rows_, std::vector<uint32_t>& position)
    : row(others.row), by_rows(by_rows_) {
  by_rows ? put_by_rows(row_, column, position)
          : put_by_patterns(Entries(int(row.size()), row_, column), row_, column, position);
}

void GroupedLinks::put_by_patterns(const Entries& entries, const std::vector<uint16_t>& row_,
                                   const std::vector<uint16_t>& column, std::vector<uint32_t>& position) {
  const size_t groups = row.size() / 4;
  entry.assign(groups + 1, 0);
  weight.assign(groups + 1, 0);
  count.resize(groups * 15);
  std::vector<uint32_t> next_entry(groups * 15), next_weight(groups * 15);  // by groups of neighbouring rows
  for (size_t g = 0; g < groups; ++g) {
    const size_t from = size_t(row[4 * g]) / 4 * 15;
    entry[g + 1] = entry[g];
    weight[g + 1] = weight[g];
    for (size_t i = 0; i < 15; ++i) {
      const uint16_t n = count[g * 15 + i] = entries.count[from + i];
      next_entry[from + i] = entry[g + 1];
      next_weight[from + i] = weight[g + 1];
      entry[g + 1] += n;
      weight[g + 1] += n * uint32_t(rows_in(kPatterns[i]));
    }
  }
  other.resize(size_t(entries.size()));
  position.resize(row_.size() + 3);
  for (size_t e = 0; e < other.size(); ++e) {
    const uint32_t k = entries.first[e];
    const size_t run = size_t(row_[k]) / 4 * 15 + kIndexOfPattern[entries.pattern[e]];
    other[next_entry[run]++] = column[k];
    for (uint32_t i = 0; i < 4; ++i) position[k + i] = next_weight[run] + i;  // the next entry overwrites those too many
    next_weight[run] += uint32_t(rows_in(entries.pattern[e]));
  }
  position.resize(row_.size());
}

void GroupedLinks::put_by_rows(const std::vector<uint16_t>& row_, const std::vector<uint16_t>& column,
                               std::vector<uint32_t>& position) {
  const size_t rows = row.size(), groups = rows / 4;
  std::vector<uint32_t> links(rows);
  for (const uint16_t r : row_) ++links[r];
  entry.assign(groups + 1, 0);
  count.assign(groups * 5, 0);
  for (size_t g = 0; g < groups; ++g) {
    uint32_t shared = UINT32_MAX;
    entry[g + 1] = entry[g];
    for (size_t r = 0; r < 4; ++r) {
      shared = std::min(shared, links[row[4 * g + r]]);
      entry[g + 1] += links[row[4 * g + r]];
    }
    count[5 * g] = uint16_t(shared);
    for (size_t r = 0; r < 4; ++r) count[5 * g + 1 + r] = uint16_t(links[row[4 * g + r]] - shared);
  }
  std::vector<RowOfLinks> where(rows);
  for (size_t slot = 0; slot < rows; ++slot) where[row[slot]] = row_of_links(*this, slot);
  std::fill(links.begin(), links.end(), 0);
  other.resize(row_.size());
  position.resize(row_.size());
  for (size_t k = 0; k < row_.size(); ++k) {
    position[k] = where[row_[k]].at(links[row_[k]]++);
    other[position[k]] = column[k];
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

GroupedLinks by_outputs(const Shape& shape, const int64_t* places, int64_t n, InPlaceOrder& order) {
  std::vector<uint16_t> output, input;
  split(shape, places, n, output, input);
  order.places.assign(places, places + n);
  // By rows the links of a block would not be neighbours, as pruning wants them.
  return GroupedLinks(shape.n_out, output, input, shape.block == 1, order.position);
}

GroupedLinks beside(const GroupedLinks& outputs, const Shape& shape, const int64_t* places, int64_t n, InPlaceOrder& order) {
  std::vector<uint16_t> output, input;
  split(shape, places, n, output, input);
  order.places.assign(places, places + n);
  return GroupedLinks(outputs, output, input, shape.block == 1, order.position);
}

GroupedLinks by_inputs(const Shape& shape, const InPlaceOrder& order, bool may_be_by_rows, std::vector<uint32_t>& position) {
  // Places ascend by input; a stable counting sort by output gives rows (inputs) ascending within each column (output).
  const size_t n = order.position.size();
  std::vector<uint16_t> input, output, row(n), column(n);
  split(shape, order.places.data(), int64_t(order.places.size()), output, input);
  std::vector<uint32_t> next(size_t(shape.n_out) + 1, 0), canonical(n), where;
  for (const uint16_t i : output) ++next[size_t(i) + 1];
  for (int i = 0; i < shape.n_out; ++i) next[i + 1] += next[i];
  for (size_t k = 0; k < n; ++k) {
    const uint32_t at = next[output[k]]++;
    row[at] = input[k];
    column[at] = output[k];
    canonical[at] = order.position[k];
  }
  GroupedLinks out(shape.n_in, row, column, may_be_by_rows, where);
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
