// A multi-layer perceptron that stores links only.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "networks/batch.h"
#include "networks/batch_norm.h"
#include "networks/wiring.h"

namespace rewirl {

class Target;
struct Workspace;

// A layer's links grouped by output: the order of weights, gradients and moments in the network's flat arrays. Unstructured layers
// also have their links grouped by input, with a copy of the weights in that order, for the gradient of the layer's inputs.
struct Layer : GroupedLayer {
  // The inputs of a network's first layer are not reordered, since gradients may be requested for a range of them.
  Layer(const Shape& shape, const int64_t* positions, int64_t n_positions, bool first);

  // Checks the positions of the order and assigns slots to them.
  void group(ByPosition& order, GroupedLayer& to, WiringRoom& room) const;
  // Exchanges links with another layer.
  void wire(GroupedLayer& links) noexcept;
  // Cached in the workspace until a few other layers have been read.
  const ByPosition& order(Workspace& work) const;
  // y = W x + bias, with weights in the order of `outputs`; plus the `extra` links of a target, if any.
  void forward(const float* weights, const float* bias, const Groups& extra, const Batch& x, bool relu, const Batch& y) const;
  // dx = Wᵀ dy for the inputs begin .. end, zeroed where gate, if there is one, is not positive.
  void input_gradients(const float* flat, const Batch& dy, const Batch* gate, int begin, int end, const Batch& dx,
                       Workspace& work);
  // The same for all inputs x, and the gradients of the weights, in one pass: for layers that are very sparse.
  void both_gradients(const Kernels& use, const float* flat, const Batch& x, const Batch& dy, bool gate, const Batch& dx,
                      float* flat_gradients, Workspace& work);
  bool very_sparse() const;
  bool one_dense_output() const;
  // The weights in the order of the backward pass. Copied after a change, but not before they are needed: then they are in the caches.
  const float* weights_by_inputs(const float* flat);
  int64_t links() const { return outputs.links(); }
  int64_t blocks() const { return links() / shape.block; }
  int64_t index_bytes() const { return outputs.bytes() + inputs.bytes() + int64_t(slot.size()) * 4; }

  Shape shape;
  bool first;
  std::shared_ptr<float> back_weights;  // the weights by inputs
  bool by_inputs_now = false;           // whether the copy is up to date
  int64_t weight_at = 0, bias_at = 0;   // where this layer begins in the flat arrays
  uint64_t wiring = 0;                  // unique over all wirings of all layers
};

struct AdamOptions {
  float lr, beta1, beta2, eps;
  float weight_decay;
  bool decoupled;  // the decay shrinks weights (AdamW), and is not added to gradients (L2)
  float sparse_rate;  // weights of a layer with a share p of all links learn at lr / p^sparse_rate
};

// Sums over the batch run over the padding too, where a forward that saw NaN may have left NaN.
void clear_padding(const Batch& x);

class Network {
 public:
  // With layer_norm every hidden layer's outputs are normalised, sample by sample, before their ReLU. With batch_norm the inputs of
  // every layer are, feature by feature; behind its biases each layer then has γ and β in the flat arrays.
  explicit Network(std::vector<Layer> layers, bool layer_norm = false, const BatchNormOptions* batch_norm = nullptr);

  // The output for a batch; keeps what backward needs. The result lives in the network and is overwritten by the next call.
  // With batch normalisation, training uses the statistics of the batch and updates the running ones.
  Batch forward(const Batch& x, bool training = false);
  // Gradients of the loss whose gradient with respect to the last output is dy: of the weights into gradients(), and of the
  // input features begin .. end as the result (an empty batch when begin == end).
  Batch backward(const Batch& dy, bool weights, int64_t begin, int64_t end);
  void step(const AdamOptions& options);
  // One observation, n_in floats, to n_out floats.
  void act(const float* x, float* y);

  // A layer loses the links at some positions and gets as many at others. Links that stay keep weight and moments; new ones start
  // at zero, with these second moments, one for each link that grows, or null for zeros. Targets follow.
  void rewire(int64_t layer, const int64_t* dropped, int64_t n_dropped, const int64_t* grown, int64_t n_grown,
              const float* second_moments);
  void set_parameters(const float* values);
  // With batch normalisation: the running statistics of a layer's inputs.
  void set_statistics(int64_t layer, const float* mean, const float* variance);
  BatchNorm* norm() const { return norm_.get(); }
  // The flat arrays of a network without batch normalisation that gives the same outputs as this one outside of training.
  std::vector<float> folded();
  // A layer's positions, and in their order for each of its links the slot in the flat arrays, or the weight.
  void by_position(int64_t layer, int64_t* positions, int64_t* slots) const;
  void weights_by_position(int64_t layer, int64_t* positions, float* weights) const;

  const std::vector<Layer>& layers() const { return layers_; }
  bool layer_norm() const { return layer_norm_; }
  const Layer& layer(int64_t index) const;
  // Whether the next forward overwrites this batch.
  bool overwrites(const Batch& batch) const;
  int64_t size() const { return size_; }
  float* parameters() { return w_.get(); }
  float* gradients() { return g_.get(); }
  float* first_moments() { return m_.get(); }
  float* second_moments() { return v_.get(); }
  int64_t steps = 0;  // of Adam, for its bias correction

  // What the last forward and backward saw: a layer's input, and, until any network goes forward as a target or backward,
  // the loss's gradient at its output.
  Batch layer_input(int64_t index) const;
  Batch layer_delta(int64_t index) const;
  // Of the same batch: the gradient at every position of a hidden layer that belongs to its inputs begin .. end, as rows of n_out.
  void dense_gradient(int64_t index, int64_t begin, int64_t end, float* out) const;
  std::map<std::string, int64_t> bytes() const;

 private:
  friend class Target;
  void make_room(const Batch& x);
  void weights_changed();
  NormalisedLayer normalised(size_t layer) const;
  const float* evaluated();

  std::vector<Layer> layers_;
  bool layer_norm_;
  std::unique_ptr<BatchNorm> norm_;
  int64_t size_ = 0;
  std::shared_ptr<float> w_, g_, m_, v_;
  std::vector<Target*> targets_;
  mutable std::mutex mutex_;

  Batch input_;
  std::vector<Batch> out_;    // each layer's output
  std::vector<Batch> normal_; // with layer_norm: a hidden layer's output before its ReLU
  std::vector<std::shared_ptr<float>> scale_;  // and 1 / standard deviation of each sample
  Batch input_delta_;
  bool ready_ = false;        // forward was called and weights have not changed since
  uint64_t backward_ = 0;     // number of the backward since the last forward
  std::shared_ptr<float> act_[2];
};

// Layer normalisation of the hidden outputs z in place; writes what the backward pass needs unless that is null.
void normalise(const Batch& z, float* normal, const Batch& y, float* scale);

}  // namespace rewirl
