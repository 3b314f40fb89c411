// From replay records to a feature-major batch.
#pragma once
#include <cstdint>

#include "batch.h"

namespace rewirl {

// Feature f of sample s becomes records[chosen[s]][first + f].
void gather(const float* records, int64_t n_records, int64_t width, const int64_t* chosen, int64_t n_chosen, int64_t first,
            const Batch& out);

}  // namespace rewirl
