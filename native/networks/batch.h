// Memory that kernels may use: aligned, padded, never handed out with its padding.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "runtime/limits.h"

namespace rewirl {

constexpr int64_t kPad = 16;  // floats: the widest vector, and one cache line

inline int64_t padded(int64_t n) { return (n + kPad - 1) / kPad * kPad; }

// Rows of a wide layer's batch are read in any order: with pages of 4 KB most of them would miss the first table of addresses.
constexpr size_t kHugePage = size_t(2) << 20;

// Zeroed, aligned to a cache line, with room behind for reads of whole vectors, of blocks of four numbers too.
inline std::shared_ptr<float> aligned_floats(int64_t n) {
  const size_t bytes = size_t(padded(n) + 4 * kPad) * sizeof(float);
  const bool huge = bytes >= kHugePage;
  void* p = huge ? std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage) : std::aligned_alloc(64, bytes);
  if (!p) throw std::bad_alloc();
#if defined(__linux__)
  if (huge) madvise(p, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);  // only a wish
#endif
  std::memset(p, 0, bytes);
  return std::shared_ptr<float>(static_cast<float*>(p), std::free);
}

// A batch of vectors, feature-major: row f holds feature f of every sample. The padding behind each row is 0 or what
// a kernel left there, and the number of cache lines per row is odd, since rows 2^n bytes apart would share few sets of the cache.
class Batch {
 public:
  Batch() = default;
  Batch(int64_t features, int64_t size) : Batch(features, size, Batch()) {}
  // In the memory of another batch, whose numbers are lost, or in memory of its own where that is too small.
  Batch(int64_t features, int64_t size, const Batch& other) : features_(features), size_(size) {
    if (features < 1 || size < 1)
      throw std::invalid_argument("a batch needs at least one feature and one sample, not " + std::to_string(features) +
                                  " × " + std::to_string(size));
    if (features > kMaxBatch || size > kMaxBatch)
      throw std::invalid_argument("a batch has at most 2^30 features and samples, not " + std::to_string(features) + " × " +
                                  std::to_string(size));
    stride_ = padded(size);
    if (stride_ / kPad % 2 == 0) stride_ += kPad;
    const int64_t needed = features * stride_;
    const bool fits = needed <= other.room_;
    room_ = fits ? other.room_ : needed;
    memory_ = fits ? other.memory_ : aligned_floats(needed);
    data_ = memory_.get();
  }

  // Features begin .. end of this batch, in the same memory.
  Batch rows(int64_t begin, int64_t end) const {
    if (begin < 0 || end > features_ || begin >= end)
      throw std::invalid_argument("rows " + std::to_string(begin) + " to " + std::to_string(end) +
                                  " do not lie in a batch of " + std::to_string(features_) + " features");
    Batch part = *this;
    part.data_ = data_ + begin * stride_;
    part.features_ = end - begin;
    return part;
  }

  int64_t features() const { return features_; }
  int64_t size() const { return size_; }
  int64_t stride() const { return stride_; }
  float* data() const { return data_; }
  const std::shared_ptr<float>& memory() const { return memory_; }

 private:
  std::shared_ptr<float> memory_;
  float* data_ = nullptr;
  int64_t features_ = 0, size_ = 0, stride_ = 0;
  int64_t room_ = 0;  // numbers that the memory holds
};

}  // namespace rewirl
