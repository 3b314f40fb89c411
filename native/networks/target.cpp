#include "networks/target.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "networks/workspace.h"
#include "runtime/runtime.h"

namespace rewirl {

namespace {

float score_of(uint64_t found) {
  const uint32_t bits = uint32_t(found >> 32);
  float score;
  std::memcpy(&score, &bits, 4);
  return score;
}

// Links of a target that its network does not have (any more).
struct Loose {
  Position position;
  const float* values;  // weights per block
};

// Of n links those that are not zero, in order of positions, and an end marker; `which` gives their numbers in the order.
template <class Which>
std::vector<Loose> not_zero(const ByPosition& order, size_t n, const float* weights, size_t block, const Which& which) {
  std::vector<Loose> out(n + 1);
  size_t found = 0;
  for (size_t i = 0; i < n; ++i) {
    const size_t k = which(i);
    const Loose one{order.positions[k], weights + order.slot[k * block]};
    bool alive = false;
    for (size_t j = 0; j < block; ++j) alive |= one.values[j] != 0.0f;
    out[found] = one;
    found += alive;
  }
  out[found] = {kNoPosition, nullptr};
  out.resize(found + 1);
  return out;
}

// Links besides those of the network's layer.
ExtraLinks extra_links(const Shape& shape, const GroupedLinks& outputs, std::vector<Position> positions, const float* values,
                       WiringRoom& room) {
  ExtraLinks out;
  out.order.positions = std::move(positions);
  if (!out.order.positions.empty()) static_cast<GroupedLinks&>(out) = beside(outputs, shape, out.order, room);
  out.weights = aligned_floats(int64_t(out.order.slot.size()));
  for (size_t k = 0; k < out.order.slot.size(); ++k) out.weights.get()[out.order.slot[k]] = values[k];
  return out;
}

}  // namespace

Target::Target(std::shared_ptr<Network> online) : online_(std::move(online)) {
  if (!online_) throw std::invalid_argument("a target needs a network to follow");
  if (online_->norm()) throw std::invalid_argument("a network with batch normalisation cannot have a target");
  std::lock_guard<std::mutex> lock(online_->mutex_);
  for (const Layer& layer : online_->layers()) {
    TargetLayer mine;
    mine.weights = aligned_floats(layer.links());
    std::copy_n(online_->w_.get() + layer.weight_at, layer.links(), mine.weights.get());
    mine.bias = aligned_floats(layer.shape.n_out);
    std::copy_n(online_->w_.get() + layer.bias_at, layer.shape.n_out, mine.bias.get());
    mine.extra.weights = aligned_floats(0);
    layers_.push_back(std::move(mine));
  }
  online_->targets_.push_back(this);
}

Target::~Target() {
  std::lock_guard<std::mutex> lock(online_->mutex_);
  auto& all = online_->targets_;
  all.erase(std::remove(all.begin(), all.end(), this), all.end());
}

const TargetLayer& Target::layer(int64_t index) const {
  online_->layer(index);
  return layers_[index];
}

Batch Target::forward(const Batch& x) {
  std::lock_guard<std::mutex> lock(online_->mutex_);
  Section section;
  const auto& layers = online_->layers();
  if (x.features() != layers[0].shape.n_in)
    throw std::invalid_argument("the network takes " + std::to_string(layers[0].shape.n_in) + " features, the batch has " +
                                std::to_string(x.features()));
  if (out_.size() != x.size()) out_ = Batch(layers.back().shape.n_out, x.size());
  if (x.memory() == out_.memory())
    throw std::invalid_argument("the batch is the target's own output, which forward overwrites: give it a copy");
  Workspace& work = workspace();
  work.owner = 0;
  Batch in = x;
  for (size_t l = 0; l < layers.size(); ++l) {
    const Layer& layer = layers[l];
    const TargetLayer& mine = layers_[l];
    const bool last = l + 1 == layers.size();
    const Batch out = last ? out_ : work.at(l % 2, layer.shape.n_out, x.size());
    const bool normalised = !last && online_->layer_norm();
    const Groups extra = mine.extra.links() > 0 ? mine.extra.view(mine.extra.weights.get()) : Groups{};
    layer.forward(mine.weights.get(), mine.bias.get(), extra, in, !last && !normalised, out);
    if (normalised) normalise(out, nullptr, out, nullptr);
    in = out;
  }
  return out_;
}

void Target::update(float tau) {
  if (!(tau >= 0 && tau <= 1)) throw std::invalid_argument("tau must be from 0 to 1, not " + std::to_string(tau));
  std::lock_guard<std::mutex> lock(online_->mutex_);
  Section section;
  const auto& layers = online_->layers();
  for (size_t l = 0; l < layers.size(); ++l) {
    const Layer& layer = layers[l];
    TargetLayer& mine = layers_[l];
    kernels().polyak(mine.weights.get(), online_->w_.get() + layer.weight_at, tau, layer.links());
    kernels().polyak(mine.extra.weights.get(), nullptr, tau, mine.extra.links());
    kernels().polyak(mine.bias.get(), online_->w_.get() + layer.bias_at, tau, layer.shape.n_out);
    if (mine.extra.links() > 0) prune(mine, layer);  // without extra links there are never more than k
  }
}

// Sets all but the k largest to zero; among equals, those at the lowest positions. Only magnitudes below a limit are examined one
// by one. The limit is remembered from the last time and raised until enough are below it.
void Target::prune(TargetLayer& mine, const Layer& layer) {
  const int block = layer.shape.block;
  const int64_t k = layer.blocks(), extra = mine.extra.links() / block;
  if (int64_t(found_.size()) < k + extra + 1) found_.resize(k + extra + 1);
  int64_t excess = 0, n = 0;
  for (;;) {
    int64_t n_main = 0, n_extra = 0;
    int64_t alive = kernels().small(mine.weights.get(), k, block, mine.limit, found_.data(), &n_main);
    alive += kernels().small(mine.extra.weights.get(), extra, block, mine.limit, found_.data() + n_main, &n_extra);
    for (int64_t i = n_main; i < n_main + n_extra; ++i) found_[i] += uint64_t(k);
    n = n_main + n_extra;
    excess = alive - k;
    if (excess <= n || std::isinf(mine.limit)) break;
    mine.limit *= 2;
  }
  excess = std::min(excess, n);  // NaN weights are never below a limit
  if (excess <= 0) return;
  const uint64_t cut = nth_smallest(n, excess, mine.limit) >> 32;
  const auto drop = [&](int64_t at) {
    float* w = at < k ? mine.weights.get() + at * block : mine.extra.weights.get() + (at - k) * block;
    w[0] = 0.0f;  // most often this is all: a loop here would compile to a memset call for each
    for (int i = 1; i < block; ++i) w[i] = 0.0f;
  };
  std::vector<int64_t> equal;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t score = found_[i] >> 32;
    if (score > cut) continue;
    const int64_t at = int64_t(found_[i] & 0xffffffffu);
    if (score == cut) {
      equal.push_back(at);
    } else {
      drop(at);
      --excess;
    }
  }
  if (excess < int64_t(equal.size())) {
    std::vector<int64_t> position(size_t(k + extra));
    const auto put_positions = [&](const ByPosition& order, int64_t from) {
      for (size_t i = 0; i < order.positions.size(); ++i) position[from + order.slot[i * block] / block] = order.positions[i];
    };
    put_positions(layer.order(workspace()), 0);
    put_positions(mine.extra.order, k);
    std::sort(equal.begin(), equal.end(), [&](int64_t a, int64_t b) { return position[a] < position[b]; });
  }
  for (int64_t i = 0; i < excess; ++i) drop(equal[i]);
  mine.limit = std::max(1.2f * score_of(cut << 32), 1e-30f);
}

// The nth smallest of found_[0 .. n), all below limit: a histogram finds the narrow range it lies in.
uint64_t Target::nth_smallest(int64_t n, int64_t nth, float limit) {
  constexpr int kBins = 256;
  const float scale = kBins / limit;
  if (!std::isfinite(scale) || scale == 0) {
    std::nth_element(found_.begin(), found_.begin() + (nth - 1), found_.begin() + n);
    return found_[nth - 1];
  }
  const auto bin_of = [&](uint64_t f) { return std::min(int(score_of(f) * scale), kBins - 1); };
  int32_t counts[kBins] = {};
  for (int64_t i = 0; i < n; ++i) ++counts[bin_of(found_[i])];
  int bin = 0;
  int64_t before = 0;
  while (before + counts[bin] < nth) before += counts[bin++];
  std::vector<uint64_t> inside;
  for (int64_t i = 0; i < n; ++i)
    if (bin_of(found_[i]) == bin) inside.push_back(found_[i]);
  std::nth_element(inside.begin(), inside.begin() + (nth - before - 1), inside.end());
  return inside[nth - before - 1];
}

Target::Moved Target::moved(int64_t index, const ByPosition& before, const ByPosition& after, const Passage& passage,
                            const GroupedLinks& outputs, WiringRoom& room) const {
  const TargetLayer& mine = layers_[index];
  const Shape& shape = online_->layers()[index].shape;
  const size_t b = size_t(shape.block);
  // No branch below depends on which links were pruned, dropped or grown: it would be mispredicted.
  std::vector<Loose> gone = not_zero(before, passage.gone.size(), mine.weights.get(), b, [&](size_t i) { return passage.gone[i]; });
  const ByPosition& order = mine.extra.order;
  std::vector<Loose> extra = not_zero(order, order.positions.size(), mine.extra.weights.get(), b, [](size_t i) { return i; });
  Moved out;
  size_t n = 0;
  for (size_t e = 0, g = 0; extra[e].position != kNoPosition;) {
    const Position here = extra[e].position, grown = passage.grown[g];
    if (here == grown) {  // rare
      for (size_t i = 0; i < b; ++i) out.back.emplace_back(after.slot[passage.come[g] * b + i], extra[e].values[i]);
      ++e;
      continue;
    }
    const bool stays = here < grown;
    extra[n] = extra[e];
    n += stays;
    e += stays;
    g += !stays;
  }
  extra[n] = {kNoPosition, nullptr};
  n += gone.size() - 1;
  std::vector<Position> positions(n);
  std::vector<float> values(n * b);
  for (size_t d = 0, e = 0; d + e < n;) {
    const bool next_gone = gone[d].position < extra[e].position;
    const Loose one = *(next_gone ? &gone[d] : &extra[e]);
    positions[d + e] = one.position;
    for (size_t i = 0; i < b; ++i) values[(d + e) * b + i] = one.values[i];
    d += next_gone;
    e += !next_gone;
  }
  out.extra = extra_links(shape, outputs, std::move(positions), values.data(), room);
  return out;
}

void Target::rewired(int64_t index, const Passage& passage, Moved moved, WiringRoom& room) noexcept {
  TargetLayer& mine = layers_[index];
  carry(passage, mine.weights.get(), room);
  for (const auto& [slot, value] : moved.back) mine.weights.get()[slot] = value;
  mine.extra = std::move(moved.extra);
}

std::pair<std::vector<Position>, std::vector<float>> Target::extra(int64_t index) const {
  std::lock_guard<std::mutex> lock(online_->mutex_);
  const ExtraLinks& mine = layer(index).extra;
  std::vector<float> values(mine.order.slot.size());
  for (size_t k = 0; k < values.size(); ++k) values[k] = mine.weights.get()[mine.order.slot[k]];
  return {mine.order.positions, values};
}

void Target::set_extra(int64_t index, const int64_t* positions, int64_t n, const float* values) {
  std::lock_guard<std::mutex> lock(online_->mutex_);
  const Layer& online = online_->layer(index);
  std::vector<Position> checked;
  check_positions(online.shape, positions, n, checked);
  Workspace& work = workspace();
  const std::vector<Position>& taken = online.order(work).positions;
  for (int64_t k = 0; k < n; ++k)
    if (std::binary_search(taken.begin(), taken.end(), checked[k]))
      throw std::invalid_argument("extra link " + std::to_string(k) + " of a target is also a link of its network");
  layers_[index].extra = extra_links(online.shape, online.outputs, std::move(checked), values, work.wiring);
}

std::pair<int64_t, int64_t> Target::alive(int64_t index) const {
  std::lock_guard<std::mutex> lock(online_->mutex_);
  const TargetLayer& mine = layer(index);
  const Layer& online = online_->layer(index);
  const int block = online.shape.block;
  const auto count = [block](const float* w, int64_t links) {
    int64_t n = 0;
    for (int64_t k = 0; k < links; k += block) n += std::any_of(w + k, w + k + block, [](float v) { return v != 0.0f; });
    return n * block;
  };
  return {count(mine.weights.get(), online.links()), count(mine.extra.weights.get(), mine.extra.links())};
}

std::map<std::string, int64_t> Target::bytes() const {
  std::lock_guard<std::mutex> lock(online_->mutex_);
  std::map<std::string, int64_t> out;
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& online = online_->layers()[l];
    const TargetLayer& mine = layers_[l];
    out["target weights"] += (online.links() + online.shape.n_out + mine.extra.links()) * 4;
    out["target links"] += mine.extra.bytes();
  }
  return out;
}

}  // namespace rewirl
