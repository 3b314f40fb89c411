// Limits that Python checks too: module.cpp exports them.
#pragma once
#include <cstdint>

namespace rewirl {

constexpr int64_t kMaxWidth = 65535;              // of a layer: indices have 16 bits
constexpr int64_t kMaxBatch = int64_t(1) << 30;   // features, and samples: their product must fit 64 bits
constexpr int kBlocks[] = {1, 2, 4};              // outputs that may share one input as a block
constexpr int kMaxThreads = 256;
constexpr float kLogStdMin = -20, kLogStdMax = 2;  // of SAC's policy

}  // namespace rewirl
