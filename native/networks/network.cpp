#include "networks/network.h"

#include <algorithm>
#include <cmath>

#include "networks/require.h"
#include "networks/target.h"
#include "networks/workspace.h"
#include "runtime/runtime.h"

namespace rewirl {

namespace {

// Layer normalisation and ReLU of one sample.
void normalise_one(float* z, int n) {
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) sum += z[i];
  const double mean = sum / n;
  for (int i = 0; i < n; ++i) squares += (z[i] - mean) * (z[i] - mean);
  const double scale = 1 / std::sqrt(squares / n + double(kNormEpsilon));
  for (int i = 0; i < n; ++i) z[i] = z[i] < mean ? 0 : float((z[i] - mean) * scale);
}

}  // namespace

void clear_padding(const Batch& x) {
  for (int64_t i = 0; i < x.features(); ++i)
    for (float* p = x.data() + i * x.stride() + x.size(); p < x.data() + (i + 1) * x.stride(); ++p)
      if (!(*p == 0)) *p = 0;  // other threads may be reading it: written only if necessary
}

void normalise(const Batch& z, float* normal, const Batch& y, float* scale) {
  const Kernels& use = kernels();
  const Normalise args{z.data(), normal, y.data(), scale, z.stride(), int(z.features())};
  const int64_t vectors = (z.size() + use.width - 1) / use.width;
  parallel(vectors, 1, z.features() * z.size(), [&](int64_t b, int64_t e) { use.normalise(args, int(b), int(e)); });
}

Network::Network(std::vector<Layer> layers, bool layer_norm, const BatchNormOptions* batch_norm)
    : layers_(std::move(layers)), layer_norm_(layer_norm) {
  require(!layers_.empty(), "a network needs at least one layer");
  require(!layer_norm || !batch_norm, "a network has layer normalisation or batch normalisation, not both");
  int widest = 1;
  std::vector<int> inputs;
  for (size_t l = 0; l < layers_.size(); ++l) {
    Layer& layer = layers_[l];
    if (l > 0)
      require(layer.shape.n_in == layers_[l - 1].shape.n_out,
              "layer ", l, " takes ", layer.shape.n_in, " features but layer ", l - 1, " gives ", layers_[l - 1].shape.n_out);
    layer.weight_at = size_;
    layer.bias_at = size_ + layer.links();
    size_ = layer.bias_at + layer.shape.n_out + (batch_norm ? 2 * layer.shape.n_in : 0);
    inputs.push_back(layer.shape.n_in);
    widest = std::max(widest, layer.shape.n_out);
  }
  for (auto* flat : {&w_, &g_, &m_, &v_}) *flat = aligned_floats(size_);
  for (auto& buffer : act_) buffer = aligned_floats(widest);
  out_.resize(layers_.size());
  if (batch_norm) norm_ = std::make_unique<BatchNorm>(*batch_norm, inputs, size_);
}

NormalisedLayer Network::normalised(size_t l) const {
  const Layer& layer = layers_[l];
  return {layer.outputs, layer.shape.n_in, layer.shape.n_out, layer.weight_at, layer.bias_at};
}

// The parameters with which layers run on inputs that are not normalised, by running statistics.
const float* Network::evaluated() {
  if (!norm_) return w_.get();
  if (norm_->prepared != BatchNorm::Prepared::by_running) {
    ready_ = false;  // backward and the dense gradient would need what is overwritten here
    backward_ = 0;
    norm_->prepared = BatchNorm::Prepared::no;
    for (size_t l = 0; l < layers_.size(); ++l) norm_->evaluate(l, normalised(l), w_.get());
    norm_->prepared = BatchNorm::Prepared::by_running;
  }
  return norm_->folded();
}

const Layer& Network::layer(int64_t index) const {
  require(index >= 0 && index < int64_t(layers_.size()),
          "layer ", index, " of a network with ", layers_.size(), " layers");
  return layers_[index];
}

bool Network::overwrites(const Batch& batch) const {
  return std::any_of(out_.begin(), out_.end(), [&](const Batch& mine) { return mine.memory() == batch.memory(); });
}

void Network::make_room(const Batch& x) {
  if (out_[0].size() == x.size()) return;
  // Agents go forward with batches of few different sizes, again and again: their memory is kept.
  std::vector<Batch> made;
  for (size_t l = 0; l < layers_.size(); ++l) made.emplace_back(layers_[l].shape.n_out, x.size(), out_[l]);
  std::vector<Batch> normal;
  std::vector<std::shared_ptr<float>> scale;
  for (size_t l = 0; layer_norm_ && l + 1 < layers_.size(); ++l) {
    normal.emplace_back(layers_[l].shape.n_out, x.size());
    scale.push_back(aligned_floats(made[l].stride()));
  }
  out_.swap(made);  // all or nothing, if memory runs out
  normal_.swap(normal);
  scale_.swap(scale);
  input_delta_ = Batch();
}

Batch Network::forward(const Batch& x, bool training) {
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  require(x.features() == layers_[0].shape.n_in,
          "the network takes ", layers_[0].shape.n_in, " features, the batch has ", x.features());
  require(!overwrites(x), "the batch is the network's own output, which forward overwrites: give it a copy");
  make_room(x);
  clear_padding(x);
  input_ = x;
  const bool by_batch = norm_ && training;
  if (by_batch) norm_->prepared = BatchNorm::Prepared::no;
  const float* flat = by_batch ? norm_->folded() : evaluated();
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const Batch& in = l == 0 ? x : out_[l - 1];
    if (by_batch) norm_->train(l, normalised(l), w_.get(), in);
    const bool hidden = l + 1 < layers_.size();
    layer.forward(flat + layer.weight_at, flat + layer.bias_at, {}, in, hidden && !layer_norm_, out_[l]);
    if (hidden && layer_norm_) normalise(out_[l], normal_[l].data(), out_[l], scale_[l].get());
  }
  if (by_batch) {
    norm_->prepared = BatchNorm::Prepared::by_batch;
    ++norm_->steps;
  }
  ready_ = true;
  backward_ = 0;
  return out_.back();
}

Batch Network::backward(const Batch& dy, bool weights, int64_t begin, int64_t end) {
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  require(ready_, "backward needs a forward with the present weights before it");
  require(dy.features() == layers_.back().shape.n_out && dy.size() == input_.size(),
          "the last forward gave ", layers_.back().shape.n_out, " × ", input_.size(), " outputs, dy is ", dy.features(), " × ",
          dy.size());
  require(0 <= begin && begin <= end && end <= layers_[0].shape.n_in,
          "input features ", begin, " to ", end, " of a network that has ", layers_[0].shape.n_in);
  const bool inputs = begin < end;
  require(!inputs || layers_.size() > 1 || dy.memory() != input_delta_.memory(),
          "dy is the network's own gradient of its inputs, which backward overwrites: give it a copy");
  require(weights || !norm_ || norm_->prepared == BatchNorm::Prepared::by_running,
          "after a forward in training mode, backward needs the gradients of weights: those of the statistics follow from them");
  clear_padding(dy);
  if (inputs && input_delta_.size() != dy.size()) input_delta_ = Batch(layers_[0].shape.n_in, dy.size());
  Workspace& work = workspace();
  const auto delta_at = [&](int64_t l) { return work.at(size_t(l), layers_[l].shape.n_out, dy.size()); };
  work.owner = backward_ = new_number();
  bool summed = false;  // whether the gradients of biases are there already
  const Kernels& use = kernels();  // one for all: what by_samples writes, its own weight_gradients reads
  for (int64_t l = int64_t(layers_.size()) - 1; l >= 0; --l) {
    Layer& layer = layers_[l];
    const Batch& in = l == 0 ? input_ : out_[l - 1];
    const Batch delta = l + 1 == int64_t(layers_.size()) ? dy : delta_at(l);
    // Of the network's inputs only the gradients of begin .. end are needed.
    const int from = l > 0 ? 0 : int(begin), to = l > 0 ? layer.shape.n_in : int(end);
    const bool both = weights && l > 0 && use.both_gradients && layer.very_sparse();
    const Batch d = l > 0 ? delta_at(l - 1) : input_delta_;
    if (both) layer.both_gradients(use, w_.get(), in, delta, !norm_, d, g_.get(), work);
    if (weights && !both) {
      WeightGradients args{};
      args.links = layer.outputs.view(nullptr);
      args.x = in.data();
      args.dy = delta.data();
      args.dw = g_.get() + layer.weight_at;
      args.stride = in.stride();
      args.batch = int(in.size());
      args.columns = layer.shape.n_in;
      if (args.links.all) {
        float* samples = work.numbers(room_by_samples(args.batch, args.columns));
        use.by_samples(args.x, args.stride, args.batch, args.columns, samples);
        args.samples = samples;
      }
      for_groups(args.links, 0, layer.outputs.groups(), args.batch,
                 [&](int b, int e) { use.weight_gradients(args, b, e); });
    }
    if (weights) {
      if (!summed) use.row_sums(delta.data(), delta.stride(), int(delta.size()), g_.get() + layer.bias_at, layer.shape.n_out);
      if (norm_) norm_->weight_gradients(size_t(l), normalised(size_t(l)), w_.get(), g_.get(), delta.size());
    }
    if (l == 0 && !inputs) break;
    const bool one = l > 0 && layer.one_dense_output();
    if (!both && !one) layer.input_gradients(w_.get(), delta, l > 0 && !norm_ ? &in : nullptr, from, to, d, work);
    summed = l > 0 && !layer_norm_ && (norm_ || one);
    if (one || norm_) {
      FinishGradients args{};
      args.d = d.data();
      args.x = in.data();
      if (one) {
        args.w = w_.get() + layer.weight_at;
        args.dy = delta.data();
        args.row = layer.outputs.other.data();
      }
      if (norm_) norm_->input_gradients(size_t(l), args);
      args.sums = summed && weights ? g_.get() + layers_[l - 1].bias_at : nullptr;
      args.stride = d.stride();
      args.batch = int(d.size());
      args.gate = l > 0;
      parallel(to - from, 1, 2 * d.features() * d.size(),
               [&](int64_t b, int64_t e) { use.finish_gradients(args, int(from + b), int(from + e)); });
    }
    if (layer_norm_ && l > 0) {
      const ThroughNormalise args{d.data(), normal_[l - 1].data(), scale_[l - 1].get(), d.stride(), int(d.features())};
      const int64_t vectors = (d.size() + use.width - 1) / use.width;
      parallel(vectors, 1, d.features() * d.size(), [&](int64_t b, int64_t e) { use.through_normalise(args, int(b), int(e)); });
    }
  }
  return inputs ? input_delta_.rows(begin, end) : Batch();
}

void Network::step(const AdamOptions& o) {
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  ++steps;
  const double c1 = 1 - std::pow(double(o.beta1), double(steps)), c2 = 1 - std::pow(double(o.beta2), double(steps));
  Adam args{};
  args.w = w_.get();
  args.m = m_.get();
  args.v = v_.get();
  args.g = g_.get();
  args.beta1 = o.beta1;
  args.beta2 = o.beta2;
  args.l2 = o.decoupled ? 0 : o.weight_decay;
  args.correction = float(1 / std::sqrt(c2));
  args.eps = o.eps;
  const auto update = [&](double lr, int64_t begin, int64_t end) {
    if (begin >= end) return;
    Adam at = args;
    at.keep = o.decoupled ? float(1 - lr * o.weight_decay) : 1;
    at.step_size = float(lr / c1);
    kernels().adam(at, begin, end);
  };
  parallel(padded(size_), kPad, size_ * 16, [&](int64_t begin, int64_t end) {
    // Weights of layers with a rate of their own, and what lies between them: biases, and weights at the common rate.
    for (const Layer& layer : layers_) {
      if (o.sparse_rate == 0 || layer.links() == layer.shape.n_in * layer.shape.n_out) continue;
      const double share = double(layer.links()) / (double(layer.shape.n_in) * layer.shape.n_out);
      const int64_t from = std::clamp(layer.weight_at, begin, end), to = std::clamp(layer.weight_at + layer.links(), begin, end);
      update(o.lr, begin, from);
      update(o.lr / std::pow(share, double(o.sparse_rate)), from, to);
      begin = to;
    }
    update(o.lr, begin, end);
  });
  weights_changed();
}

void Network::weights_changed() {
  for (Layer& layer : layers_) layer.by_inputs_now = false;
  if (norm_) norm_->prepared = BatchNorm::Prepared::no;
  ready_ = false;
}

void Network::act(const float* x, float* y) {
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  const float* flat = evaluated();
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const float* in = l == 0 ? x : act_[(l + 1) % 2].get();
    const bool hidden = l + 1 < layers_.size();
    kernels().act(layer.outputs.view(flat + layer.weight_at), flat + layer.bias_at, in, act_[l % 2].get(),
                  layer.outputs.groups(), hidden && !layer_norm_);
    if (hidden && layer_norm_) normalise_one(act_[l % 2].get(), layer.shape.n_out);
  }
  std::copy_n(act_[(layers_.size() + 1) % 2].get(), layers_.back().shape.n_out, y);
}

void Network::by_position(int64_t index, int64_t* positions, int64_t* slots) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const ByPosition& order = layer(index).order(workspace());
  std::copy(order.positions.begin(), order.positions.end(), positions);
  for (const uint32_t slot : order.slot) *slots++ = layer(index).weight_at + slot;
}

void Network::weights_by_position(int64_t index, int64_t* positions, float* weights) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const ByPosition& order = layer(index).order(workspace());
  const float* w = w_.get() + layer(index).weight_at;
  std::copy(order.positions.begin(), order.positions.end(), positions);
  for (const uint32_t slot : order.slot) *weights++ = w[slot];
}

void Network::rewire(int64_t index, const int64_t* dropped, int64_t n_dropped, const int64_t* grown, int64_t n_grown,
                     const float* second_moments) {
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  this->layer(index);
  Layer& layer = layers_[index];
  for (int64_t k = 0; second_moments && k < n_grown * layer.shape.block; ++k)
    require(second_moments[k] >= 0 && std::isfinite(second_moments[k]),
            "a second moment must be a finite number that is not negative, not ", second_moments[k]);
  Workspace& work = workspace();
  ByPosition& after = work.after;
  Passage& passage = work.passage;
  check_positions(layer.shape, dropped, n_dropped, passage.dropped);
  check_positions(layer.shape, grown, n_grown, passage.grown);
  const ByPosition& before = layer.order(work);
  replace(before, passage, after);
  GroupedLayer made;  // not kept: a layer holds no spare memory
  layer.group(after, made, work.wiring);
  follow(layer.shape.block, before, after, passage, work.wiring);
  std::vector<Target::Moved> moved;
  for (Target* target : targets_) moved.push_back(target->moved(index, before, after, passage, made.outputs, work.wiring));
  // Everything above may run out of memory and has changed nothing; nothing below allocates.
  layer.wire(made);
  for (float* flat : {w_.get(), m_.get(), v_.get()}) carry(passage, flat + layer.weight_at, work.wiring);
  const int64_t block = layer.shape.block;
  for (int64_t k = 0; second_moments && k < n_grown * block; ++k)
    v_.get()[layer.weight_at + after.slot[passage.come[k / block] * block + k % block]] = second_moments[k];
  std::fill_n(g_.get() + layer.weight_at, layer.links(), 0.0f);  // they belonged to other links
  for (size_t t = 0; t < targets_.size(); ++t) targets_[t]->rewired(index, passage, std::move(moved[t]), work.wiring);
  weights_changed();
}

void Network::set_parameters(const float* values) {
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  std::copy_n(values, size_, w_.get());
  weights_changed();
}

void Network::set_statistics(int64_t index, const float* mean, const float* variance) {
  std::lock_guard<std::mutex> lock(mutex_);
  const int n = layer(index).shape.n_in;
  require(norm_ != nullptr, "a network without batch normalisation has no statistics");
  for (int j = 0; j < n; ++j)
    require(std::isfinite(mean[j]) && std::isfinite(variance[j]) && variance[j] >= 0,
            "statistics must be finite, and variances not negative; number ", j, " is ", mean[j], " with variance ", variance[j]);
  std::copy_n(mean, n, norm_->mean(size_t(index)));
  std::copy_n(variance, n, norm_->variance(size_t(index)));
  norm_->prepared = BatchNorm::Prepared::no;
  ready_ = false;
}

std::vector<float> Network::folded() {
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  const float* flat = evaluated();
  return std::vector<float>(flat, flat + size_);
}

Batch Network::layer_input(int64_t index) const {
  std::lock_guard<std::mutex> lock(mutex_);
  layer(index);
  require(input_.size() > 0, "no forward was made yet");
  return index == 0 ? input_ : out_[index - 1];
}

Batch Network::layer_delta(int64_t index) const {
  std::lock_guard<std::mutex> lock(mutex_);
  layer(index);
  require(backward_ != 0 && workspace().owner == backward_,
          "the gradients at hidden outputs are gone: ask right after this network's backward, in the same thread");
  require(index + 1 < int64_t(layers_.size()), "the gradient at the last output is the one given to backward");
  return workspace().at(size_t(index), layers_[index].shape.n_out, input_.size());
}

void Network::dense_gradient(int64_t index, int64_t begin, int64_t end, float* out) const {
  const Batch delta = layer_delta(index), x = layer_input(index);
  require(0 <= begin && begin < end && end <= x.features(),
          "inputs ", begin, " to ", end, " of a layer that has ", x.features());
  std::lock_guard<std::mutex> lock(mutex_);
  Section section;
  const Kernels& use = kernels();
  // Outputs come in fours here: those that are missing in the last get zeros.
  const int64_t n_out = delta.features(), padded_out = (n_out + 3) / 4 * 4, n = end - begin;
  Batch dy = delta;
  if (padded_out > n_out) {
    dy = Batch(padded_out, delta.size());
    std::copy_n(delta.data(), n_out * delta.stride(), dy.data());
  }
  WeightGradients args{};
  args.links.all = true;
  args.x = x.data() + begin * x.stride();
  args.dy = dy.data();
  args.stride = x.stride();
  args.batch = int(x.size());
  args.columns = int(n);
  const int64_t room = padded(room_by_samples(args.batch, n));
  float* samples = workspace().numbers(room + padded(padded_out * n) + padded(padded_out));
  use.by_samples(args.x, args.stride, args.batch, args.columns, samples);
  args.samples = samples;
  args.dw = samples + room;
  float* sums = args.dw + padded(padded_out * n);
  use.row_sums(dy.data(), dy.stride(), args.batch, sums, int(n_out));
  const float *a = norm_ ? norm_->a(size_t(index)) + begin : nullptr, *c = norm_ ? norm_->c(size_t(index)) + begin : nullptr;
  parallel(padded_out / 4, 1, padded_out * n * args.batch, [&](int64_t from, int64_t to) {
    use.weight_gradients(args, int(from), int(to));
    for (int64_t o = 4 * from; o < std::min(4 * to, n_out); ++o)
      for (int64_t j = 0; j < n; ++j) {
        const float dw = args.dw[4 * (o / 4 * n + j) + o % 4];
        out[j * n_out + o] = norm_ ? a[j] * dw + c[j] * sums[o] : dw;
      }
  });
}

std::map<std::string, int64_t> Network::bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::map<std::string, int64_t> out{{"weights", size_ * 4}, {"gradients", size_ * 4}, {"moments", size_ * 8}};
  for (const Layer& layer : layers_) {
    out["links"] += layer.index_bytes();
    out["weights by inputs"] += int64_t(layer.slot.size()) * 4;
  }
  if (norm_) out["normalisation"] = norm_->bytes();
  return out;
}

}  // namespace rewirl
