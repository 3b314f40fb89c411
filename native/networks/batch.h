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

#include "runtime/limits.h"

namespace rewirl {

constexpr int64_t kPad = 16;  // floats: the widest vector, and one cache line

inline int64_t padded(int64_t n) { return (n + kPad - 1) / kPad * kPad; }

// Zeroed, aligned to a cache line, with room behind for reads of whole vectors, of blocks of four numbers too.
inline std::shared_ptr<float> aligned_floats(int64_t n) {
  const size_t bytes = size_t(padded(n) + 4 * kPad) * sizeof(float);
  void* p = std::aligned_alloc(64, bytes);
  if (!p) throw std::bad_alloc();
  std::memset(p, 0, bytes);
  return std::shared_ptr<float>(static_cast<float*>(p), std::free);
}

// A batch of vectors, feature-major: row f holds feature f of every sample. The padding behind each row is 0 or what
// a kernel left there, and the number of cache lines per row is odd, since rows 2^n bytes apart would share few sets of the cache.
class Batch {
 public:
  Batch() = default;
  Batch(int64_t features, int64_t size) : features_(features), size_(size) {
    if (features < 1 || size < 1)
      throw std::invalid_argument("a batch needs at least one feature and one sample, not " + std::to_string(features) +
                                  " × " + std::to_string(size));
    if (features > kMaxBatch || size > kMaxBatch)
      throw std::invalid_argument("a batch has at most 2^30 features and samples, not " + std::to_string(features) + " × " +
                                  std::to_string(size));
    stride_ = padded(size);
    if (stride_ / kPad % 2 == 0) stride_ += kPad;
    memory_ = aligned_floats(features * stride_);
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
};

}  // namespace rewirl
