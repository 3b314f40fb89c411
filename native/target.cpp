#include "target.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "runtime.h"

namespace rewirl {

Target::Target(std::shared_ptr<Network> online) : online_(std::move(online)) {
  if (!online_) throw std::invalid_argument("a target needs a network to follow");
  std::lock_guard<std::mutex> lock(online_->mutex_);
  for (const Layer& layer : online_->layers()) {
    TargetLayer mine;
    const int64_t n = layer.blocks * layer.block;
    mine.weight = aligned_floats(n);
    std::copy_n(layer.by_output.get(), n, mine.weight.get());
    mine.bias = aligned_floats(layer.n_out);
    std::copy_n(online_->w_.get() + layer.bias_at, layer.n_out, mine.bias.get());
    mine.extra.start.assign(layer.block_rows() + 1, 0);
    mine.extra_weight = aligned_floats(0);
    layers_.push_back(std::move(mine));
  }
  out_.resize(layers_.size());
  online_->targets_.push_back(this);
}

Target::~Target() {
  std::lock_guard<std::mutex> lock(online_->mutex_);
  auto& all = online_->targets_;
  all.erase(std::remove(all.begin(), all.end(), this), all.end());
}

TargetLayer& Target::layer(int64_t index) {
  online_->layer(index);
  return layers_[index];
}

Batch Target::forward(const Batch& x) {
  std::lock_guard<std::mutex> lock(online_->mutex_);
  Section section;
  const auto& layers = online_->layers();
  if (x.features() != layers[0].n_in)
    throw std::invalid_argument("the network takes " + std::to_string(layers[0].n_in) + " features, the batch has " +
                                std::to_string(x.features()));
  if (out_[0].size() != x.size())
    for (size_t l = 0; l < layers.size(); ++l) out_[l] = Batch(layers[l].n_out, x.size());
  for (size_t l = 0; l < layers.size(); ++l) {
    const Layer& layer = layers[l];
    const TargetLayer& mine = layers_[l];
    const Batch& in = l == 0 ? x : out_[l - 1];
    Forward args{layer.forward_links(mine.weight.get()), {}, mine.bias.get(), in.data(), out_[l].data(), in.stride(),
                 int(in.size()), layer.block, l + 1 < layers.size()};
    if (!mine.extra.input.empty()) args.extra = {mine.extra.start.data(), mine.extra.input.data(), mine.extra_weight.get()};
    run_forward(args, layer);
  }
  return out_.back();
}

void Target::update(float tau) {
  if (!(tau >= 0 && tau <= 1)) throw std::invalid_argument("tau must be from 0 to 1, not " + std::to_string(tau));
  std::lock_guard<std::mutex> lock(online_->mutex_);
  Section section;
  const auto& layers = online_->layers();
  for (size_t l = 0; l < layers.size(); ++l) {
    const Layer& layer = layers[l];
    TargetLayer& mine = layers_[l];
    const int64_t n = layer.blocks * layer.block;
    parallel(padded(n), kPad, n * 8, [&](int64_t begin, int64_t end) {
      kernels().polyak(mine.weight.get() + begin, layer.by_output.get() + begin, tau, end - begin);
    });
    kernels().polyak(mine.extra_weight.get(), nullptr, tau, int64_t(mine.extra.input.size()) * layer.block);
    kernels().polyak(mine.bias.get(), online_->w_.get() + layer.bias_at, tau, layer.n_out);
    // With no extra links there are never more than k.
    if (!mine.extra.input.empty()) prune(mine, layer);
  }
}

// All but the k largest go to zero; of equal ones the first in the layer's order go. Only the few smallest magnitudes are
// ever looked at one by one: those below a limit remembered from the last time, raised until there are enough.
void Target::prune(TargetLayer& mine, const Layer& layer) {
  const int64_t k = layer.blocks, extra = int64_t(mine.extra.input.size());
  int64_t excess = 0, n = 0;
  for (;;) {
    int64_t n_main = 0, n_extra = 0;
    if (int64_t(found_.size()) < k + extra) found_.resize(k + extra);
    int64_t alive = kernels().small(mine.weight.get(), k, layer.block, mine.limit, found_.data(), k, &n_main);
    alive += kernels().small(mine.extra_weight.get(), extra, layer.block, mine.limit, found_.data() + n_main, extra, &n_extra);
    for (int64_t i = n_main; i < n_main + n_extra; ++i) found_[i] += uint64_t(k);
    n = n_main + n_extra;
    excess = alive - k;
    if (excess <= n || std::isinf(mine.limit)) break;
    mine.limit *= 2;
  }
  if (excess <= 0) return;
  std::nth_element(found_.begin(), found_.begin() + (excess - 1), found_.begin() + n);
  for (int64_t i = 0; i < excess; ++i) {
    const int64_t at = int64_t(found_[i] & 0xffffffffu);
    float* w = at < k ? mine.weight.get() + at * layer.block : mine.extra_weight.get() + (at - k) * layer.block;
    std::fill_n(w, layer.block, 0.0f);
  }
  const uint32_t bits = uint32_t(found_[excess - 1] >> 32);
  float largest;
  std::memcpy(&largest, &bits, 4);
  mine.limit = std::max(1.2f * largest, 1e-30f);
}

void Target::rewired(int64_t index, const Rows& old_rows) {
  const Layer& layer = online_->layers()[index];
  TargetLayer& mine = layers_[index];
  const int b = layer.block;
  const auto weight = aligned_floats(layer.blocks * b);
  Rows extra;
  extra.start.push_back(0);
  std::vector<float> extra_weight;
  const auto alive = [b](const float* w) { return std::any_of(w, w + b, [](float v) { return v != 0.0f; }); };
  for (int r = 0; r < layer.block_rows(); ++r) {
    // Three ascending lists of inputs: what was online, what was extra, what is online now.
    uint32_t a = old_rows.start[r], e = mine.extra.start[r], now = layer.rows.start[r];
    const uint32_t a_end = old_rows.start[r + 1], e_end = mine.extra.start[r + 1], now_end = layer.rows.start[r + 1];
    while (a < a_end || e < e_end) {
      const bool from_extra = a == a_end || (e < e_end && mine.extra.input[e] < old_rows.input[a]);
      const uint16_t input = from_extra ? mine.extra.input[e] : old_rows.input[a];
      const float* w = from_extra ? mine.extra_weight.get() + int64_t(e++) * b : mine.weight.get() + int64_t(a++) * b;
      while (now < now_end && layer.rows.input[now] < input) ++now;
      if (now < now_end && layer.rows.input[now] == input) {
        std::copy_n(w, b, weight.get() + int64_t(now) * b);
      } else if (alive(w)) {
        extra.input.push_back(input);
        extra_weight.insert(extra_weight.end(), w, w + b);
      }
    }
    extra.start.push_back(uint32_t(extra.input.size()));
  }
  mine.weight = weight;
  extra.input.shrink_to_fit();
  mine.extra = std::move(extra);
  mine.extra_weight = aligned_floats(int64_t(extra_weight.size()));
  std::copy(extra_weight.begin(), extra_weight.end(), mine.extra_weight.get());
}

void Target::set_extra(int64_t index, const int64_t* places, int64_t n_places) {
  std::lock_guard<std::mutex> lock(online_->mutex_);
  const Layer& layer = online_->layer(index);
  const int64_t limit = int64_t(layer.block_rows()) * layer.n_in;
  Rows extra;
  extra.start.assign(layer.block_rows() + 1, 0);
  for (int64_t k = 0; k < n_places; ++k) {
    if (places[k] < 0 || places[k] >= limit || (k > 0 && places[k] <= places[k - 1]))
      throw std::invalid_argument("extra links of a target must be ascending, unique and from 0 to " +
                                  std::to_string(limit - 1) + "; link " + std::to_string(k) + " is not");
    const int64_t r = places[k] / layer.n_in;
    const uint16_t input = uint16_t(places[k] % layer.n_in);
    const auto* first = layer.rows.input.data() + layer.rows.start[r];
    const auto* last = layer.rows.input.data() + layer.rows.start[r + 1];
    if (std::binary_search(first, last, input))
      throw std::invalid_argument("extra link " + std::to_string(k) + " of a target is also a link of its network");
    ++extra.start[r + 1];
    extra.input.push_back(input);
  }
  for (size_t r = 1; r < extra.start.size(); ++r) extra.start[r] += extra.start[r - 1];
  layers_[index].extra = std::move(extra);
  layers_[index].extra_weight = aligned_floats(n_places * layer.block);
}

std::vector<int64_t> Target::extra_places(int64_t index) {
  const Rows& extra = layer(index).extra;
  std::vector<int64_t> out;
  for (size_t r = 0; r + 1 < extra.start.size(); ++r)
    for (uint32_t k = extra.start[r]; k < extra.start[r + 1]; ++k)
      out.push_back(int64_t(r) * online_->layer(index).n_in + extra.input[k]);
  return out;
}

std::pair<int64_t, int64_t> Target::alive(int64_t index) {
  std::lock_guard<std::mutex> lock(online_->mutex_);
  const TargetLayer& mine = layer(index);
  const Layer& online = online_->layer(index);
  int64_t unused;
  return {kernels().small(mine.weight.get(), online.blocks, online.block, 1e-30f, nullptr, 0, &unused) * online.block,
          kernels().small(mine.extra_weight.get(), int64_t(mine.extra.input.size()), online.block, 1e-30f, nullptr, 0, &unused) *
              online.block};
}

std::map<std::string, int64_t> Target::bytes() const {
  std::map<std::string, int64_t> out;
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& online = online_->layers()[l];
    const TargetLayer& mine = layers_[l];
    const int64_t extra = int64_t(mine.extra.input.size());
    out["weights"] += (online.blocks * online.block + online.n_out + extra * online.block) * 4;
    out["links"] += int64_t(mine.extra.start.size()) * 4 + extra * 2;
  }
  return out;
}

}  // namespace rewirl
