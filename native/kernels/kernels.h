// The kernels: loops over links. Each instruction set provides one table of them.
//
// Activations are feature-major, x[feature][batch]. Each feature's row is padded to a multiple of 16 floats and aligned to
// 64 bytes, so every kernel is a loop over links that keeps a fixed number of vectors of the batch in registers.
// A kernel works on a range of groups or numbers and never splits a sum, so any number of threads gives the same bits.
#pragma once
#include <cstdint>

namespace rewirl {

// Links are stored in groups of four rows (rows are outputs; in the backward pass, inputs). Most links of a group are packed into
// quads: one link of each row, with the four weights side by side. The pattern of a quad says how many columns it loads:
// - one column in a dense layer or in 4×1 blocks: the kernel runs like a register-tiled matrix product;
// - two columns in unstructured wiring, if they complement each other: one has links to some of the rows, one to the others;
// - four columns for any other four links.
//
// The rows of a group have similar numbers of links, so that few links are left over. Entries of the same pattern form one run,
// because the branch at the end of a run is mispredicted.
struct Pattern {
  int8_t column[4];  // which of the entry's columns each row takes; -1: the row has no link
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
  // Index of row r's weight among the weights of the entry.
  constexpr int offset(int r) const {
    int before = 0;
    for (int i = 0; i < r; ++i) before += has(i);
    return before;
  }
};
// Named by the rows that share a column: all rows, one and the three others, two and two, or none; then incomplete entries.
enum PatternName : int8_t {
  kAllRows,
  kRow0Others, kRow1Others, kRow2Others, kRow3Others,
  kRows01Rows23, kRows02Rows13, kRows03Rows12,
  kFourColumns,
  kPair01, kPair23,
  kSingle0, kSingle1, kSingle2, kSingle3,
  kPatterns,  // number of patterns
};
constexpr Pattern kPattern[kPatterns] = {
    {0, 0, 0, 0},
    {0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0},
    {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 0},
    {0, 1, 2, 3},
    {0, 0, -1, -1}, {-1, -1, 0, 0},
    {0, -1, -1, -1}, {-1, 0, -1, -1}, {-1, -1, 0, -1}, {-1, -1, -1, 0},
};
// The same as tables, for code that knows the pattern only at run time.
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

// The patterns that a layer may have, in the order of their runs.
enum class PatternSet : uint8_t {
  blocks,  // blocks or dense
  two,     // all quads and single links
  four,    // quads of four columns and single links: very sparse or small layers have few other quads
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
  const uint16_t* count;   // per group: the number of entries of each pattern
  const uint16_t* other;
  const uint16_t* row;     // the rows of group g are row[4g] .. row[4g+3], padded to four
  const float* w;          // per entry: one weight for each of its rows, in the order of the group's rows
  PatternSet patterns;
  bool all;                // dense with complete groups only: quads of one column, in order
};

struct Forward {
  Groups links;
  Groups extra;       // links that only the target network has, in the same groups, as blocks or quads of four columns; w may be null
  const float* bias;  // may be null
  const float* gate;  // may be null: the result is zeroed where gate is not positive (the backward pass through a ReLU)
  const float* x;
  float* y;
  int64_t stride;     // floats from one feature to the next, in x, y and gate
  int batch;
  int rows;           // outputs; the last group may have fewer than four
  bool relu;
};

// The gradient of a layer's inputs, dx = Wᵀ dy, for blocks and dense layers. Unstructured layers use the forward kernel on links
// grouped by input instead: here each sum would be read and written for every second link.
struct InputGradients {
  Groups links;
  const float* dy;
  const float* gate;  // may be null: the result is zeroed where gate is not positive (the backward pass through a ReLU)
  float* dx;
  float* sums;        // scratch of the size of dx; not used by dense layers
  int64_t stride;     // floats from one feature to the next, in dy, gate and dx
  int batch;
  int rows;           // outputs
  int columns;        // inputs
  int begin, end;     // the inputs whose gradients are computed
};

struct WeightGradients {
  Groups links;
  const float* x;
  const float* samples;  // x as by_samples writes it; needed by dense layers only
  const float* dy;
  float* dw;  // in the order of links.w
  int64_t stride;
  int batch;
  int columns;  // inputs
};

// Both gradients of a layer whose links by inputs are of PatternSet::four.
struct BothGradients {
  Groups links;       // by inputs
  const float *x, *dy;
  float* dx;
  float* dw;          // input by input: group by group, and in each of its four rows the quads' links, then the single ones
  int64_t stride;     // floats from one feature to the next, in x, dy and dx
  int batch;
  int rows;           // inputs; the last group may have fewer than four
  bool gate;          // dx is zeroed where x is not positive
};

// Layer normalisation: every sample (a column of z) to mean 0 and variance 1, then a ReLU.
constexpr float kNormEpsilon = 1e-5f;  // added to the variance, as PyTorch does
struct Normalise {
  const float* z;
  float* normal;   // may be null: the normalised samples, for the backward pass
  float* y;        // max(0, normalised); may be z
  float* scale;    // may be null: for each sample 1 / standard deviation
  int64_t stride;  // floats from one feature to the next
  int rows;
};
struct ThroughNormalise {
  float* d;  // the gradient at the normalised samples, which becomes that before normalisation
  const float *normal, *scale;
  int64_t stride;
  int rows;
};

// Mean and variance of each row of a batch.
struct Moments {
  const float* x;
  float *mean, *variance;
  int64_t stride;
  int batch;
};

// A layer whose inputs are normalised to a x + c, as a layer on x itself: weights W a and biases b + W c.
struct Fold {
  Groups links;              // w: W
  const float *bias, *a, *c;
  float *weights, *biases;   // results
  int rows;                  // outputs
};
// And back: dw, the gradient of W a, becomes that of W. For each input, with g = Wᵀ dy the gradient at the normalised input, adds
// Σ g and Σ g x over the batch to plain and along.
struct ThroughFold {
  Groups links;         // w: W
  const float* db;      // Σ dy
  const float *a, *c;
  float *dw, *plain, *along;
};
// The gradient at a layer's inputs, which were normalised or not: d, or the product w dy where the layer has one output, becomes
// a d + e + f x; with gate zeroed where x is not positive.
struct FinishGradients {
  float* d;
  const float *w, *dy;      // may be null: d is read
  const uint16_t* row;      // with w: its rows
  const float* x;
  const float *a, *e, *f;   // may be null: d stays
  float* sums;              // may be null: the sums of the rows
  int64_t stride;
  int batch;
  bool gate;
};

struct Adam {
  float *w, *m, *v;
  const float* g;
  float beta1, beta2;
  float l2;          // times the weight, added to its gradient
  float keep;        // decoupled weight decay: 1 - lr * decay
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

constexpr int64_t kNormals = 64;  // numbers per call of normals

struct Kernels {
  const char* name;
  int width;  // numbers in a vector
  int quads;  // quads that weight_gradients processes at once; quads of two columns best come in multiples of it
  // y = W x, then bias, gate and ReLU as in Forward
  void (*forward)(const Forward&, int group_begin, int group_end);
  void (*weight_gradients)(const WeightGradients&, int group_begin, int group_end);
  // x sample by sample, for weight_gradients; writes up to room_by_samples(batch, columns) numbers
  void (*by_samples)(const float* x, int64_t stride, int batch, int columns, float* to);
  // on a part of the batch, in vectors of `width` numbers
  void (*input_gradients)(const InputGradients&, int begin, int end);
  // null where vectors are too short, or registers too few, for it to be faster than one after the other
  void (*both_gradients)(const BothGradients&, int group_begin, int group_end);
  // dbias[i] = sum over the batch of dy[i]
  void (*row_sums)(const float* dy, int64_t stride, int batch, float* dbias, int rows);
  // one observation: y = W x + bias; x, y and bias may be read and written up to a multiple of four
  void (*act)(const Groups&, const float* bias, const float* x, float* y, int groups, bool relu);
  // on a part of the batch, in vectors of `width` numbers
  void (*normalise)(const Normalise&, int begin, int end);
  void (*through_normalise)(const ThroughNormalise&, int begin, int end);
  // rows begin .. end
  void (*moments)(const Moments&, int begin, int end);
  void (*fold)(const Fold&, int group_begin, int group_end);
  // one thread: different rows have links to the same inputs
  void (*through_fold)(const ThroughFold&, int groups);
  void (*finish_gradients)(const FinishGradients&, int begin, int end);
  // [begin, end) in floats, multiples of 16
  void (*adam)(const Adam&, int64_t begin, int64_t end);
  // target = tau * online + (1 - tau) * target; online may be null (links that only the target has)
  void (*polyak)(float* target, const float* online, float tau, int64_t n);
  // How many blocks are not zero. Those that score (sum of magnitudes) below limit, but are not zero, go into found as
  // score bits << 32 | index; n_found says how many.
  int64_t (*small)(const float* w, int64_t blocks, int block, float limit, uint64_t* found, int64_t* n_found);
  // kNormals numbers from N(0, 1), made from half as many of 64 random bits
  void (*normals)(const uint64_t* bits, float* out);
  // As in losses.h; tanh of n numbers, rounded up to whole vectors
  void (*tanh)(const float* x, float* out, int64_t n);
  void (*squash)(const Squash&);
  void (*through_squash)(const Squash&, const float* da1, const float* da2, float alpha_per_sample, float* d_out);
};

const Kernels* kernels_baseline();
const Kernels* kernels_avx2();
const Kernels* kernels_avx512();

}  // namespace rewirl
