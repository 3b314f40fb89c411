// A target network: θ' ← τθ + (1-τ)θ', then only the k largest magnitudes of each layer stay (MaintainSparsity).
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "networks/network.h"

namespace rewirl {

// A target layer can be non-zero where the online layer has links, and where it kept links that the online layer dropped.
// The first share the online layer's index arrays and order; only the second, the extra ones, have indices of their own.
// Pruned entries hold 0.
struct ExtraLinks : GroupedLinks {
  ByPosition order;
  std::shared_ptr<float> weights;

  int64_t bytes() const { return GroupedLinks::bytes() + int64_t(order.positions.size() + order.slot.size()) * 4; }
};
struct TargetLayer {
  std::shared_ptr<float> weights, bias;
  ExtraLinks extra;
  float limit = 1e-3f;  // magnitudes below this are examined when pruning: a guess that does not affect the result
};

class Target {
 public:
  explicit Target(std::shared_ptr<Network> online);
  ~Target();
  Target(const Target&) = delete;

  Batch forward(const Batch& x);
  void update(float tau);
  // Used while the online network rewires a layer and holds its lock: weights of the target move to links that the layer now
  // has, or to extra links. `moved` allocates memory and changes nothing; `rewired` changes the target and allocates nothing.
  struct Moved {
    std::vector<std::pair<uint32_t, float>> back;  // slots whose weights are restored
    ExtraLinks extra;
  };
  Moved moved(int64_t layer, const ByPosition& before, const ByPosition& after, const Passage& passage,
              const GroupedLinks& outputs, WiringRoom& room) const;
  void rewired(int64_t layer, const Passage& passage, Moved moved, WiringRoom& room) noexcept;

  const std::shared_ptr<Network>& online() const { return online_; }
  const TargetLayer& layer(int64_t index) const;
  // The extra links of a layer: ascending positions and, in the same order, their weights.
  std::pair<std::vector<Position>, std::vector<float>> extra(int64_t layer) const;
  void set_extra(int64_t layer, const int64_t* positions, int64_t n_positions, const float* weights);
  // Non-zero links: those that the online network has too, and the others.
  std::pair<int64_t, int64_t> alive(int64_t layer) const;
  std::map<std::string, int64_t> bytes() const;

 private:
  void prune(TargetLayer& mine, const Layer& layer);
  uint64_t nth_smallest(int64_t n, int64_t nth, float limit);

  std::shared_ptr<Network> online_;
  std::vector<TargetLayer> layers_;
  Batch out_;
  std::vector<uint64_t> found_;
};

}  // namespace rewirl
