// A pool of threads for one job at a time.
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#include "runtime/runtime.h"

namespace rewirl {

inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Pool {
 public:
  // A thread that waits spins first, since the next kernel follows within microseconds, and sleeps after about half a millisecond.
  // With more threads than cores it must not spin at all: it would take a core from the threads that it waits for.
  Pool(int n, bool spin) : n_(n), spins_(spin ? 20000 : 0), errors_(size_t(n)) {
    try {
      for (int i = 1; i < n; ++i) workers_.emplace_back([this, i] { serve(i); });
    } catch (...) {  // the system has no more threads: those already started must not outlive the pool
      stop();
      throw;
    }
  }

  ~Pool() { stop(); }

  int size() const { return n_; }
  bool spins() const { return spins_ > 0; }

  // Calls work for one range per thread. If some throw, the others still finish, and the first error is rethrown here.
  // False, with nothing done, when another thread is using the pool.
  bool run(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& work) {
    std::unique_lock<std::mutex> busy(busy_, std::try_to_lock);
    if (!busy) return false;
    work_ = &work;
    const int64_t grains = (n + grain - 1) / grain;
    share_ = (grains + n_ - 1) / n_ * grain;
    total_ = n;
    pending_.store(n_ - 1);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ticket_.fetch_add(1);
    }
    if (sleeping_.load() > 0) wake_.notify_all();
    part(0);
    wait_for_others();
    std::exception_ptr first;
    for (std::exception_ptr& error : errors_)
      if (std::exception_ptr one = std::exchange(error, nullptr); one && !first) first = std::move(one);
    if (first) std::rethrow_exception(first);
    return true;
  }

 private:
  void stop() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
      ticket_.fetch_add(1);
    }
    wake_.notify_all();
    for (std::thread& t : workers_) t.join();
  }

  void part(int i) noexcept {
    const int64_t begin = std::min(total_, i * share_), end = std::min(total_, begin + share_);
    try {
      if (begin < end) (*work_)(begin, end);
    } catch (...) {
      errors_[size_t(i)] = std::current_exception();
    }
  }

  void wait_for_others() noexcept {
    for (int spin = 0; spin < spins_; ++spin) {
      if (pending_.load(std::memory_order_acquire) == 0) return;
      pause();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    caller_sleeps_.store(true);
    done_.wait(lock, [&] { return pending_.load() == 0; });
    caller_sleeps_.store(false);
  }

  void serve(int i) noexcept {
    flush_subnormals();
    uint64_t seen = 0;
    for (;;) {
      for (int spin = 0; spin < spins_ && ticket_.load(std::memory_order_acquire) == seen; ++spin) pause();
      if (ticket_.load() == seen) {
        std::unique_lock<std::mutex> lock(mutex_);
        sleeping_.fetch_add(1);
        wake_.wait(lock, [&] { return ticket_.load() != seen; });
        sleeping_.fetch_sub(1);
      }
      seen = ticket_.load(std::memory_order_acquire);
      if (stop_) return;
      part(i);
      if (pending_.fetch_sub(1) == 1 && caller_sleeps_.load()) {
        std::lock_guard<std::mutex> lock(mutex_);
        done_.notify_one();
      }
    }
  }

  const int n_, spins_;
  std::vector<std::thread> workers_;
  std::vector<std::exception_ptr> errors_;  // one per part
  std::mutex busy_, mutex_;
  std::condition_variable wake_, done_;
  std::atomic<uint64_t> ticket_{0};
  std::atomic<int> pending_{0}, sleeping_{0};
  std::atomic<bool> caller_sleeps_{false};
  bool stop_ = false;
  const std::function<void(int64_t, int64_t)>* work_ = nullptr;
  int64_t share_ = 0, total_ = 0;
};

}  // namespace rewirl
