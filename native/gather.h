// From replay records to a feature-major batch.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

#include "batch.h"

namespace rewirl {

// Feature f of sample s becomes records[chosen[s]][first + f]. Records lie all over a replay far larger than the caches, so
// those of the next samples are asked for ahead of time.
inline void gather(const float* records, int64_t n_records, int64_t width, const int64_t* chosen, int64_t n_chosen,
                   int64_t first, const Batch& out) {
  if (n_chosen != out.size())
    throw std::invalid_argument(std::to_string(n_chosen) + " records for a batch of " + std::to_string(out.size()));
  if (first < 0 || first > width - out.features())  // a sum might overflow
    throw std::invalid_argument(std::to_string(out.features()) + " columns from number " + std::to_string(first) +
                                " on, of records that have " + std::to_string(width));
  for (int64_t s = 0; s < n_chosen; ++s)
    if (chosen[s] < 0 || chosen[s] >= n_records)
      throw std::invalid_argument("record " + std::to_string(chosen[s]) + " of a replay that has " + std::to_string(n_records));
  constexpr int64_t ahead = 8;
  const auto ask = [&](int64_t s) {
    const float* from = records + chosen[s] * width + first;
    for (int64_t f = 0; f < out.features(); f += 16) __builtin_prefetch(from + f);
    __builtin_prefetch(from + out.features() - 1);
  };
  for (int64_t s = 0; s < ahead && s < n_chosen; ++s) ask(s);
  for (int64_t s = 0; s < n_chosen; ++s) {
    if (s + ahead < n_chosen) ask(s + ahead);
    const float* from = records + chosen[s] * width + first;
    float* to = out.data() + s;
    for (int64_t f = 0; f < out.features(); ++f) to[f * out.stride()] = from[f];
  }
}

}  // namespace rewirl
