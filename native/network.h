// A multi-layer perceptron that holds nothing but its links.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "batch.h"
#include "kernels.h"

namespace rewirl {

class Target;

// Who comes to whom, listed by output.
struct Rows {
  std::vector<uint32_t> start;
  std::vector<uint16_t> input;
};

// A layer's links. A place is where a block of `block` links can be: place = input * (n_out / block) + block row. The
// canonical order of links, and of their weights, gradients and moments, is that of ascending places: the order in which
// backward meets them, so gradients need no permutation. Forward wants the links by output, and gets a copy of the weights in
// that order, made anew (`sync`) whenever weights change.
struct Layer {
  Layer(int64_t n_in, int64_t n_out, int64_t block, const int64_t* places, int64_t n_places);

  int n_in, n_out, block;
  int64_t blocks = 0;                  // links / block
  int64_t weight_at = 0, bias_at = 0;  // where this layer begins in the network's flat arrays
  std::vector<uint32_t> start;         // by input
  std::vector<uint16_t> row;
  Rows rows;                           // by output
  std::shared_ptr<float> by_output;    // the weights in the order of `rows`

  int block_rows() const { return n_out / block; }
  // Sets the links; throws std::invalid_argument unless places are ascending, unique and in range.
  void wire(const int64_t* places, int64_t n_places);
  std::vector<int64_t> places() const;
  void sync(const float* flat_weights);
  ByOutput forward_links(const float* weights) const { return {rows.start.data(), rows.input.data(), weights}; }
  int64_t index_bytes() const;
};

struct AdamOptions {
  float lr, beta1, beta2, eps, weight_decay;
};

class Network {
 public:
  explicit Network(std::vector<Layer> layers);

  // The output for a batch; keeps what backward needs. The result lives in the network and is overwritten by the next call.
  Batch forward(const Batch& x);
  // Gradients of the loss whose gradient with respect to the last output is dy: of the weights into gradients(), and of the
  // input features begin .. end as the result (none when begin == end).
  Batch backward(const Batch& dy, bool weights, int64_t begin, int64_t end);
  void step(const AdamOptions& options);
  // One observation, n_in floats, to n_out floats.
  void act(const float* x, float* y);

  // New links for a layer, as many as before. Links that stay keep weight and moments; new ones start at zero. Targets follow.
  void rewire(int64_t layer, const int64_t* places, int64_t n_places);
  void set_parameters(const float* values);

  const std::vector<Layer>& layers() const { return layers_; }
  const Layer& layer(int64_t index) const;
  int64_t size() const { return size_; }
  float* parameters() { return w_.get(); }
  float* gradients() { return g_.get(); }
  float* first_moments() { return m_.get(); }
  float* second_moments() { return v_.get(); }
  int64_t steps = 0;  // of Adam, for its bias correction

  // What the last forward and backward saw: a layer's input, and the loss's gradient at its output.
  Batch layer_input(int64_t index) const;
  Batch layer_delta(int64_t index) const;
  std::map<std::string, int64_t> bytes() const;

 private:
  friend class Target;
  void make_room(const Batch& x);

  std::vector<Layer> layers_;
  int64_t size_ = 0;
  std::shared_ptr<float> w_, g_, m_, v_;
  std::vector<Target*> targets_;
  std::mutex mutex_;

  Batch input_;
  std::vector<Batch> out_;    // each layer's output
  std::vector<Batch> delta_;  // the loss's gradient there
  Batch input_delta_;
  bool ready_ = false;        // forward was called and weights have not changed since
  bool has_delta_ = false;
  std::vector<float> act_a_, act_b_;
};

// Runs the layers of a network or of its target over a batch.
void run_forward(const Forward& args, const Layer& layer);

}  // namespace rewirl
