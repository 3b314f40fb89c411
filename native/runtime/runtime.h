// Around kernel calls: choice of the instruction set, threads, subnormals, time.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/limits.h"

namespace rewirl {

// The instruction sets that this build and this machine both have, slowest first.
std::vector<std::string> available_isas();
// The table in use; chosen at import, by REWIRL_ISA where that is set.
const Kernels& kernels();
// Throws std::invalid_argument for a name that is not available.
void select_isa(const std::string& name);

int threads();
// Throws std::invalid_argument below 1 or above kMaxThreads. Threads that wait may spin for a moment if each has a core.
void set_threads(int n, bool spin = true);

// Calls work(begin, end) over [0, n), split over the threads into ranges that begin at multiples of grain. Results must not
// depend on the split. Cheap jobs (cost in multiply-adds) stay on the calling thread. If some throw, the others
// still finish, and the first error is rethrown.
void parallel(int64_t n, int64_t grain, int64_t cost, const std::function<void(int64_t, int64_t)>& work);

// Calls work(i) for each i of [0, n). With the same n and number of threads, a job always runs on the same thread, so that its data
// stay in one core's caches. For independent jobs: within one, `parallel` uses no further threads. Errors as above.
void each(int64_t n, const std::function<void(int64_t)>& work);

// Seconds spent inside the core since the process began; what remains of a run is Python.
double kernel_seconds();

// Held during every entry into the core: subnormals are flushed to zero (fading Adam moments would halve the speed), and
// the time is counted.
class Section {
 public:
  Section();
  ~Section();
  Section(const Section&) = delete;

 private:
  uint64_t saved_;
  std::chrono::steady_clock::time_point start_;
};

// Sets flush-to-zero for this thread; gives what was set before.
uint64_t flush_subnormals();
void restore_subnormals(uint64_t saved);

}  // namespace rewirl
