#include "wiring.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace rewirl {

namespace {

std::string str(int64_t n) { return std::to_string(n); }

// Memory for the steps in between, kept from call to call: to ask the system for it anew takes longer than the work itself.
struct Workspace {
  std::vector<Link> by_outputs, by_inputs;
  std::vector<uint32_t> first, canonical, where, from;
  std::vector<uint8_t> pattern;
  std::vector<float> was;
};

Workspace& workspace() {
  static thread_local Workspace mine;
  return mine;
}

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

// Calls f(row, column, position) for every link; for any one column, rows ascend.
template <class F>
void for_each_link(const GroupedLinks& links, const F& f) {
  if (links.by_rows) {
    std::vector<uint16_t> slot_of(links.row.size());
    for (size_t slot = 0; slot < slot_of.size(); ++slot) slot_of[links.row[slot]] = uint16_t(slot);
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
  for (int g = 0; g < links.groups(); ++g) {
    const uint16_t* other = links.other.data() + links.entry[g];
    uint32_t position = links.weight[g];
    for (int i = 0; i < 15; ++i) {
      const int per_entry = rows_in(kPatterns[i]);
      for (int n = links.count[15 * size_t(g) + i]; n > 0; --n, ++other)
        for (int r = 0; r < per_entry; ++r) f(4 * g + offset[i][r], int(*other), position++);
    }
  }
}

std::vector<uint32_t> links_per_row(size_t rows, const std::vector<Link>& links) {
  std::vector<uint32_t> out(rows);
  for (const Link link : links) ++out[row_of(link)];
  return out;
}

// One link for each place, or as many as a block has, with outputs as rows.
const std::vector<Link>& links_at(const Shape& shape, const int64_t* places, int64_t n) {
  std::vector<Link>& out = workspace().by_outputs;
  const int64_t per_input = shape.n_out / shape.block;
  out.resize(size_t(n) * shape.block);
  for (int64_t k = 0, j = 0; j < shape.n_in; ++j)
    for (; k < n && places[k] < (j + 1) * per_input; ++k)
      for (int b = 0; b < shape.block; ++b)
        out[k * shape.block + b] = link_at(uint32_t((places[k] - j * per_input) * shape.block + b), uint32_t(j));
  return out;
}

}  // namespace

// Runs of links that share a column and a group of four neighbouring rows. No branch depends on the wiring, which nothing
// could foresee: that makes this several times as fast.
struct GroupedLinks::Entries {
  std::vector<uint32_t>& first = workspace().first;     // of each entry its first link, then the number of links
  std::vector<uint8_t>& pattern = workspace().pattern;  // of each entry, from number 1 on
  std::vector<uint16_t> count;                          // 15 per group of rows
  int64_t runs = 0;                                     // of patterns that are there, over all groups
  size_t size = 0;

  Entries(size_t groups, const std::vector<Link>& links) : count(groups * 15) {
    first.resize(links.size() + 1);
    first[0] = 0;
    pattern.resize(links.size() + 1);
    uint32_t before = UINT32_MAX, bits = 0;
    for (size_t k = 0; k < links.size(); ++k) {
      const uint32_t key = links[k] & ~(3u << 16);  // column and group of rows
      const bool fresh = key != before;
      bits = (bits & (uint32_t(fresh) - 1)) | 1u << row_of(links[k]) % 4;
      size += fresh;
      first[size] = uint32_t(k + 1);  // in the end one past the entry's last link: the next one's first
      pattern[size] = uint8_t(bits);
      before = key;
    }
    for (size_t e = 0; e < size; ++e) ++count[run_of(e, links)];
    runs = std::count_if(count.begin(), count.end(), [](uint16_t c) { return c > 0; });
  }
  size_t run_of(size_t e, const std::vector<Link>& links) const {
    return size_t(row_of(links[first[e]])) / 4 * 15 + kIndexOfPattern[pattern[e + 1]];
  }
};

GroupedLinks::GroupedLinks(int rows, const std::vector<Link>& links, bool may_be_by_rows, std::vector<uint32_t>& position)
    : row(size_t(rows + 3) / 4 * 4) {
  const size_t groups = row.size() / 4;
  const Entries entries(groups, links);
  std::iota(row.begin(), row.end(), uint16_t(0));
  // An entry of several links saves loads; a run ends in a branch that the processor does not foresee, which by rows happens
  // about twice in a group. Measured on Zen 3: such a branch costs as much as seven loads.
  const int64_t saved = int64_t(links.size() - entries.size);
  by_rows = may_be_by_rows && saved < 7 * (entries.runs - 2 * int64_t(groups));
  if (!by_rows) {
    put_by_patterns(entries, links, position);
    return;
  }
  // Rows with as many links follow each other, so that the ends of their loops can be foreseen.
  const std::vector<uint32_t> in_row = links_per_row(row.size(), links);
  std::stable_sort(row.begin(), row.end(), [&](uint16_t a, uint16_t b) { return in_row[a] > in_row[b]; });
  put_by_rows(links, in_row, position);
}

GroupedLinks::GroupedLinks(const GroupedLinks& others, const std::vector<Link>& links, bool by_rows_,
                           std::vector<uint32_t>& position)
    : row(others.row), by_rows(by_rows_) {
  by_rows ? put_by_rows(links, links_per_row(row.size(), links), position)
          : put_by_patterns(Entries(row.size() / 4, links), links, position);
}

void GroupedLinks::put_by_patterns(const Entries& entries, const std::vector<Link>& links, std::vector<uint32_t>& position) {
  const size_t groups = row.size() / 4;
  entry.assign(groups + 1, 0);
  weight.assign(groups + 1, 0);
  count = entries.count;
  std::vector<uint32_t> next_entry(groups * 15), next_weight(groups * 15);
  for (size_t g = 0; g < groups; ++g) {
    entry[g + 1] = entry[g];
    weight[g + 1] = weight[g];
    for (size_t i = 0; i < 15; ++i) {
      next_entry[g * 15 + i] = entry[g + 1];
      next_weight[g * 15 + i] = weight[g + 1];
      entry[g + 1] += count[g * 15 + i];
      weight[g + 1] += count[g * 15 + i] * uint32_t(rows_in(kPatterns[i]));
    }
  }
  other.resize(entries.size);
  position.resize(links.size() + 3);
  for (size_t e = 0; e < other.size(); ++e) {
    const uint32_t k = entries.first[e];
    const size_t run = entries.run_of(e, links);
    other[next_entry[run]++] = column_of(links[k]);
    for (uint32_t i = 0; i < 4; ++i) position[k + i] = next_weight[run] + i;  // the next entry overwrites those too many
    next_weight[run] += uint32_t(rows_in(entries.pattern[e + 1]));
  }
  position.resize(links.size());
}

void GroupedLinks::put_by_rows(const std::vector<Link>& links, const std::vector<uint32_t>& in_row,
                               std::vector<uint32_t>& position) {
  const size_t rows = row.size(), groups = rows / 4;
  entry.assign(groups + 1, 0);
  count.assign(groups * 5, 0);
  for (size_t g = 0; g < groups; ++g) {
    uint32_t shared = UINT32_MAX;
    entry[g + 1] = entry[g];
    for (size_t r = 0; r < 4; ++r) {
      shared = std::min(shared, in_row[row[4 * g + r]]);
      entry[g + 1] += in_row[row[4 * g + r]];
    }
    count[5 * g] = uint16_t(shared);
    for (size_t r = 0; r < 4; ++r) count[5 * g + 1 + r] = uint16_t(in_row[row[4 * g + r]] - shared);
  }
  std::vector<RowOfLinks> where(rows);
  for (size_t slot = 0; slot < rows; ++slot) where[row[slot]] = row_of_links(*this, slot);
  std::vector<uint32_t> seen(rows);
  other.resize(links.size());
  position.resize(links.size());
  for (size_t k = 0; k < links.size(); ++k) {
    const uint16_t row_here = row_of(links[k]);
    position[k] = where[row_here].at(seen[row_here]++);
    other[position[k]] = column_of(links[k]);
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
  order.places.assign(places, places + n);
  // By rows the links of a block would not be neighbours, as pruning wants them.
  return GroupedLinks(shape.n_out, links_at(shape, places, n), shape.block == 1, order.position);
}

GroupedLinks beside(const GroupedLinks& outputs, const Shape& shape, const int64_t* places, int64_t n, InPlaceOrder& order) {
  order.places.assign(places, places + n);
  return GroupedLinks(outputs, links_at(shape, places, n), shape.block == 1, order.position);
}

GroupedLinks by_inputs(const Shape& shape, const InPlaceOrder& order, bool may_be_by_rows, std::vector<uint32_t>& position) {
  // Places ascend by input; a stable counting sort by output gives rows (inputs) ascending within each column (output).
  const size_t n = order.position.size();
  Workspace& mine = workspace();
  const std::vector<Link>& links = links_at(shape, order.places.data(), int64_t(order.places.size()));
  mine.by_inputs.resize(n);
  mine.canonical.resize(n);
  std::vector<uint32_t> next(size_t(shape.n_out) + 1, 0);
  for (const Link link : links) ++next[size_t(row_of(link)) + 1];
  for (int i = 0; i < shape.n_out; ++i) next[i + 1] += next[i];
  for (size_t k = 0; k < n; ++k) {
    const uint32_t at = next[row_of(links[k])]++;
    mine.by_inputs[at] = link_at(column_of(links[k]), row_of(links[k]));
    mine.canonical[at] = order.position[k];
  }
  GroupedLinks out(shape.n_in, mine.by_inputs, may_be_by_rows, mine.where);
  position.resize(n);
  for (size_t k = 0; k < n; ++k) position[mine.where[k]] = mine.canonical[k];
  return out;
}

void in_place_order(const Shape& shape, const GroupedLinks& outputs, InPlaceOrder& out) {
  std::vector<uint32_t> next(size_t(shape.n_in) + 1, 0);
  for_each_link(outputs, [&](int, int input, uint32_t) { ++next[input + 1]; });
  for (int j = 0; j < shape.n_in; ++j) next[j + 1] += next[j];
  out.position.resize(size_t(outputs.links()));
  out.places.resize(out.position.size() / shape.block);
  const int64_t per_input = shape.n_out / shape.block;
  for_each_link(outputs, [&](int output, int input, uint32_t position) {
    const uint32_t k = next[input]++;
    out.position[k] = position;
    if (k % shape.block == 0) out.places[k / shape.block] = input * per_input + output / shape.block;
  });
}

void carry(int block, const InPlaceOrder& before, const InPlaceOrder& after, const std::vector<float*>& arrays) {
  constexpr uint32_t kNew = UINT32_MAX;
  auto& from = workspace().from;  // for each new position the old one
  auto& was = workspace().was;
  from.assign(after.position.size(), kNew);
  size_t old = 0;
  for (size_t k = 0; k < after.places.size(); ++k) {
    while (old < before.places.size() && before.places[old] < after.places[k]) ++old;
    if (old < before.places.size() && before.places[old] == after.places[k])
      for (int b = 0; b < block; ++b) from[after.position[k * block + b]] = before.position[old * block + b];
  }
  for (float* values : arrays) {
    was.assign(values, values + before.position.size());
    for (size_t k = 0; k < from.size(); ++k) values[k] = from[k] == kNew ? 0.0f : was[from[k]];
  }
}

}  // namespace rewirl
