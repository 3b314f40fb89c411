// How links become groups of four rows with as few loads as may be: which of them stand in which quads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "wiring.h"

namespace rewirl {

// Links row by row, columns ascending. `link` is what the caller knows each of them by.
struct Rows {
  int columns = 0;
  std::vector<uint32_t> begin;  // row r has the entries begin[r] .. begin[r + 1]; rows are padded to whole groups
  std::vector<uint16_t> column;
  const uint32_t* link = nullptr;

  size_t padded() const { return begin.size() - 1; }
  uint32_t links() const { return begin.back(); }
  uint32_t links_of(size_t row) const { return begin[row + 1] - begin[row]; }
};

namespace grouping {

constexpr int kFour = 8, kPairs = 9, kSingles = 11;  // kinds

// A part is the links of a group that share a column, known by its rows: one bit for each. In which quad can they stand, and as
// which column of it?
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
constexpr int kThreeRows[] = {7, 11, 13, 14}, kTwoRows[] = {3, 5, 6, 9, 10, 12};

// Parts of two rows one of which completes parts of three; the other is left.
struct Halves {
  int part, row;
  uint32_t first, entry, n;  // the first of them, the entry that it completes, and how many
};

// Links of one row, columns ascending.
struct Run {
  const uint16_t* column;
  const uint32_t* link;
  uint32_t size;
};

// Memory for one group after the other, kept from call to call: to ask the system for it anew takes longer than the work.
struct Room {
  std::vector<uint8_t> rows;       // of each column the rows of its part
  std::vector<uint32_t> link;      // and its links, one for each row
  std::vector<uint16_t> alike;     // the columns of each part, ascending
  std::vector<uint16_t> left;      // columns of links that are in no quad of one or two, row by row
  std::vector<uint32_t> left_link;
  std::vector<uint16_t> other;
};
inline Room& room() {
  static thread_local Room mine;
  return mine;
}

// Fills `to`, whose rows and kinds are chosen, and calls put(link, position) for every link. Quads of two columns come in multiples
// of `unit`.
// No branch in the loops over links depends on the wiring, which nothing could foresee: that makes this several times as fast.
template <class Put>
class Grouping {
 public:
  Grouping(GroupedLinks& to, const Rows& rows, int block, uint32_t unit, Put put)
      : to_(to), rows_(rows), block_(block), unit_(unit), put_(put), room_(room()), stride_(size_t(rows.columns) + 8) {
    room_.rows.assign(stride_, 0);
    room_.link.resize(4 * stride_);
    room_.alike.resize(16 * stride_);
    room_.left.resize(4 * stride_);
    room_.left_link.resize(4 * stride_);
    room_.other.resize(rows.links());
    const size_t groups = to.row.size() / 4;
    to.column.assign(groups + 1, 0);
    to.weight.assign(to.kinds == Kinds::four ? 0 : groups + 1, 0);
    to.count.assign(groups * size_t(list_of(to.kinds).size), 0);
    for (size_t g = 0; g < groups; ++g) group(g);
    to.other.assign(room_.other.begin(), room_.other.begin() + to.column[groups]);
  }

 private:
  void group(size_t g) {
    Run left[4];
    for (int r = 0; r < 4; ++r) {
      const size_t row = to_.row[4 * g + r];
      const uint32_t begin = rows_.begin[row];
      left[r] = {rows_.column.data() + begin, rows_.link + begin, rows_.links_of(row)};
    }
    std::fill_n(there_, 16, 0);
    std::fill_n(whole_, 16, 0);
    std::fill_n(split_, 16, 0);
    std::fill_n(n_, kKinds, 0);
    n_halves_ = 0;
    if (to_.kinds != Kinds::four) {
      find_parts(left);
      choose_quads();
      find_left(left);
    }
    n_[kFour] = std::min({left[0].size, left[1].size, left[2].size, left[3].size});
    for (int r = 0; r < 4; ++r) n_[kSingles + r] = left[r].size - n_[kFour];
    begin_runs(g);
    put_wholes(std::make_index_sequence<15>{});
    for (const int part : kThreeRows) put_split(part);
    for (int i = 0; i < n_halves_; ++i) put_halves(halves_[i]);
    if (block_ > 1)
      for (const int part : {3, 12}) put_pairs(part);
    for (int r = 0; r < 4; ++r) put_left(left[r], r);
  }

  void find_parts(const Run* runs) {
    uint8_t* rows = room_.rows.data();
    uint32_t* link = room_.link.data();
    for (int r = 0; r < 4; ++r) {
      const Run run = runs[r];
      for (uint32_t i = 0; i < run.size; ++i) {
        const uint16_t column = run.column[i];
        rows[column] |= uint8_t(1 << r);
        link[4 * column + r] = run.link[i];
      }
    }
    uint16_t* alike = room_.alike.data();
    for (int column = 0; column < rows_.columns; column += 8) {
      uint64_t eight;
      std::memcpy(&eight, rows + column, 8);
      if (eight == 0) continue;
      for (int i = column; i < column + 8; ++i) alike[rows[i] * stride_ + there_[rows[i]]++] = uint16_t(i);
    }
    std::fill_n(rows, rows_.columns, uint8_t(0));  // for the next group
  }

  // How many parts are kept whole, and how many are taken apart after them.
  void choose_quads() {
    whole_[15] = n_[0] = there_[15];
    for (int part = 1; part < 15; ++part) whole_[part] = std::min(there_[part], there_[15 - part]);
    for (const int two : kTwoRows) whole_[two] -= whole_[two] % unit_;
    uint32_t sets = UINT32_MAX;
    for (const int three : kThreeRows) sets = std::min(sets, there_[three] - whole_[three]);
    sets -= sets % unit_;
    for (const int three : kThreeRows) split_[three] = sets;
    complete_threes();
    for (int part = 1; part < 15; ++part) n_[kUses.whole[part].kind] = std::max(whole_[part], whole_[15 - part]);
    for (const int kind : {1, 3, 5}) n_[kind] += sets;
    if (block_ > 1) {
      n_[kPairs] = there_[3] - whole_[3];
      n_[kPairs + 1] = there_[12] - whole_[12];
    }
    for (int part = 1; part < 16; ++part) taken_[part] = block_ > 1 ? there_[part] : whole_[part] + split_[part];
    for (int k = 0; k < n_halves_; ++k) taken_[halves_[k].part] += halves_[k].n;
  }

  // Parts of three rows that found none of one row take it from a part of two, as long as there are such.
  void complete_threes() {
    uint32_t next[16];
    for (const int two : kTwoRows) next[two] = whole_[two];
    for (const int three : kThreeRows) {
      const int row = __builtin_ctz(unsigned(15 - three));
      uint32_t& one = whole_[15 - three];
      uint32_t wanted = there_[three] - one - split_[three], there = 0;
      for (const int two : kTwoRows) there += two >> row & 1 ? there_[two] - next[two] : 0;
      wanted = std::min(wanted, there);
      const uint32_t surplus = (one + wanted) % unit_;
      one -= surplus - std::min(surplus, wanted);
      wanted -= std::min(surplus, wanted);
      whole_[three] = one;
      for (const int two : kTwoRows) {
        if (!(two >> row & 1)) continue;
        const uint32_t n = std::min(wanted, there_[two] - next[two]);
        if (n == 0) continue;
        halves_[n_halves_++] = {two, row, next[two], whole_[three], n};
        next[two] += n;
        whole_[three] += n;
        wanted -= n;
      }
    }
  }

  // Links that are in no quad so far, row by row.
  void find_left(Run* left) {
    uint16_t* column[4];
    uint32_t* link[4];
    for (int r = 0; r < 4; ++r) {
      left[r] = {column[r] = room_.left.data() + r * stride_, link[r] = room_.left_link.data() + r * stride_, 0};
    }
    const auto leave = [&](int r, uint16_t at) {
      *column[r]++ = at;
      *link[r]++ = room_.link[4 * at + r];
    };
    for (int part = 1; part < 15; ++part)
      for (uint32_t i = taken_[part]; i < there_[part]; ++i)
        for (int r = 0; r < 4; ++r)
          if (part >> r & 1) leave(r, alike(part)[i]);
    for (int k = 0; k < n_halves_; ++k) {
      const Halves& h = halves_[k];
      for (uint32_t i = 0; i < h.n; ++i) leave(__builtin_ctz(unsigned(h.part ^ 1 << h.row)), alike(h.part)[h.first + i]);
    }
    for (int r = 0; r < 4; ++r) left[r].size = uint32_t(column[r] - left[r].column);
  }

  void begin_runs(size_t g) {
    uint32_t next_other = to_.column[g], next_weight = to_.first_weights()[g];
    const KindList& list = list_of(to_.kinds);
    for (int i = 0; i < list.size; ++i) {
      const int kind = list.kind[i];
      to_.count[g * size_t(list.size) + i] = uint16_t(n_[kind]);
      other_at_[kind] = next_other;
      weight_at_[kind] = next_weight;
      next_other += n_[kind] * kSizes.columns[kind];
      next_weight += n_[kind] * kSizes.links[kind];
    }
    to_.column[g + 1] = next_other;
    if (to_.kinds != Kinds::four) to_.weight[g + 1] = next_weight;
  }

  template <size_t... I>
  void put_wholes(std::index_sequence<I...>) {
    (put_whole<int(I) + 1>(), ...);
  }

  template <int part>
  void put_whole() {
    if (whole_[part] == 0) return;
    constexpr int kind = kUses.whole[part].kind, which = kUses.whole[part].column;
    constexpr uint32_t columns = uint32_t(kKind[kind].columns());
    uint16_t* other = room_.other.data() + other_at_[kind] + which;
    uint32_t at = weight_at_[kind];
    for (uint32_t i = 0; i < whole_[part]; ++i, other += columns, at += 4) {
      const uint16_t column = alike(part)[i];
      const uint32_t* link = room_.link.data() + 4 * column;
      *other = column;
      for (uint32_t r = 0; r < 4; ++r)
        if (part >> r & 1) put_(link[r], at + r);
    }
  }

  void put_split(int part) {
    for (uint32_t i = 0; i < split_[part]; ++i) {
      const uint16_t column = alike(part)[whole_[part] + i];
      for (uint32_t r = 0; r < 4; ++r) {
        if (!(part >> r & 1)) continue;
        const auto [kind, which] = kUses.split[part][r];
        const uint32_t entry = n_[kind] - split_[part] + i;
        room_.other[other_at_[kind] + 2 * entry + uint32_t(which)] = column;
        put_(room_.link[4 * column + r], weight_at_[kind] + 4 * entry + r);
      }
    }
  }

  void put_halves(const Halves& h) {
    const auto [kind, which] = kUses.whole[1 << h.row];
    for (uint32_t i = 0; i < h.n; ++i) {
      const uint16_t column = alike(h.part)[h.first + i];
      const uint32_t entry = h.entry + i;
      room_.other[other_at_[kind] + 2 * entry + uint32_t(which)] = column;
      put_(room_.link[4 * column + h.row], weight_at_[kind] + 4 * entry + uint32_t(h.row));
    }
  }

  void put_pairs(int part) {
    const int kind = kPairs + (part == 12), first = part == 12 ? 2 : 0;
    for (uint32_t i = 0; i < n_[kind]; ++i) {
      const uint16_t column = alike(part)[whole_[part] + i];
      room_.other[other_at_[kind] + i] = column;
      for (uint32_t r = 0; r < 2; ++r) put_(room_.link[4 * column + first + r], weight_at_[kind] + 2 * i + r);
    }
  }

  // The next link of each row makes a quad of four columns; where a row has no more, the others' are single.
  void put_left(const Run& left, int r) {
    const uint32_t four = n_[kFour];
    for (uint32_t i = 0; i < four; ++i) {
      room_.other[other_at_[kFour] + 4 * i + r] = left.column[i];
      put_(left.link[i], weight_at_[kFour] + 4 * i + r);
    }
    for (uint32_t i = four; i < left.size; ++i) {
      room_.other[other_at_[kSingles + r] + i - four] = left.column[i];
      put_(left.link[i], weight_at_[kSingles + r] + i - four);
    }
  }

  const uint16_t* alike(int part) const { return room_.alike.data() + size_t(part) * stride_; }

  GroupedLinks& to_;
  const Rows& rows_;
  const int block_;
  const uint32_t unit_;
  const Put put_;
  Room& room_;
  const size_t stride_;
  // Of the group at hand: parts that there are of each sort, that are kept whole, that are taken apart, and all of these; entries
  // of each kind, and where they begin.
  uint32_t there_[16], whole_[16], split_[16], taken_[16], n_[kKinds], other_at_[kKinds], weight_at_[kKinds];
  Halves halves_[12];
  int n_halves_;
};

}  // namespace grouping
}  // namespace rewirl
