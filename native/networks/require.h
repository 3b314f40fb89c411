// Checks of what callers give, and numbers that never repeat.
#pragma once
#include <atomic>
#include <cstdint>
#include <sstream>
#include <stdexcept>

namespace rewirl {

// The message is composed only if the check fails.
template <class... Parts>
void require(bool ok, const Parts&... parts) {
  if (ok) return;
  std::ostringstream sentence;
  (sentence << ... << parts);
  throw std::invalid_argument(sentence.str());
}

// Never the same twice.
inline uint64_t new_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace rewirl
