#include "network.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "runtime.h"
#include "target.h"

namespace rewirl {

namespace {

std::string str(int64_t n) { return std::to_string(n); }

void require(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument(message);
}

}  // namespace

// ---------------------------------------------------------------- Layer

Layer::Layer(int64_t n_in_, int64_t n_out_, int64_t block_, const int64_t* places, int64_t n_places)
    : n_in(int(n_in_)), n_out(int(n_out_)), block(int(block_)) {
  require(n_in_ >= 1 && n_in_ <= 65536 && n_out_ >= 1 && n_out_ <= 65536,
          "a layer's widths must be from 1 to 65536, not " + str(n_in_) + " and " + str(n_out_));
  require(block_ == 1 || block_ == 2 || block_ == 4 || block_ == 8, "block must be 1, 2, 4 or 8, not " + str(block_));
  require(n_out_ % block_ == 0, "block " + str(block_) + " does not divide the layer's width " + str(n_out_));
  require(n_places >= 1, "a layer needs at least one link");
  by_output = aligned_floats(n_places * block_);
  wire(places, n_places);
}

void Layer::wire(const int64_t* places, int64_t n_places) {
  const int64_t per_input = block_rows(), limit = int64_t(n_in) * per_input;
  require(n_places <= limit, str(n_places) + " links in a layer that has " + str(limit) + " places");
  for (int64_t k = 0; k < n_places; ++k) {
    require(places[k] >= 0 && places[k] < limit,
            "link " + str(k) + " is at place " + str(places[k]) + ", outside 0 to " + str(limit - 1));
    require(k == 0 || places[k] > places[k - 1], "places must be ascending and unique; link " + str(k) + " is not");
  }
  blocks = n_places;
  start.assign(n_in + 1, 0);
  row.resize(n_places);
  rows.start.assign(per_input + 1, 0);
  rows.input.resize(n_places);
  for (int64_t k = 0; k < n_places; ++k) {
    row[k] = uint16_t(places[k] % per_input);
    ++start[places[k] / per_input + 1];
    ++rows.start[row[k] + 1];
  }
  for (int j = 0; j < n_in; ++j) start[j + 1] += start[j];
  for (int64_t r = 0; r < per_input; ++r) rows.start[r + 1] += rows.start[r];
  std::vector<uint32_t> next(rows.start.begin(), rows.start.end() - 1);
  for (int j = 0; j < n_in; ++j)
    for (uint32_t k = start[j]; k < start[j + 1]; ++k) rows.input[next[row[k]]++] = uint16_t(j);
}

std::vector<int64_t> Layer::places() const {
  std::vector<int64_t> out(blocks);
  for (int j = 0; j < n_in; ++j)
    for (uint32_t k = start[j]; k < start[j + 1]; ++k) out[k] = int64_t(j) * block_rows() + row[k];
  return out;
}

namespace {

// Every output takes its next weight as the inputs pass by in ascending order: no permutation is kept. Rows of one input
// are ascending, so a thread that has the rows begin .. end finds its links by a search.
template <int B>
void sync_rows(const Layer& layer, const float* w, int64_t begin, int64_t end) {
  float* out = layer.by_output.get();
  std::vector<uint32_t> next(layer.rows.start.begin() + begin, layer.rows.start.begin() + end);
  const uint16_t* row = layer.row.data();
  for (int j = 0; j < layer.n_in; ++j) {
    const uint16_t *first = row + layer.start[j], *last = row + layer.start[j + 1];
    if (begin > 0) first = std::lower_bound(first, last, begin);
    if (end < layer.block_rows()) last = std::lower_bound(first, last, end);
    const float* from = w + (first - row) * B;
    for (; first < last; ++first, from += B) {
      float* to = out + int64_t(next[*first - begin]++) * B;
      for (int i = 0; i < B; ++i) to[i] = from[i];
    }
  }
}

}  // namespace

void Layer::sync(const float* flat) {
  const float* w = flat + weight_at;
  parallel(block_rows(), 16, blocks * 16, [&](int64_t begin, int64_t end) {
    switch (block) {
      case 1: return sync_rows<1>(*this, w, begin, end);
      case 2: return sync_rows<2>(*this, w, begin, end);
      case 4: return sync_rows<4>(*this, w, begin, end);
      default: return sync_rows<8>(*this, w, begin, end);
    }
  });
}

int64_t Layer::index_bytes() const {
  return int64_t(start.size() + rows.start.size()) * 4 + int64_t(row.size() + rows.input.size()) * 2;
}

void run_forward(const Forward& args, const Layer& layer) {
  const int64_t cost = layer.blocks * layer.block * args.batch;
  parallel(layer.block_rows(), 1, cost,
           [&](int64_t begin, int64_t end) { kernels().forward(args, int(begin), int(end)); });
}

// -------------------------------------------------------------- Network

Network::Network(std::vector<Layer> layers) : layers_(std::move(layers)) {
  require(!layers_.empty(), "a network needs at least one layer");
  int widest = layers_[0].n_in;
  for (size_t l = 0; l < layers_.size(); ++l) {
    Layer& layer = layers_[l];
    if (l > 0)
      require(layer.n_in == layers_[l - 1].n_out, "layer " + str(l) + " takes " + str(layer.n_in) + " features but layer " +
                                                      str(l - 1) + " gives " + str(layers_[l - 1].n_out));
    layer.weight_at = size_;
    layer.bias_at = size_ + layer.blocks * layer.block;
    size_ = layer.bias_at + layer.n_out;
    widest = std::max(widest, layer.n_out);
  }
  w_ = aligned_floats(size_);
  g_ = aligned_floats(size_);
  m_ = aligned_floats(size_);
  v_ = aligned_floats(size_);
  act_a_.resize(widest);
  act_b_.resize(widest);
  out_.resize(layers_.size());
  delta_.resize(layers_.size());
}

const Layer& Network::layer(int64_t index) const {
  require(index >= 0 && index < int64_t(layers_.size()),
          "layer " + str(index) + " of a network with " + str(layers_.size()) + " layers");
  return layers_[index];
}

void Network::make_room(const Batch& x) {
  if (out_[0].size() == x.size()) return;
  for (size_t l = 0; l < layers_.size(); ++l) {
    out_[l] = Batch(layers_[l].n_out, x.size());
    delta_[l] = l + 1 < layers_.size() ? Batch(layers_[l].n_out, x.size()) : Batch();
  }
  input_delta_ = Batch();
}

Batch Network::forward(const Batch& x) {
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  require(x.features() == layers_[0].n_in,
          "the network takes " + str(layers_[0].n_in) + " features, the batch has " + str(x.features()));
  make_room(x);
  input_ = x;
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const Batch& in = l == 0 ? x : out_[l - 1];
    Forward args{layer.forward_links(layer.by_output.get()), {}, w_.get() + layer.bias_at, in.data(), out_[l].data(),
                 in.stride(), int(in.size()), layer.block, l + 1 < layers_.size()};
    run_forward(args, layer);
  }
  ready_ = true;
  has_delta_ = false;
  return out_.back();
}

Batch Network::backward(const Batch& dy, bool weights, int64_t begin, int64_t end) {
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  require(ready_, "backward needs a forward with the present weights before it");
  require(dy.features() == layers_.back().n_out && dy.size() == input_.size(),
          "the last forward gave " + str(layers_.back().n_out) + " × " + str(input_.size()) + " outputs, dy is " +
              str(dy.features()) + " × " + str(dy.size()));
  require(0 <= begin && begin <= end && end <= layers_[0].n_in,
          "input features " + str(begin) + " to " + str(end) + " of a network that has " + str(layers_[0].n_in));
  const bool inputs = begin < end;
  if (inputs && input_delta_.size() != dy.size()) input_delta_ = Batch(layers_[0].n_in, dy.size());
  for (int64_t l = int64_t(layers_.size()) - 1; l >= 0; --l) {
    const Layer& layer = layers_[l];
    const Batch& in = l == 0 ? input_ : out_[l - 1];
    const Batch& delta = l + 1 == int64_t(layers_.size()) ? dy : delta_[l];
    float* dx = l > 0 ? delta_[l - 1].data() : inputs ? input_delta_.data() : nullptr;
    Backward args{layer.start.data(), layer.row.data(), w_.get() + layer.weight_at, in.data(), delta.data(), dx,
                  weights ? g_.get() + layer.weight_at : nullptr, in.stride(), int(in.size()), layer.block, l > 0};
    if (!dx && !weights) break;
    const int64_t from = l == 0 && !weights ? begin : 0, to = l == 0 && !weights ? end : layer.n_in;
    const int64_t cost = layer.blocks * layer.block * in.size() * (weights && dx ? 2 : 1) * (to - from) / layer.n_in;
    parallel(to - from, 1, cost,
             [&](int64_t b, int64_t e) { kernels().backward(args, int(from + b), int(from + e)); });
    if (weights)
      kernels().row_sums(delta.data(), delta.stride(), int(delta.size()), g_.get() + layer.bias_at, 0, layer.n_out);
  }
  has_delta_ = true;
  return inputs ? input_delta_.rows(begin, end) : Batch();
}

void Network::step(const AdamOptions& o) {
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  ++steps;
  const double c1 = 1 - std::pow(double(o.beta1), double(steps)), c2 = 1 - std::pow(double(o.beta2), double(steps));
  const Adam args{w_.get(),       m_.get(),         v_.get(),
                  g_.get(),       o.beta1,          o.beta2,
                  o.weight_decay, float(o.lr / c1), float(1 / std::sqrt(c2)),
                  o.eps};
  parallel(padded(size_), kPad, size_ * 16, [&](int64_t begin, int64_t end) { kernels().adam(args, begin, end); });
  for (Layer& layer : layers_) layer.sync(w_.get());
  ready_ = false;
}

void Network::act(const float* x, float* y) {
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  const float* in = x;
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const bool last = l + 1 == layers_.size();
    float* out = last ? y : l % 2 ? act_b_.data() : act_a_.data();
    std::copy_n(w_.get() + layer.bias_at, layer.n_out, out);
    Backward args{};
    args.start = layer.start.data();
    args.row = layer.row.data();
    args.weight = w_.get() + layer.weight_at;
    args.x = in;
    args.block = layer.block;
    kernels().act(args, layer.n_in, out);
    if (!last)
      for (int i = 0; i < layer.n_out; ++i) out[i] = out[i] < 0 ? 0 : out[i];
    in = out;
  }
}

void Network::rewire(int64_t index, const int64_t* places, int64_t n_places) {
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  this->layer(index);
  Layer& layer = layers_[index];
  require(n_places == layer.blocks, "rewiring keeps the number of links: the layer has " +
                                            str(layer.blocks * layer.block) + ", not " + str(n_places * layer.block));
  const std::vector<int64_t> before = layer.places();
  const Rows old_rows = layer.rows;
  layer.wire(places, n_places);  // checks all of them before it changes anything
  const int b = layer.block;
  std::vector<float> kept(size_t(n_places) * b);
  for (float* flat : {w_.get(), m_.get(), v_.get()}) {
    float* values = flat + layer.weight_at;
    size_t old = 0;
    std::fill(kept.begin(), kept.end(), 0.0f);
    for (int64_t k = 0; k < n_places; ++k) {
      while (old < before.size() && before[old] < places[k]) ++old;
      if (old < before.size() && before[old] == places[k]) std::copy_n(values + old * b, b, kept.data() + k * b);
    }
    std::copy(kept.begin(), kept.end(), values);
  }
  std::fill_n(g_.get() + layer.weight_at, n_places * b, 0.0f);  // they belonged to other links
  layer.sync(w_.get());
  for (Target* target : targets_) target->rewired(index, old_rows);
  ready_ = false;
}

void Network::set_parameters(const float* values) {
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  std::copy_n(values, size_, w_.get());
  for (Layer& layer : layers_) layer.sync(w_.get());
  ready_ = false;
}

Batch Network::layer_input(int64_t index) const {
  layer(index);
  require(input_.size() > 0, "no forward was made yet");
  return index == 0 ? input_ : out_[index - 1];
}

Batch Network::layer_delta(int64_t index) const {
  layer(index);
  require(has_delta_, "no backward was made since the last forward");
  require(index + 1 < int64_t(layers_.size()), "the gradient at the last output is the one given to backward");
  return delta_[index];
}

std::map<std::string, int64_t> Network::bytes() const {
  std::map<std::string, int64_t> out{{"weights", size_ * 4}, {"gradients", size_ * 4}, {"moments", size_ * 8}};
  for (const Layer& layer : layers_) {
    out["links"] += layer.index_bytes();
    out["weights by output"] += layer.blocks * layer.block * 4;
  }
  return out;
}

}  // namespace rewirl
