// The kernels: loops over links. Each instruction set provides one table of them.
//
// Activations are feature-major, x[feature][batch], each feature's row padded to a multiple of 16 floats and aligned to
// 64 bytes, so every kernel is a loop over links with a fixed number of vector registers of batch.
// Every kernel works on a range (of groups, of numbers) and never on a share of a sum: any split over threads gives the
// same bits.
#pragma once
#include <cstdint>

namespace rewirl {

// Links in groups of four rows (outputs, or inputs for the backward pass). Most of them stand in quads: one link of each row, four
// weights side by side. What they differ in is how many columns (`other`) they load: a dense layer or one of 4×1 blocks has one
// per quad and runs like a register-tiled matrix product; of an unstructured wiring two columns that complement each other,
// one with links to some of the rows and one with links to the others, make a quad; any four links make one of four columns.
//
// The rows of a group have about as many links, so that few are left over. Each pattern of entry is one run, since a run ends in a
// branch that the processor does not foresee.
struct Pattern {
  int8_t column[4];  // which of the entry's columns each row takes; -1: it has no link here
  constexpr int columns() const {
    int most = -1;
    for (int r = 0; r < 4; ++r) most = column[r] > most ? column[r] : most;
    return most + 1;
  }
  constexpr int links() const { return offset(4); }
  constexpr bool has(int r) const { return column[r] >= 0; }
  constexpr int rows_of(int c) const {
    int rows = 0;
    for (int r = 0; r < 4; ++r) rows += column[r] == c;
    return rows;
  }
  // Where row r has its weight among the entry's.
  constexpr int offset(int r) const {
    int before = 0;
    for (int i = 0; i < r; ++i) before += has(i);
    return before;
  }
};
// By the rows that share a column: `all` of them, one against the three `others`, two against two, or none. Then what is left over.
enum PatternName : int8_t {
  kAllRows,
  kRow0Others, kRow1Others, kRow2Others, kRow3Others,
  kRows01Rows23, kRows02Rows13, kRows03Rows12,
  kFourColumns,
  kPair01, kPair23,
  kSingle0, kSingle1, kSingle2, kSingle3,
  kPatterns,  // how many there are
};
constexpr Pattern kPattern[kPatterns] = {
    {0, 0, 0, 0},
    {0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0},
    {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 0},
    {0, 1, 2, 3},
    {0, 0, -1, -1}, {-1, -1, 0, 0},
    {0, -1, -1, -1}, {-1, 0, -1, -1}, {-1, -1, 0, -1}, {-1, -1, -1, 0},
};
// The same looked up, for who learns the pattern only at run time.
struct PatternSizes {
  uint8_t columns[kPatterns] = {}, links[kPatterns] = {}, offset[kPatterns][4] = {};
  constexpr PatternSizes() {
    for (int i = 0; i < kPatterns; ++i) {
      columns[i] = uint8_t(kPattern[i].columns());
      links[i] = uint8_t(kPattern[i].links());
      for (int r = 0; r < 4; ++r) offset[i][r] = uint8_t(kPattern[i].offset(r));
    }
  }
};
constexpr PatternSizes kSizes;

// Which patterns a layer can have, in the order of their runs: nobody looks for others.
enum class PatternSet : uint8_t {
  blocks,  // links in blocks, or all of them
  two,     // quads of all sorts and singles
  four,    // quads of four columns and singles, for layers so sparse or so small that there are few others
};
struct PatternList {
  int size;
  PatternName pattern[kPatterns];
};
constexpr PatternList kLists[] = {
    {8, {kAllRows, kRows01Rows23, kPair01, kPair23, kSingle0, kSingle1, kSingle2, kSingle3}},
    {13, {kAllRows, kRow0Others, kRow1Others, kRow2Others, kRow3Others, kRows01Rows23, kRows02Rows13, kRows03Rows12, kFourColumns,
          kSingle0, kSingle1, kSingle2, kSingle3}},
    {5, {kFourColumns, kSingle0, kSingle1, kSingle2, kSingle3}},
};
constexpr const PatternList& list_of(PatternSet set) { return kLists[int(set)]; }

struct Groups {
  const uint32_t* column;  // group g has the columns other[column[g]] .. other[column[g+1]]
  const uint32_t* weight;  // and the weights w[weight[g]] .. w[weight[g+1]]
  const uint16_t* count;   // for each group how many entries it has of each of the patterns
  const uint16_t* other;
  const uint16_t* row;     // the rows of group g are row[4g] .. row[4g+3], padded to four
  const float* w;          // for each entry one weight per row that it has, in the order of the group's rows
  PatternSet patterns;
  bool all;                // every link is there, and there are only whole groups: quads of one column, all in their order
};

struct Forward {
  Groups links;
  Groups extra;       // further links of a target network in the same groups, in blocks like these or by four; w may be null
  const float* bias;  // may be null
  const float* gate;  // may be null: the result is zeroed where gate is not positive (the backward pass through a ReLU)
  const float* x;
  float* y;
  int64_t stride;     // floats from one feature to the next, in x, y and gate
  int batch;
  int rows;           // outputs; the last group may have fewer than four
  bool relu;
};

// The gradient of a layer's inputs, dx = Wᵀ dy, where links are in blocks (or all there). Other layers go forward through their links
// by inputs: unstructured, each sum would be read and written for every second link.
struct InputGradients {
  Groups links;
  const float* dy;
  const float* gate;  // may be null: the result is zeroed where gate is not positive (the backward pass through a ReLU)
  float* dx;
  float* sums;        // room for as many numbers as dx has, unless all links are there; what was in it is lost
  int64_t stride;     // floats from one feature to the next, in dy, gate and dx
  int batch;
  int rows;           // outputs
  int columns;        // inputs
  int begin, end;     // those of the inputs that are wanted
};

struct WeightGradients {
  Groups links;
  const float* x;
  const float* samples;  // x as by_samples writes it; wanted where all links are there, and only there
  const float* dy;
  float* dw;  // in the order of links.w
  int64_t stride;
  int batch;
  int columns;  // inputs
};

// Layer normalisation: every sample (a column of z) to mean 0 and variance 1, then a ReLU.
constexpr float kNormEpsilon = 1e-5f;  // added to the variance, as PyTorch does
struct Normalise {
  const float* z;
  float* normal;   // may be null: the normalised samples, for the backward pass
  float* y;        // max(0, normalised); may be z
  float* scale;    // may be null: for each sample what its deviations from the mean were multiplied with
  int64_t stride;  // floats from one feature to the next
  int rows;
};
struct ThroughNormalise {
  float* d;  // the gradient at the normalised samples, which becomes that before normalisation
  const float *normal, *scale;
  int64_t stride;
  int rows;
};

struct Adam {
  float *w, *m, *v;
  const float* g;
  float beta1, beta2;
  float l2;          // times the weight, added to its gradient
  float keep;        // what decoupled weight decay leaves of a weight: 1 - lr * decay
  float step_size;   // lr / (1 - beta1^t)
  float correction;  // 1 / sqrt(1 - beta2^t)
  float eps;
};

// Actions of a tanh-squashed Gaussian, all n_act × batch but out, which has the means and below them the logarithms of std, and
// log_prob, which is one row.
struct Squash {
  const float *out, *noise;
  float *action, *std, *log_prob;
  int64_t stride;
  int n_act, batch;
};

constexpr int64_t room_by_samples(int64_t batch, int64_t columns) { return (batch + 3) / 4 * 4 * ((columns + 15) / 16 * 16); }

constexpr int64_t kNormals = 64;  // numbers that normals makes at a time

struct Kernels {
  const char* name;
  int width;  // numbers in a vector
  int quads;  // that weight_gradients takes at once: best if those of two columns come in multiples of it
  // y = W x, and what Forward says of bias, gate and ReLU
  void (*forward)(const Forward&, int group_begin, int group_end);
  void (*weight_gradients)(const WeightGradients&, int group_begin, int group_end);
  // x sample by sample, for the former; it takes up to room_by_samples(batch, columns) numbers
  void (*by_samples)(const float* x, int64_t stride, int batch, int columns, float* to);
  // for some of the batch, in vectors of `width` numbers
  void (*input_gradients)(const InputGradients&, int begin, int end);
  // dbias[i] = sum over the batch of dy[i]
  void (*row_sums)(const float* dy, int64_t stride, int batch, float* dbias, int rows);
  // one observation: y = W x + bias; x, y and bias may be read and written up to a multiple of four
  void (*act)(const Groups&, const float* bias, const float* x, float* y, int groups, bool relu);
  // for some of the batch, in vectors of `width` numbers
  void (*normalise)(const Normalise&, int begin, int end);
  void (*through_normalise)(const ThroughNormalise&, int begin, int end);
  // [begin, end) in floats, multiples of 16
  void (*adam)(const Adam&, int64_t begin, int64_t end);
  // target = tau * online + (1 - tau) * target; online may be null (links that only the target has)
  void (*polyak)(float* target, const float* online, float tau, int64_t n);
  // How many blocks are not zero. Those that score (sum of magnitudes) below limit, but are not zero, go into found as
  // score bits << 32 | index; n_found says how many.
  int64_t (*small)(const float* w, int64_t blocks, int block, float limit, uint64_t* found, int64_t* n_found);
  // kNormals numbers from N(0, 1), made from half as many of 64 random bits
  void (*normals)(const uint64_t* bits, float* out);
  // What losses.h says of them; tanh of n numbers, up to whole vectors
  void (*tanh)(const float* x, float* out, int64_t n);
  void (*squash)(const Squash&);
  void (*through_squash)(const Squash&, const float* da1, const float* da2, float alpha_per_sample, float* d_out);
};

const Kernels* kernels_baseline();
const Kernels* kernels_avx2();
const Kernels* kernels_avx512();

}  // namespace rewirl
