#include "target.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "runtime.h"
#include "scratch.h"

namespace rewirl {

namespace {

float score_of(uint64_t found) {
  const uint32_t bits = uint32_t(found >> 32);
  float score;
  std::memcpy(&score, &bits, 4);
  return score;
}

}  // namespace

Target::Target(std::shared_ptr<Network> online) : online_(std::move(online)) {
  if (!online_) throw std::invalid_argument("a target needs a network to follow");
  std::lock_guard<std::mutex> lock(online_->mutex_);
  for (const Layer& layer : online_->layers()) {
    TargetLayer mine;
    mine.weights = aligned_floats(layer.links());
    std::copy_n(online_->w_.get() + layer.weight_at, layer.links(), mine.weights.get());
    mine.bias = aligned_floats(layer.shape.n_out);
    std::copy_n(online_->w_.get() + layer.bias_at, layer.shape.n_out, mine.bias.get());
    mine.extra_weights = aligned_floats(0);
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
  scratch().owner = 0;
  Batch in = x;
  for (size_t l = 0; l < layers.size(); ++l) {
    const Layer& layer = layers[l];
    const TargetLayer& mine = layers_[l];
    const bool last = l + 1 == layers.size();
    const Batch out = last ? out_ : scratch().at(l % 2, layer.shape.n_out, x.size());
    Forward args{};
    args.links = layer.outputs.view(mine.weights.get());
    if (mine.extra.links() > 0) args.extra = mine.extra.view(mine.extra_weights.get());
    args.bias = mine.bias.get();
    args.x = in.data();
    args.y = out.data();
    args.stride = in.stride();
    args.batch = int(in.size());
    args.rows = layer.shape.n_out;
    args.relu = !last;
    for_groups(args.links, 0, layer.outputs.groups(), args.batch, [&](int b, int e) { kernels().forward(args, b, e); });
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
    kernels().polyak(mine.extra_weights.get(), nullptr, tau, mine.extra.links());
    kernels().polyak(mine.bias.get(), online_->w_.get() + layer.bias_at, tau, layer.shape.n_out);
    if (mine.extra.links() > 0) prune(mine, layer);  // without extra links there are never more than k
  }
}

// All but the k largest go to zero; of equal ones those at the lowest places go. Only the few smallest magnitudes are ever
// looked at one by one: those below a limit remembered from the last time, raised until there are enough.
void Target::prune(TargetLayer& mine, const Layer& layer) {
  const int block = layer.shape.block;
  const int64_t k = layer.blocks(), extra = mine.extra.links() / block;
  if (int64_t(found_.size()) < k + extra + 1) found_.resize(k + extra + 1);
  int64_t excess = 0, n = 0;
  for (;;) {
    int64_t n_main = 0, n_extra = 0;
    int64_t alive = kernels().small(mine.weights.get(), k, block, mine.limit, found_.data(), &n_main);
    alive += kernels().small(mine.extra_weights.get(), extra, block, mine.limit, found_.data() + n_main, &n_extra);
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
    float* w = at < k ? mine.weights.get() + at * block : mine.extra_weights.get() + (at - k) * block;
    w[0] = 0.0f;  // most often all there is: a loop from here would be a call of memset for each
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
    std::vector<int64_t> place(size_t(k + extra));
    const auto put_places = [&](const InPlaceOrder& order, int64_t from) {
      for (size_t i = 0; i < order.places.size(); ++i) place[from + order.position[i * block] / block] = order.places[i];
    };
    put_places(layer.order(), 0);
    InPlaceOrder order;
    in_place_order(layer.shape, mine.extra, order);
    put_places(order, k);
    std::sort(equal.begin(), equal.end(), [&](int64_t a, int64_t b) { return place[a] < place[b]; });
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

std::vector<Target::Loose> Target::loosen(int64_t index, const InPlaceOrder& before, const std::vector<uint32_t>& gone) const {
  const TargetLayer& mine = layers_[index];
  const int b = online_->layers()[index].shape.block;
  const auto [places, values] = unlocked_extra(index);
  std::vector<Loose> out(gone.size() + places.size());
  size_t n = 0;
  const auto add = [&](Place place, const auto& value_at) {
    Loose& one = out[n];
    one.place = place;
    bool alive = false;
    for (int i = 0; i < b; ++i) alive |= (one.values[i] = value_at(i)) != 0.0f;
    n += alive;  // no branch: nothing could foresee which the target has pruned
  };
  for (const size_t k : gone)
    add(before.places[k], [&](int i) { return mine.weights.get()[before.position[k * b + i]]; });
  const auto dropped = std::ptrdiff_t(n);
  for (size_t k = 0; k < places.size(); ++k) add(places[k], [&, v = &values](int i) { return (*v)[k * b + i]; });
  out.resize(n);
  std::inplace_merge(out.begin(), out.begin() + dropped, out.end(), [](const Loose& x, const Loose& y) { return x.place < y.place; });
  return out;
}

Target::Moved Target::moved(int64_t index, const InPlaceOrder& before, const InPlaceOrder& after, const Passage& passage,
                            const GroupedLinks& outputs) const {
  const Shape& shape = online_->layers()[index].shape;
  const int b = shape.block;
  const std::vector<Loose> loose = loosen(index, before, passage.gone);
  Moved out;
  std::vector<Place> places;
  std::vector<float> values;
  places.reserve(loose.size());
  values.reserve(loose.size() * b);
  auto now = passage.come.begin();  // only where a link is new can the layer have one now that it did not have before
  for (const Loose& one : loose) {
    while (now != passage.come.end() && after.places[*now] < one.place) ++now;
    if (now != passage.come.end() && after.places[*now] == one.place) {
      for (int i = 0; i < b; ++i) out.back.emplace_back(after.position[size_t(*now) * b + i], one.values[i]);
    } else {
      places.push_back(one.place);
      for (int i = 0; i < b; ++i) values.push_back(one.values[i]);
    }
  }
  put_extra(out, shape, outputs, std::move(places), values.data());
  return out;
}

void Target::rewired(int64_t index, const Passage& passage, Moved moved) noexcept {
  TargetLayer& mine = layers_[index];
  carry(passage, 0, mine.weights.get());
  for (const auto& [position, value] : moved.back) mine.weights.get()[position] = value;
  mine.extra = std::move(moved.extra);
  mine.extra_weights = std::move(moved.extra_weights);
}

void Target::put_extra(Moved& to, const Shape& shape, const GroupedLinks& outputs, std::vector<Place> places,
                       const float* values) {
  InPlaceOrder order{std::move(places), {}};
  if (!order.places.empty()) to.extra = beside(outputs, shape, order);
  to.extra_weights = aligned_floats(int64_t(order.position.size()));
  for (size_t k = 0; k < order.position.size(); ++k) to.extra_weights.get()[order.position[k]] = values[k];
}

std::pair<std::vector<Place>, std::vector<float>> Target::extra(int64_t index) const {
  std::lock_guard<std::mutex> lock(online_->mutex_);
  return unlocked_extra(index);
}

std::pair<std::vector<Place>, std::vector<float>> Target::unlocked_extra(int64_t index) const {
  const TargetLayer& mine = layer(index);
  if (mine.extra.links() == 0) return {};
  InPlaceOrder order;
  in_place_order(online_->layer(index).shape, mine.extra, order);
  std::vector<float> values(order.position.size());
  for (size_t k = 0; k < values.size(); ++k) values[k] = mine.extra_weights.get()[order.position[k]];
  return {order.places, values};
}

void Target::set_extra(int64_t index, const int64_t* places, int64_t n, const float* values) {
  std::lock_guard<std::mutex> lock(online_->mutex_);
  const Layer& online = online_->layer(index);
  std::vector<Place> checked;
  check_places(online.shape, places, n, checked);
  const std::vector<Place>& taken = online.order().places;
  for (int64_t k = 0; k < n; ++k)
    if (std::binary_search(taken.begin(), taken.end(), checked[k]))
      throw std::invalid_argument("extra link " + std::to_string(k) + " of a target is also a link of its network");
  Moved made;
  put_extra(made, online.shape, online.outputs, std::move(checked), values);
  layers_[index].extra = std::move(made.extra);
  layers_[index].extra_weights = std::move(made.extra_weights);
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
  return {count(mine.weights.get(), online.links()), count(mine.extra_weights.get(), mine.extra.links())};
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
