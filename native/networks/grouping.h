// Packs links into groups of four rows and quads, so that the kernels need few loads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "networks/wiring.h"

namespace rewirl {

// Links row by row, columns ascending. `link` is the caller's number of each link.
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

// A part is the set of a group's links that share a column, as a bit mask of rows. The rows that use column `which` of an entry:
constexpr int rows_of(int pattern, int column) {
  int rows = 0;
  for (int r = 0; r < 4; ++r) rows |= (kPattern[pattern].column[r] == column) << r;
  return rows;
}

// For each part the parts that contain all of its rows: itself first, then larger ones.
struct Holders {
  int8_t size[16] = {}, part[16][8] = {};
  constexpr Holders() {
    for (int rows = 1; rows < 16; ++rows)
      for (int more = 0; more < 4; ++more)
        for (int other = 1; other < 16; ++other) {
          int further = 0;
          for (int r = 0; r < 4; ++r) further += (other & ~rows) >> r & 1;
          if ((other & rows) == rows && further == more) part[rows][size[rows]++] = int8_t(other);
        }
  }
};
constexpr Holders kHolders;

// Some columns of a part: those from `first` in its list.
struct Segment {
  int part;
  uint32_t first, n;
};
// Rows of theirs that become column `which` of the entries of a pattern, starting at `entry`.
struct Use {
  int rows;
  Segment from;
  int pattern, which;
  uint32_t entry;
};

// Links of one row.
struct Run {
  const uint16_t* column;
  const uint32_t* link;
  uint32_t size;
};

// Memory that is reused from group to group.
struct Room {
  std::vector<uint8_t> rows;       // for each column, the rows of its part
  std::vector<uint32_t> link;      // and its links, one for each row
  std::vector<uint16_t> alike;     // the columns of each part, ascending
  std::vector<Segment> free[16];   // per row: links that are in no quad yet
  std::vector<Use> uses;
  std::vector<uint16_t> left;      // columns of links that are in no quad of one or two, row by row
  std::vector<uint32_t> left_link;
  std::vector<uint16_t> other;
};

// Fills `to`, whose rows and patterns are chosen, and calls put(link, slot) for every link. Quads of one or two columns come in
// multiples of `unit`, but in blocks.
// No branch in the loops over links depends on the wiring: mispredictions would make this several times slower.
template <class Put>
class Grouping {
 public:
  Grouping(GroupedLinks& to, const Rows& rows, uint32_t unit, Room& room, Put put)
      : to_(to), rows_(rows), unit_(unit), put_(put), room_(room), stride_(size_t(rows.columns) + 8) {
    room_.rows.assign(stride_, 0);
    room_.link.resize(4 * stride_);
    room_.alike.resize(16 * stride_);
    room_.left.resize(4 * stride_);
    room_.left_link.resize(4 * stride_);
    room_.other.resize(rows.links());
    const size_t groups = to.row.size() / 4;
    to.column.assign(groups + 1, 0);
    to.weight.assign(to.patterns == PatternSet::four ? 0 : groups + 1, 0);
    to.count.assign(groups * size_t(list_of(to.patterns).size), 0);
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
    std::fill_n(n_, kPatterns, 0);
    room_.uses.clear();
    if (to_.patterns != PatternSet::four) {
      find_parts(left);
      if (to_.patterns == PatternSet::blocks)
        choose_blocks();
      else
        choose_quads(std::min({left[0].size, left[1].size, left[2].size, left[3].size}));
      find_left(left);
    }
    n_[kFourColumns] = std::min({left[0].size, left[1].size, left[2].size, left[3].size});
    for (int r = 0; r < 4; ++r) n_[kSingle0 + r] = left[r].size - n_[kFourColumns];
    begin_runs(g);
    for (const Use& use : room_.uses) put(use, std::make_index_sequence<15>{});
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
    for (int part = 1; part < 16; ++part) {
      room_.free[part].clear();
      if (there_[part] > 0) room_.free[part].push_back({part, 0, there_[part]});
    }
  }

  // Blocks or dense: whole columns, then halves. Other links of a last group with fewer rows become single.
  void choose_blocks() {
    n_[kAllRows] = there_[rows_of(kAllRows, 0)];
    take(kAllRows, 0);
    n_[kRows01Rows23] = std::min(available(rows_of(kRows01Rows23, 0)), available(rows_of(kRows01Rows23, 1)));
    for (int which : {0, 1}) take(kRows01Rows23, which);
    for (const int pattern : {kPair01, kPair23}) {
      n_[pattern] = available(rows_of(pattern, 0));
      take(pattern, 0);
    }
  }

  // Quads of one column, then of two: three rows and one, two and two. Their number is limited, since every quad has a link of each
  // row; so the single rows, which are found last, are enough for all that three others wait for.
  void choose_quads(uint32_t most) {
    const auto choose = [&](int pattern, uint32_t there) { most -= n_[pattern] = std::min(there, most) / unit_ * unit_; };
    choose(kAllRows, there_[rows_of(kAllRows, 0)]);
    take(kAllRows, 0);
    for (const int pattern : {kRow0Others, kRow1Others, kRow2Others, kRow3Others}) {
      choose(pattern, available(rows_of(pattern, 1)));
      take(pattern, 1);
    }
    for (const int pattern : {kRows01Rows23, kRows02Rows13, kRows03Rows12}) {
      choose(pattern, std::min(available(rows_of(pattern, 0)), available(rows_of(pattern, 1))));
      for (int which : {0, 1}) take(pattern, which);
    }
    for (const int pattern : {kRow0Others, kRow1Others, kRow2Others, kRow3Others}) take(pattern, 0);
  }

  // Parts that contain these rows.
  uint32_t available(int rows) const {
    uint32_t n = 0;
    for (int i = 0; i < kHolders.size[rows]; ++i) n += there_[kHolders.part[rows][i]];
    return n;
  }

  // A column for each entry of a pattern: from parts with exactly its rows, then from larger ones, whose other rows become a part.
  void take(int pattern, int which) {
    const int rows = rows_of(pattern, which);
    uint32_t entry = 0;
    for (int i = 0; i < kHolders.size[rows]; ++i) {
      const int holder = kHolders.part[rows][i];
      auto& free = room_.free[holder];
      while (entry < n_[pattern] && !free.empty()) {
        const Segment last = free.back();
        const uint32_t n = std::min(last.n, n_[pattern] - entry);
        free.back().n -= n;
        if (last.n == n) free.pop_back();
        const Segment taken{last.part, last.first + last.n - n, n};
        room_.uses.push_back({rows, taken, pattern, which, entry});
        there_[holder] -= n;
        entry += n;
        if (holder == rows) continue;
        room_.free[holder ^ rows].push_back(taken);
        there_[holder ^ rows] += n;
      }
    }
  }

  // Links that are in no quad so far, row by row.
  void find_left(Run* left) {
    for (int r = 0; r < 4; ++r) {
      uint16_t* column = room_.left.data() + r * stride_;
      uint32_t* link = room_.left_link.data() + r * stride_;
      left[r] = {column, link, 0};
      for (int rows = 1; rows < 16; ++rows) {
        if (!(rows >> r & 1)) continue;
        for (const Segment& some : room_.free[rows])
          for (uint32_t i = 0; i < some.n; ++i) {
            const uint16_t at = alike(some.part)[some.first + i];
            *column++ = at;
            *link++ = room_.link[4 * at + r];
          }
      }
      left[r].size = uint32_t(column - left[r].column);
    }
  }

  void begin_runs(size_t g) {
    uint32_t next_other = to_.column[g], next_weight = to_.first_weights()[g];
    const PatternList& list = list_of(to_.patterns);
    for (int i = 0; i < list.size; ++i) {
      const int pattern = list.pattern[i];
      to_.count[g * size_t(list.size) + i] = uint16_t(n_[pattern]);
      other_at_[pattern] = next_other;
      weight_at_[pattern] = next_weight;
      next_other += n_[pattern] * kSizes.columns[pattern];
      next_weight += n_[pattern] * kSizes.links[pattern];
    }
    to_.column[g + 1] = next_other;
    if (to_.patterns != PatternSet::four) to_.weight[g + 1] = next_weight;
  }

  template <size_t... I>
  void put(const Use& use, std::index_sequence<I...>) {
    constexpr void (Grouping::*put_of[])(const Use&) = {&Grouping::template put_rows<int(I) + 1>...};
    (this->*put_of[use.rows - 1])(use);
  }

  template <int rows>
  void put_rows(const Use& use) {
    const uint32_t columns = kSizes.columns[use.pattern], links = kSizes.links[use.pattern];
    uint16_t* other = room_.other.data() + other_at_[use.pattern] + columns * use.entry + uint32_t(use.which);
    const uint16_t* from = alike(use.from.part) + use.from.first;
    uint32_t at[4];
    for (int r = 0; r < 4; ++r) at[r] = weight_at_[use.pattern] + links * use.entry + kSizes.offset[use.pattern][r];
    for (uint32_t i = 0; i < use.from.n; ++i, other += columns) {
      const uint32_t* link = room_.link.data() + 4 * from[i];
      *other = from[i];
      for (int r = 0; r < 4; ++r)
        if (rows >> r & 1) put_(link[r], at[r] + i * links);
    }
  }

  // The next links of all rows make a quad of four columns; once a row has none left, the links of the others are single.
  void put_left(const Run& left, int r) {
    const uint32_t four = n_[kFourColumns];
    for (uint32_t i = 0; i < four; ++i) {
      room_.other[other_at_[kFourColumns] + 4 * i + r] = left.column[i];
      put_(left.link[i], weight_at_[kFourColumns] + 4 * i + r);
    }
    for (uint32_t i = four; i < left.size; ++i) {
      room_.other[other_at_[kSingle0 + r] + i - four] = left.column[i];
      put_(left.link[i], weight_at_[kSingle0 + r] + i - four);
    }
  }

  const uint16_t* alike(int part) const { return room_.alike.data() + size_t(part) * stride_; }

  GroupedLinks& to_;
  const Rows& rows_;
  const uint32_t unit_;
  const Put put_;
  Room& room_;
  const size_t stride_;
  // Of the current group: columns of each part that are in no quad; entries of each pattern, and where they begin.
  uint32_t there_[16], n_[kPatterns], other_at_[kPatterns], weight_at_[kPatterns];
};

}  // namespace grouping
}  // namespace rewirl
