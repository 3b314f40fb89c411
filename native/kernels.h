// The kernels: loops over links. Each instruction set provides one table of them.
//
// Activations are feature-major, x[feature][batch], each feature's row padded to a multiple of 16 floats and aligned to
// 64 bytes, so every kernel is a loop over links with a fixed number of vector registers of batch.
// Every kernel works on a range (of groups, of numbers) and never on a share of a sum: any split over threads gives the
// same bits.
#pragma once
#include <cstdint>

namespace rewirl {

// Links in groups of four rows (outputs, or inputs for the way back), in one of two orders.
//
// By patterns: a column (`other`) that has links to some of four neighbouring rows is one entry, and entries are sorted by
// pattern: which of the four rows they touch. So the load of a column's activations serves all its rows in the group, although
// the wiring is unstructured; a dense layer or one of 4×1 blocks has only pattern 15 and runs like a register-tiled matrix
// product.
//
// By rows: every link is an entry. The four rows are any that have about as many links; as many as all four have are
// stored in turn (first of row 0, first of row 1, ...), then what is left of each. For layers so sparse or so small that
// patterns would be runs of a few entries, whose ends no processor foresees.
struct Groups {
  const uint32_t* entry;   // group g has the entries entry[g] .. entry[g+1]
  const uint32_t* weight;  // and, by patterns, the weights weight[g] .. weight[g+1]
  const uint16_t* count;   // 15 per group: how many entries have the pattern kPatterns[i]; or 5: in turn, left of each row
  const uint16_t* other;   // the column of each entry
  const uint16_t* row;     // the rows of group g are row[4g] .. row[4g+3], padded to four; by patterns 4g .. 4g+3
  const float* w;          // for each entry one weight per row of its pattern, in ascending rows
  bool by_rows;
};

// Bit r stands for row r of the group. Neighbours in this order add to different rows where possible, so that their sums do
// not wait for each other.
constexpr int kPatterns[15] = {3, 12, 5, 10, 6, 9, 1, 2, 4, 8, 7, 14, 11, 13, 15};

struct Forward {
  Groups links;
  Groups extra;       // further links of a target network in the same groups; extra.entry may be null
  const float* bias;  // may be null
  const float* gate;  // may be null: the result is zeroed where gate is not positive (the way back through a ReLU)
  const float* x;
  float* y;
  int64_t stride;     // floats from one feature to the next, in x, y and gate
  int batch;
  int rows;           // outputs; the last group may have fewer than four
  bool relu;
};

struct WeightGradients {
  Groups links;
  const float* x;
  const float* dy;
  float* dw;  // in the order of links.w
  int64_t stride;
  int batch;
  int rows;
};

struct Adam {
  float *w, *m, *v;
  const float* g;
  float beta1, beta2, weight_decay;
  float step_size;   // lr / (1 - beta1^t)
  float correction;  // 1 / sqrt(1 - beta2^t)
  float eps;
};

struct Kernels {
  const char* name;
  // y = W x, and what Forward says of bias, gate and ReLU
  void (*forward)(const Forward&, int group_begin, int group_end);
  void (*weight_gradients)(const WeightGradients&, int group_begin, int group_end);
  // dbias[i] = sum over the batch of dy[i]
  void (*row_sums)(const float* dy, int64_t stride, int batch, float* dbias, int rows);
  // one observation: y = W x + bias; x, y and bias may be read and written up to a multiple of four
  void (*act)(const Groups&, const float* bias, const float* x, float* y, int groups, bool relu);
  // [begin, end) in floats, multiples of 16
  void (*adam)(const Adam&, int64_t begin, int64_t end);
  // target = tau * online + (1 - tau) * target; online may be null (links that only the target has)
  void (*polyak)(float* target, const float* online, float tau, int64_t n);
  // How many blocks are not zero. Those that score (sum of magnitudes) below limit, but are not zero, go into found as
  // score bits << 32 | index; n_found says how many.
  int64_t (*small)(const float* w, int64_t blocks, int block, float limit, uint64_t* found, int64_t* n_found);
};

const Kernels* kernels_baseline();
const Kernels* kernels_avx2();
const Kernels* kernels_avx512();

}  // namespace rewirl
