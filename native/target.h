// A target network: θ' ← τθ + (1-τ)θ', then only the k largest magnitudes of each layer stay (MaintainSparsity).
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "network.h"

namespace rewirl {

// A target layer can be non-zero where the online layer has links, and where it kept links that the online layer dropped.
// The first share the online layer's index arrays; only the second, the extra ones, have indices of their own. Pruned
// entries hold 0.
struct TargetLayer {
  std::shared_ptr<float> weight;  // in the order of the online layer's rows
  std::shared_ptr<float> bias;
  Rows extra;
  std::shared_ptr<float> extra_weight;
  float limit = 1e-3f;            // magnitudes below this are looked at when pruning: only a guess, never in the result
};

class Target {
 public:
  explicit Target(std::shared_ptr<Network> online);
  ~Target();
  Target(const Target&) = delete;

  Batch forward(const Batch& x);
  void update(float tau);
  // The online layer has new links; old_rows are those before.
  void rewired(int64_t layer, const Rows& old_rows);

  const std::shared_ptr<Network>& online() const { return online_; }
  TargetLayer& layer(int64_t index);
  // Sets the extra links of a layer: output_block * n_in + input, ascending; their weights are zero.
  void set_extra(int64_t layer, const int64_t* places, int64_t n_places);
  std::vector<int64_t> extra_places(int64_t layer);
  // Links that are not zero: with a place in the online network, and those without.
  std::pair<int64_t, int64_t> alive(int64_t layer);
  std::map<std::string, int64_t> bytes() const;

 private:
  void prune(TargetLayer& mine, const Layer& layer);

  std::shared_ptr<Network> online_;
  std::vector<TargetLayer> layers_;
  std::vector<Batch> out_;
  std::vector<uint64_t> found_;
};

}  // namespace rewirl
