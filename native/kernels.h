// The kernels: loops over links. Each instruction set provides one table of them.
//
// Activations are feature-major, x[feature][batch], each feature's row padded to a multiple of 16 floats and aligned to
// 64 bytes, so every kernel is a loop over links with a fixed number of vector registers of batch.
// Every kernel works on a range (of outputs, of inputs, of numbers) and never on a share of a sum: any split over
// threads gives the same bits.
#pragma once
#include <cstdint>

namespace rewirl {

// Links listed by output: block row r has the links start[r] .. start[r+1], in ascending input order.
struct ByOutput {
  const uint32_t* start;
  const uint16_t* input;
  const float* weight;  // block numbers for each link
};

struct Forward {
  ByOutput links;
  ByOutput extra;  // further links of a target network; extra.start may be null
  const float* bias;
  const float* x;
  float* y;
  int64_t stride;  // floats from one feature to the next, in x and y
  int batch;
  int block;
  bool relu;
};

struct Backward {
  const uint32_t* start;  // links listed by input: input j has the links start[j] .. start[j+1]
  const uint16_t* row;    // block row of each
  const float* weight;
  const float* x;   // the layer's input; also what a ReLU before this layer gave
  const float* dy;
  float* dx;        // may be null: not wanted
  float* dw;        // may be null: not wanted
  int64_t stride;
  int batch;
  int block;
  bool relu;        // dx goes back through the ReLU that made x
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
  void (*forward)(const Forward&, int row_begin, int row_end);
  void (*backward)(const Backward&, int input_begin, int input_end);
  // dbias[i] = sum over the batch of dy[i]
  void (*row_sums)(const float* dy, int64_t stride, int batch, float* dbias, int begin, int end);
  // y += W x for one observation, over links listed by input; inputs that are 0 are skipped
  void (*act)(const Backward&, int n_in, float* y);
  // [begin, end) in floats, multiples of 16
  void (*adam)(const Adam&, int64_t begin, int64_t end);
  // target = tau * online + (1 - tau) * target; online may be null (a link that only the target has)
  void (*polyak)(float* target, const float* online, float tau, int64_t n);
  // How many blocks are not zero; their scores (sum of magnitudes) below limit go into found as (score, place) pairs,
  // at most capacity of them, n_found says how many there were.
  int64_t (*small)(const float* weight, int64_t blocks, int block, float limit, uint64_t* found, int64_t capacity,
                   int64_t* n_found);
};

// Null where the compiler or machine does not have it.
const Kernels* kernels_baseline();
const Kernels* kernels_avx2();
const Kernels* kernels_avx512();

}  // namespace rewirl
