#include "wiring.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace rewirl {

// A link of a group of rows.
struct GroupedLinks::Member {
  uint32_t link;
  uint16_t column, slot;
};

namespace {

std::string str(int64_t n) { return std::to_string(n); }

// The links of a group that share a column.
struct Part {
  uint32_t rows, index;  // one bit for each row that the column reaches; how many such parts came before
};

// Memory for the steps in between, kept from call to call: to ask the system for it anew takes longer than the work itself.
struct Workspace {
  std::vector<Link> by_outputs, by_inputs;
  std::vector<GroupedLinks::Member> members;
  std::vector<Part> parts;
  std::vector<uint32_t> canonical, where, from;
  std::vector<float> was;
};

Workspace& workspace() {
  static thread_local Workspace mine;
  return mine;
}

// Where each row stands: as row r of group g it has slot 4g + r.
std::vector<uint16_t> slots_of(const std::vector<uint16_t>& row) {
  std::vector<uint16_t> out(row.size());
  for (size_t slot = 0; slot < out.size(); ++slot) out[row[slot]] = uint16_t(slot);
  return out;
}

// Calls f(row, column, position) for every link; for any one column, rows ascend.
template <class F>
void for_each_link(const GroupedLinks& links, const F& f) {
  const std::vector<uint16_t> slot_of = slots_of(links.row);
  for (size_t row = 0; row < slot_of.size(); ++row) {
    const int g = slot_of[row] / 4, r = slot_of[row] % 4;
    const uint16_t* other = links.other.data() + links.column[g];
    uint32_t position = links.first_weights()[g];
    const KindList& list = list_of(links.kinds);
    for (int i = 0; i < list.size; ++i) {
      const Kind& kind = kKind[list.kind[i]];
      const int n = links.count[size_t(g) * list.size + i], columns = kind.columns(), per_entry = kind.links();
      if (kind.has(r)) {
        const uint16_t* column = other + kind.column[r];
        uint32_t at = position + uint32_t(kind.place(r));
        for (int j = 0; j < n; ++j, column += columns, at += per_entry) f(int(row), int(*column), at);
      }
      other += n * columns;
      position += uint32_t(n * per_entry);
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

GroupedLinks::GroupedLinks(int rows, int columns, const std::vector<Link>& links, bool may_sort, int block,
                           std::vector<uint32_t>& position)
    : row(size_t(rows + 3) / 4 * 4) {
  std::iota(row.begin(), row.end(), uint16_t(0));
  if (may_sort && block == 1) {
    const std::vector<uint32_t> in_row = links_per_row(row.size(), links);
    std::stable_sort(row.begin(), row.end(), [&](uint16_t a, uint16_t b) { return in_row[a] > in_row[b]; });
  }
  // A quad of two columns saves two loads, and each kind of them ends in a branch that the processor does not foresee: there
  // must be several in a group. A kind that splits rows two and two has about so many:
  const double density = double(links.size()) / rows / columns, empty = 1 - density;
  const double split = columns * density * density * empty * empty;
  kinds = block > 1 || empty == 0 ? Kinds::blocks : split >= 4 || density > 0.5 ? Kinds::two : Kinds::four;
  put(links, block, position);
}

GroupedLinks::GroupedLinks(const GroupedLinks& others, const std::vector<Link>& links, int block,
                           std::vector<uint32_t>& position)
    : row(others.row), kinds(block > 1 ? Kinds::blocks : Kinds::four) {
  put(links, block, position);
}

namespace {

constexpr int kFour = 8, kPairs = 9, kSingles = 11;  // kinds
constexpr uint32_t kUnit = 3;  // quads of two columns come in threes, as many as weight gradients take at once

// In which quad the links of a part can stand, and as which column of it.
struct Use {
  int8_t kind = 0, column = 0;
};
struct Uses {
  // Whole parts: with the part that complements it, or alone if it is all.
  Use whole[16];
  // Parts of three rows, where a layer is denser than half and has too few of one row to complement them: of a set of four, one
  // for each missing row, two are taken apart and make three quads with the others.
  Use split[16][4];

  constexpr Uses() : whole(), split() {
    for (int8_t i = 0; i < kFour; ++i)
      for (int8_t c = 0; c < kKind[i].columns(); ++c) {
        int rows = 0;
        for (int r = 0; r < 4; ++r) rows |= (kKind[i].column[r] == c) << r;
        whole[rows].kind = i;
        whole[rows].column = c;
      }
    for (int r = 0; r < 4; ++r) {
      split[14][r] = {1, 1};  // rows 1, 2, 3, with row 0 of
      split[13][r] = r == 0 ? Use{1, 0} : Use{5, 1};  // whose rows 2, 3 go with rows 0, 1 of
      split[7][r] = r == 2 ? Use{3, 0} : Use{5, 0};   // whose row 2 goes with
      split[11][r] = {3, 1};                          // rows 0, 1, 3
    }
  }
};
constexpr Uses kUses;
constexpr int kThreeRows[] = {7, 11, 13, 14};

}  // namespace

// No branch in the loops over links depends on the wiring, which nothing could foresee: that makes this several times as fast.
void GroupedLinks::put(const std::vector<Link>& links, int block, std::vector<uint32_t>& position) {
  const size_t groups = row.size() / 4;
  const std::vector<uint16_t> slot_of = slots_of(row);

  // The links of each group, columns ascending.
  std::vector<Member>& members = workspace().members;
  members.resize(links.size());
  std::vector<uint32_t> end(groups + 1, 0);
  for (const Link link : links) ++end[slot_of[row_of(link)] / 4 + 1];
  for (size_t g = 0; g < groups; ++g) end[g + 1] += end[g];
  for (size_t k = 0; k < links.size(); ++k) {
    const uint16_t slot = slot_of[row_of(links[k])];
    members[end[slot / 4]++] = {uint32_t(k), column_of(links[k]), slot};
  }

  column.assign(groups + 1, 0);
  weight.assign(kinds == Kinds::four ? 0 : groups + 1, 0);
  count.assign(groups * size_t(list_of(kinds).size), 0);
  other.resize(links.size());
  position.resize(links.size());
  for (size_t g = 0; g < groups; ++g)
    put_group(g, members.data() + (g == 0 ? 0 : end[g - 1]), members.data() + end[g], block, position);
  other.resize(column[groups]);
  other.shrink_to_fit();
}

void GroupedLinks::put_group(size_t g, const Member* begin, const Member* end, int block, std::vector<uint32_t>& position) {
  std::vector<Part>& parts = workspace().parts;
  parts.resize(size_t(end - begin) + 1);
  uint32_t n_parts = 0, before = UINT32_MAX, rows = 0;
  for (const Member* m = begin; m < end; ++m) {
    const bool fresh = m->column != before;
    rows = (rows & (uint32_t(fresh) - 1)) | 1u << m->slot % 4;
    n_parts += fresh;
    parts[n_parts].rows = rows;
    before = m->column;
  }
  uint32_t there[16] = {}, left[4] = {};
  for (uint32_t i = 1; i <= n_parts; ++i) parts[i].index = there[parts[i].rows]++;
  for (int part = 1; part < 16; ++part)
    for (int r = 0; r < 4; ++r) left[r] += (part >> r & 1) * there[part];

  // How many entries there are of each kind, and where they begin.
  uint32_t whole[16] = {}, split[16] = {};  // parts that are kept whole, and those taken apart after them
  uint32_t n[kKinds] = {};
  if (kinds != Kinds::four) {
    whole[15] = n[0] = there[15];
    for (int part = 1; part < 15; ++part) {
      whole[part] = std::min(there[part], there[15 - part]) / kUnit * kUnit;
      n[kUses.whole[part].kind] = whole[part];
    }
    uint32_t sets = UINT32_MAX;
    for (const int three : kThreeRows) sets = std::min(sets, (there[three] - whole[three]) / kUnit * kUnit);
    for (const int three : kThreeRows) split[three] = sets;
    for (const int kind : {1, 3, 5}) n[kind] += sets;
  }
  for (int kind = 0; kind < kFour; ++kind)
    for (uint32_t& rest : left) rest -= n[kind];
  if (block == 1) {
    n[kFour] = *std::min_element(left, left + 4);
    for (int r = 0; r < 4; ++r) n[kSingles + r] = left[r] - n[kFour];
  } else {
    n[kPairs] = there[3] - whole[3];
    n[kPairs + 1] = there[12] - whole[12];
  }
  uint32_t other_at[kKinds] = {}, weight_at[kKinds] = {};
  uint32_t next_other = column[g], next_weight = first_weights()[g];
  const KindList& list = list_of(kinds);
  for (int i = 0; i < list.size; ++i) {
    const int kind = list.kind[i];
    count[g * size_t(list.size) + i] = uint16_t(n[kind]);
    other_at[kind] = next_other;
    weight_at[kind] = next_weight;
    next_other += n[kind] * uint32_t(kKind[kind].columns());
    next_weight += n[kind] * uint32_t(kKind[kind].links());
  }
  column[g + 1] = next_other;
  if (kinds != Kinds::four) weight[g + 1] = next_weight;

  // Where each link of part number 0 would stand; those of the next ones follow at fixed distances.
  struct At {
    uint32_t other, weight, columns, links;
  } at[3][16][4];
  const auto stand = [&](int kind, int which, uint32_t place, uint32_t first) {
    const uint32_t columns = uint32_t(kKind[kind].columns()), per_entry = uint32_t(kKind[kind].links());
    return At{other_at[kind] + uint32_t(which) + first * columns, weight_at[kind] + place + first * per_entry, columns, per_entry};
  };
  for (int part = 1; part < 16; ++part)
    for (uint32_t r = 0; r < 4; ++r) at[0][part][r] = stand(kUses.whole[part].kind, kUses.whole[part].column, r, 0);
  for (const int part : kThreeRows)
    for (uint32_t r = 0; r < 4; ++r) {
      const auto [kind, which] = kUses.split[part][r];
      at[1][part][r] = stand(kind, which, r, n[kind] - split[part] - whole[part]);
    }
  for (const int part : {3, 12})  // blocks of two
    for (uint32_t r = 0; r < 4; ++r) at[2][part][r] = stand(kPairs + (part == 12), 0, r % 2, 0u - whole[part]);

  uint32_t loose[4] = {};
  uint32_t number = 0;
  before = UINT32_MAX;
  for (const Member* m = begin; m < end; ++m) {
    number += m->column != before;
    before = m->column;
    const Part part = parts[number];
    const uint32_t r = m->slot % 4;
    const uint32_t stage = (part.index >= whole[part.rows]) + (part.index >= whole[part.rows] + split[part.rows]);
    // A link that is in no such quad is the next one of its row: in a quad of four columns, or single.
    const bool by_itself = stage == 2 && block == 1;
    const At here = at[by_itself ? 0 : stage][part.rows][r];
    const uint32_t j = loose[r], four = n[kFour];
    loose[r] += by_itself;
    const uint32_t kind = j < four ? uint32_t(kFour) : kSingles + r, place = j < four ? 4 * j + r : j - four;
    other[by_itself ? other_at[kind] + place : here.other + part.index * here.columns] = m->column;
    position[m->link] = by_itself ? weight_at[kind] + place : here.weight + part.index * here.links;
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
  return GroupedLinks(shape.n_out, shape.n_in, links_at(shape, places, n), true, shape.block, order.position);
}

GroupedLinks beside(const GroupedLinks& outputs, const Shape& shape, const int64_t* places, int64_t n, InPlaceOrder& order) {
  order.places.assign(places, places + n);
  return GroupedLinks(outputs, links_at(shape, places, n), shape.block, order.position);
}

GroupedLinks by_inputs(const Shape& shape, const InPlaceOrder& order, bool may_sort, std::vector<uint32_t>& position) {
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
  GroupedLinks out(shape.n_in, shape.n_out, mine.by_inputs, may_sort, 1, mine.where);
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
  auto& from = workspace().from;  // for each new position the old one; for new links that of a zero behind the old values
  auto& was = workspace().was;
  const size_t n = after.position.size();
  from.assign(n, uint32_t(n));
  size_t old = 0;
  for (size_t k = 0; k < after.places.size(); ++k) {
    while (old < before.places.size() && before.places[old] < after.places[k]) ++old;
    if (old < before.places.size() && before.places[old] == after.places[k])
      for (int b = 0; b < block; ++b) from[after.position[k * block + b]] = before.position[old * block + b];
  }
  was.resize(n + 1);
  was[n] = 0;
  for (float* values : arrays) {
    std::copy_n(values, n, was.data());
    for (size_t k = 0; k < n; ++k) values[k] = was[from[k]];
  }
}

}  // namespace rewirl
