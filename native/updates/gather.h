// From replay records to a feature-major batch.
#pragma once
#include <cstdint>

#include "networks/batch.h"

namespace rewirl {

// Feature f of sample s becomes records[chosen[s]][first + f].
void gather(const float* records, int64_t n_records, int64_t width, const int64_t* chosen, int64_t n_chosen, int64_t first,
            const Batch& out);

// Turns the transitions that gather took, with rows obs | action | reward | flag | next obs, into windows of k ≤ n steps. A window
// ends at a termination (flag 1), at the newest record, and where the next record does not begin with the observation that this one
// ended with: an episode was cut off there. Rewards become discounted sums, and next obs is that of the last step. The flag becomes
// 1 - γ^(k-1) (1 - flag of the last), so that reward + γ (1 - flag) Q is the k-step target. Record r is followed by r + apart
// (as many environments take turns), in a ring.
void extend(const float* records, int64_t n_records, int64_t width, const int64_t* chosen, int64_t n_chosen, int64_t newest,
            int64_t reward, int64_t n, float gamma, const Batch& out, int64_t apart);

// Each row f of x becomes (x - mean[f]) / std[f], clipped to ± limit.
void standardise(const Batch& x, const float* mean, const float* std, int64_t features, float limit);

}  // namespace rewirl
