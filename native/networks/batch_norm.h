// Batch renormalisation (Ioffe 2017) of the inputs of every layer of a network.
//
// In training a batch is normalised by its own mean and standard deviation, then corrected towards the running ones: with μ, σ of
// the batch and m, s the running ones, (x - μ) / σ · r + d with r = σ / s and d = (μ - m) / s, both clipped, and constants for the
// backward pass. Otherwise the running ones are used. Learned γ and β follow.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "networks/batch.h"
#include "networks/wiring.h"

namespace rewirl {

struct BatchNormOptions {
  double momentum;     // weight of the old running statistics
  float eps;           // added to variances
  float r_max, d_max;  // r is clipped to 1/r_max .. r_max, d to -d_max .. d_max
  int64_t warmup;      // batches that are normalised without r and d
};

// A layer of the network, as the normalisation of its inputs sees it.
struct NormalisedLayer {
  const GroupedLinks& links;
  int n_in, n_out;
  int64_t weight_at, bias_at;  // in the flat arrays
  int64_t scale_at() const { return bias_at + n_out; }         // γ, then β
  int64_t shift_at() const { return scale_at() + n_in; }
};

class BatchNorm {
 public:
  BatchNorm(const BatchNormOptions& options, const std::vector<int>& inputs, int64_t size);

  // Prepares a layer for inputs x, by their own statistics, which change the running ones.
  void train(size_t index, const NormalisedLayer& layer, const float* flat, const Batch& x);
  // Prepares a layer for any inputs, by the running statistics.
  void evaluate(size_t index, const NormalisedLayer& layer, const float* flat);

  // The flat arrays of a network without normalisation that gives the same outputs, for the layers as they were prepared last.
  const float* folded() const { return folded_.get(); }
  // Turns the gradients at folded weights into those at weights; writes those of γ and β.
  void weight_gradients(size_t index, const NormalisedLayer& layer, const float* flat, float* gradients, int64_t batch);
  // What turns the gradients at normalised inputs into those at the inputs. After training on a batch, weight_gradients comes first.
  void input_gradients(size_t index, FinishGradients& args);

  // A layer's running statistics, and the a and c of its last preparation.
  float* mean(size_t index) const { return inputs_[index].mean; }
  float* variance(size_t index) const { return inputs_[index].variance; }
  const float* a(size_t index) const { return inputs_[index].a; }
  const float* c(size_t index) const { return inputs_[index].c; }
  int64_t bytes() const;

  int64_t steps = 0;  // batches that changed the running statistics
  enum class Prepared { no, by_batch, by_running } prepared = Prepared::no;  // all layers

 private:
  // Normalised inputs are p x + q before γ and β, a x + c after.
  struct Inputs {
    std::shared_ptr<float> memory;
    int64_t room;
    float *mean, *variance, *batch_mean, *scale, *p, *q, *a, *c, *plain, *along, *e, *f;
    bool by_batch = false;
  };
  void fold(Inputs& in, const NormalisedLayer& layer, const float* flat);

  BatchNormOptions options_;
  std::vector<Inputs> inputs_;
  std::shared_ptr<float> folded_;
  int64_t size_;
};

}  // namespace rewirl
