#include "networks/wiring.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>

#include "networks/grouping.h"
#include "networks/workspace.h"
#include "runtime/limits.h"
#include "runtime/runtime.h"

namespace rewirl {

namespace {

std::string str(int64_t n) { return std::to_string(n); }

size_t padded(int rows) { return size_t(rows + 3) / 4 * 4; }

// How many of n ascending positions are below a limit: a binary search without branches, half of which would be mispredicted.
size_t below(const Position* positions, size_t n, Position limit) {
  const Position* from = positions;
  while (n > 1) {
    const size_t half = n / 2;
    from += from[half - 1] < limit ? half : 0;
    n -= half;
  }
  return size_t(from - positions) + (n == 1 && *from < limit);
}

// The links of each position: one, or a block of them.
Rows& by_inputs(const Shape& shape, const std::vector<Position>& positions, WiringRoom& room) {
  Rows& out = room.by_inputs;
  const uint64_t per_input = uint64_t(shape.n_out / shape.block);
  const size_t n = positions.size(), links = n * shape.block;
  out.columns = shape.n_out;
  out.begin.assign(padded(shape.n_in) + 1, uint32_t(links));
  out.column.resize(links);
  size_t k = 0;
  for (uint64_t j = 0; j < uint64_t(shape.n_in); ++j) {
    out.begin[j] = uint32_t(k * shape.block);
    const size_t end = k + size_t(below(positions.data() + k, std::min(n - k, size_t(per_input)), Position((j + 1) * per_input)));
    const Position first = Position(j * per_input);
    if (shape.block == 1)
      for (; k < end; ++k) out.column[k] = uint16_t(positions[k] - first);
    else
      for (; k < end; ++k)
        for (int b = 0; b < shape.block; ++b) out.column[k * shape.block + b] = uint16_t((positions[k] - first) * shape.block + b);
  }
  return out;
}

// The same by outputs: a stable counting sort, so that inputs ascend. Links are numbered in the order by inputs.
const Rows& by_outputs(const Shape& shape, const Rows& by_inputs, WiringRoom& room) {
  Rows& out = room.by_outputs;
  const uint32_t links = by_inputs.links();
  out.columns = shape.n_in;
  out.begin.assign(padded(shape.n_out) + 2, 0);
  for (uint32_t k = 0; k < links; ++k) ++out.begin[by_inputs.column[k] + 2];
  for (size_t row = 2; row < out.begin.size(); ++row) out.begin[row] += out.begin[row - 1];
  out.column.resize(links);
  auto& link = room.link;
  link.resize(links);
  out.link = link.data();
  uint32_t* next = out.begin.data() + 1;  // shifted by one: after filling, each entry is where the next row begins
  for (uint32_t j = 0; j < uint32_t(shape.n_in); ++j)
    for (uint32_t k = by_inputs.begin[j]; k < by_inputs.begin[j + 1]; ++k) {
      const uint32_t at = next[by_inputs.column[k]]++;
      out.column[at] = uint16_t(j);
      link[at] = k;
    }
  out.begin.pop_back();
  return out;
}

// Rows in order, or sorted by their number of links, most links first.
std::vector<uint16_t> order_of(const Rows& rows, bool sort) {
  std::vector<uint16_t> out(rows.padded());
  if (!sort) {
    std::iota(out.begin(), out.end(), uint16_t(0));
    return out;
  }
  std::vector<uint32_t> next(size_t(rows.columns) + 2, 0);  // a counting sort by the number of missing links
  const auto lacks = [&](size_t row) { return size_t(rows.columns) - rows.links_of(row); };
  for (size_t row = 0; row < out.size(); ++row) ++next[lacks(row) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (size_t row = 0; row < out.size(); ++row) out[next[lacks(row)]++] = uint16_t(row);
  return out;
}

// A quad of two columns saves two loads, but each run of a pattern ends in a mispredicted branch: quads pay only if there are
// several in a group.
PatternSet patterns_for(int rows, int columns, int64_t links, int block) {
  const double density = double(links) / rows / columns, empty = 1 - density;
  if (block > 1 || empty == 0) return PatternSet::blocks;
  // The expected number of quads of a pattern that splits rows two and two.
  const double split = columns * density * density * empty * empty;
  return split >= 4 || density > 0.5 ? PatternSet::two : PatternSet::four;
}

void group_outputs(const Rows& rows, GroupedLinks& to, ByPosition& order, WiringRoom& room) {
  order.slot.resize(rows.links());
  uint32_t* slot = order.slot.data();
  const auto unit = uint32_t(kernels().quads);
  grouping::Grouping(to, rows, unit, room.grouping, [slot](uint32_t link, uint32_t at) { slot[link] = at; });
}

// Calls f(column, slot) for every link of the row that is number r of group g.
template <class F>
void for_each_link(const GroupedLinks& links, int g, int r, const F& f) {
  const PatternList& list = list_of(links.patterns);
  const uint16_t* other = links.other.data() + links.column[g];
  uint32_t slot = links.first_weights()[g];
  for (int i = 0; i < list.size; ++i) {
    const int pattern = list.pattern[i], n = links.count[size_t(g) * list.size + i];
    const int columns = kSizes.columns[pattern], per_entry = kSizes.links[pattern];
    if (kPattern[pattern].has(r)) {
      const uint16_t* column = other + kPattern[pattern].column[r];
      uint32_t at = slot + kSizes.offset[pattern][r];
      for (int j = 0; j < n; ++j, column += columns, at += per_entry) f(*column, at);
    }
    other += n * columns;
    slot += uint32_t(n * per_entry);
  }
}

// Adds to counts[c] how many links have column c.
void count_by_columns(const GroupedLinks& links, uint32_t* counts) {
  const PatternList& list = list_of(links.patterns);
  const uint16_t* other = links.other.data();
  for (size_t run = 0; run < links.count.size(); ++run) {
    const Pattern& pattern = kPattern[list.pattern[run % size_t(list.size)]];
    const int columns = pattern.columns();
    for (int c = 0; c < columns; ++c)
      for (int j = 0, rows = pattern.rows_of(c); j < links.count[run]; ++j) counts[other[j * columns + c]] += uint32_t(rows);
    other += links.count[run] * columns;
  }
}

}  // namespace

Shape checked_shape(int64_t n_in, int64_t n_out, int64_t block) {
  if (n_in < 1 || n_in > kMaxWidth || n_out < 1 || n_out > kMaxWidth)
    throw std::invalid_argument("a layer's widths must be from 1 to " + str(kMaxWidth) + ", not " + str(n_in) + " and " + str(n_out));
  if (std::find(std::begin(kBlocks), std::end(kBlocks), block) == std::end(kBlocks))
    throw std::invalid_argument("block must be 1, 2 or 4, not " + str(block));
  if (n_out % block) throw std::invalid_argument("block " + str(block) + " does not divide the layer's width " + str(n_out));
  return {int(n_in), int(n_out), int(block)};
}

void check_positions(const Shape& shape, const int64_t* positions, int64_t n, std::vector<Position>& checked) {
  checked.clear();
  if (n == 0) return;
  bool ascending = true;  // checked without branches, since errors are rare
  for (int64_t k = 1; k < n; ++k) ascending &= positions[k - 1] < positions[k];
  if (ascending && positions[0] >= 0 && positions[n - 1] < shape.n_positions()) {
    checked.assign(positions, positions + n);
    return;
  }
  for (int64_t k = 0; k < n; ++k) {
    if (positions[k] < 0 || positions[k] >= shape.n_positions())
      throw std::invalid_argument("link " + str(k) + " is at position " + str(positions[k]) + ", outside 0 to " +
                                  str(shape.n_positions() - 1));
    if (k > 0 && positions[k] <= positions[k - 1])
      throw std::invalid_argument("positions must be ascending and unique; number " + str(k) + " is not");
  }
}

void group(const Shape& shape, bool sort_inputs, ByPosition& order, GroupedLayer& to, WiringRoom& room) {
  Rows& inputs = by_inputs(shape, order.positions, room);
  const Rows& outputs = by_outputs(shape, inputs, room);
  to.outputs.row = order_of(outputs, shape.block == 1);
  to.outputs.patterns = patterns_for(shape.n_out, shape.n_in, outputs.links(), shape.block);
  to.outputs.all = shape.n_out % 4 == 0 && int64_t(outputs.links()) == int64_t(shape.n_in) * shape.n_out;
  group_outputs(outputs, to.outputs, order, room);
  if (!to.has_inputs()) return;

  to.inputs.row = order_of(inputs, sort_inputs);
  to.inputs.patterns = patterns_for(shape.n_in, shape.n_out, inputs.links(), 1);
  inputs.link = order.slot.data();
  to.slot.resize(inputs.links());
  uint32_t* slot = to.slot.data();
  grouping::Grouping(to.inputs, inputs, 1, room.grouping, [slot](uint32_t link, uint32_t at) { slot[at] = link; });
}

GroupedLinks beside(const GroupedLinks& outputs, const Shape& shape, ByPosition& order, WiringRoom& room) {
  GroupedLinks out;
  out.row = outputs.row;
  out.patterns = shape.block > 1 ? PatternSet::blocks : PatternSet::four;
  group_outputs(by_outputs(shape, by_inputs(shape, order.positions, room), room), out, order, room);
  return out;
}

void by_position(const Shape& shape, const GroupedLinks& links, ByPosition& out) {
  std::vector<uint16_t> row_at(links.row.size());  // an output is row r of group g where this is 4g + r
  for (size_t at = 0; at < row_at.size(); ++at) row_at[links.row[at]] = uint16_t(at);
  // Output by output, and sorted by inputs: in the order of positions.
  std::vector<uint32_t> next(size_t(shape.n_in) + 1);
  count_by_columns(links, next.data() + 1);
  std::partial_sum(next.begin(), next.end(), next.begin());
  out.slot.resize(size_t(links.links()));
  out.positions.resize(out.slot.size() / size_t(shape.block));
  const int shift = shape.block / 2;  // of 1, 2 and 4: a division by the block takes longer than all else here
  const Position per_input = Position(shape.n_out >> shift);
  for (uint32_t output = 0; output < uint32_t(shape.n_out); ++output)
    for_each_link(links, row_at[output] / 4, row_at[output] % 4, [&](uint16_t input, uint32_t at) {
      const uint32_t k = next[input]++;
      out.slot[k] = at;
      out.positions[k >> shift] = input * per_input + (output >> shift);  // the same for all links of a block
    });
}

void replace(const ByPosition& before, Passage& passage, ByPosition& after) {
  auto& [dropped, grown, gone, come, old, from] = passage;
  const size_t n = before.positions.size(), n_grown = grown.size();
  if (dropped.size() != n_grown)
    throw std::invalid_argument("rewiring keeps the number of links: positions dropped are " + str(dropped.size()) + ", grown " +
                                str(n_grown));
  dropped.push_back(kNoPosition);
  grown.push_back(kNoPosition);
  gone.resize(n_grown);
  come.resize(n_grown);
  after.positions.resize(n + n_grown);
  old.resize(n + n_grown);
  size_t k = 0, d = 0, g = 0, made = 0;  // links seen, dropped, grown, and in the new order so far
  for (;;) {
    const Position next = std::min(dropped[d], grown[g]);
    for (; k < n && before.positions[k] < next; ++k, ++made) {
      after.positions[made] = before.positions[k];
      old[made] = uint32_t(k);
    }
    if (next == kNoPosition) break;
    const bool taken = k < n && before.positions[k] == next;
    if (grown[g] == next) {
      if (taken) throw std::invalid_argument("position " + str(next) + " cannot grow a link: it has one");
      come[g++] = uint32_t(made);
      old[made] = 0;  // of no meaning
      after.positions[made++] = next;
    } else {
      if (!taken) throw std::invalid_argument("position " + str(next) + " cannot drop its link: it has none");
      gone[d++] = uint32_t(k++);
    }
  }
  after.positions.resize(n);
}

void follow(int block, const ByPosition& before, const ByPosition& after, Passage& passage, WiringRoom& room) {
  const size_t b = size_t(block), n = after.slot.size();
  passage.from.resize(n);
  room.was.resize(n + 1);
  uint32_t* from = passage.from.data();
  for (size_t k = 0; k < after.positions.size(); ++k)
    for (size_t i = 0; i < b; ++i) from[after.slot[k * b + i]] = before.slot[passage.old[k] * b + i];
  for (const size_t k : passage.come)
    for (size_t i = 0; i < b; ++i) from[after.slot[k * b + i]] = uint32_t(n);
}

void carry(const Passage& passage, float* values, WiringRoom& room) noexcept {
  auto& was = room.was;
  const size_t n = passage.from.size();
  std::copy_n(values, n, was.data());
  was[n] = 0;
  for (size_t k = 0; k < n; ++k) values[k] = was[passage.from[k]];
}

// Splits the groups begin .. end into parts with similar numbers of links, and calls work for each, one per thread.
void for_groups(const Groups& links, int begin, int end, int64_t cost, const std::function<void(int, int)>& work) {
  const uint32_t *first = links.weight + begin, *last = links.weight + end;
  const int64_t n = *last - *first;
  parallel(n, 1, n * cost, [&](int64_t from, int64_t to) {
    // The groups whose first link is in this range; groups without links have results too, all zero.
    const auto group = [&](int64_t link) { return int(std::lower_bound(first, last, *first + link) - links.weight); };
    work(from == 0 ? begin : group(from), to == n ? end : group(to));
  });
}

}  // namespace rewirl
