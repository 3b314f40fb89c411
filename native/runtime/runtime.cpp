#include "runtime/runtime.h"

#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <system_error>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

#include "runtime/pool.h"

namespace rewirl {

// ------------------------------------------------------ instruction set

namespace {

std::vector<const Kernels*> available() {
  std::vector<const Kernels*> all{kernels_baseline()};
#if defined(__x86_64__) && !defined(REWIRL_ONLY_BASELINE)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(kernels_avx2());
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    all.push_back(kernels_avx512());
#endif
  return all;
}

std::string names() {
  std::string out;
  for (const std::string& name : available_isas()) out += (out.empty() ? "" : ", ") + name;
  return out;
}

const Kernels* find(const std::string& name) {
  for (const Kernels* k : available())
    if (name == k->name) return k;
  throw std::invalid_argument("instruction set '" + name + "' is not available here; this machine and build have: " + names());
}

std::atomic<const Kernels*>& current() {
  static std::atomic<const Kernels*> in_use = [] {
    const char* wish = std::getenv("REWIRL_ISA");
    return wish && *wish ? find(wish) : available().back();
  }();
  return in_use;
}

}  // namespace

std::vector<std::string> available_isas() {
  std::vector<std::string> out;
  for (const Kernels* k : available()) out.push_back(k->name);
  return out;
}

const Kernels& kernels() { return *current(); }
void select_isa(const std::string& name) { current() = find(name); }

// -------------------------------------------------------------- threads

namespace {

std::shared_ptr<Pool>& pool() {
  static std::shared_ptr<Pool> p = [] {
#if defined(__unix__) || defined(__APPLE__)
    // A forked child has none of the threads: it starts with one, and leaves the parent's pool alone.
    pthread_atfork(nullptr, nullptr, [] {
      new std::shared_ptr<Pool>(std::move(pool()));
      pool() = std::make_shared<Pool>(1, false);
    });
#endif
    return std::make_shared<Pool>(1, false);
  }();
  return p;
}

std::atomic<int64_t> nanoseconds{0};
// Per thread: its nesting of Sections, and whether it works on a job of `each`.
thread_local int depth = 0;
thread_local bool in_each = false;

}  // namespace

// The pool may be exchanged by one Python thread while another is in a kernel, hence the atomic loads and stores.
int threads() { return std::atomic_load(&pool())->size(); }

void set_threads(int n, bool spin) {
  if (n < 1 || n > kMaxThreads)
    throw std::invalid_argument("threads must be from 1 to " + std::to_string(kMaxThreads) + ", not " + std::to_string(n));
  const std::shared_ptr<Pool> now = std::atomic_load(&pool());
  if (n == now->size() && (n == 1 || spin == now->spins())) return;
  try {
    std::atomic_store(&pool(), std::make_shared<Pool>(n, spin));
  } catch (const std::system_error& error) {
    throw std::runtime_error("the system does not start " + std::to_string(n) + " threads (" + error.code().message() +
                             "): there are still " + std::to_string(threads()));
  }
}

void parallel(int64_t n, int64_t grain, int64_t cost, const std::function<void(int64_t, int64_t)>& work) {
  constexpr int64_t worth = 1000000;  // multiply-adds: smaller jobs take less time than moving their data between cores
  const std::shared_ptr<Pool> p = std::atomic_load(&pool());
  if (in_each || p->size() == 1 || cost < worth || n <= grain || !p->run(n, grain, work)) work(0, n);
}

void each(int64_t n, const std::function<void(int64_t)>& work) {
  Section section;  // only the caller's time is counted, which waits for all
  std::vector<std::exception_ptr> failed(static_cast<size_t>(n));
  const auto in_turn = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      try {
        work(i);
      } catch (...) {
        failed[size_t(i)] = std::current_exception();
      }
    }
  };
  const auto shared_out = [&](int64_t begin, int64_t end) {
    in_each = true;
    ++depth;
    in_turn(begin, end);
    --depth;
    in_each = false;
  };
  const std::shared_ptr<Pool> p = std::atomic_load(&pool());
  if (in_each || p->size() == 1 || n == 1 || !p->run(n, 1, shared_out)) in_turn(0, n);
  for (const std::exception_ptr& one : failed)
    if (one) std::rethrow_exception(one);
}

// ------------------------------------------------- around a kernel call

uint64_t flush_subnormals() {
#if defined(__x86_64__) || defined(__i386__)
  const uint64_t saved = _mm_getcsr();
  _mm_setcsr(unsigned(saved) | 0x8040u);
  return saved;
#elif defined(__aarch64__)
  uint64_t saved;
  asm volatile("mrs %0, fpcr" : "=r"(saved));
  asm volatile("msr fpcr, %0" ::"r"(saved | (uint64_t(1) << 24)));
  return saved;
#else
  return 0;
#endif
}

void restore_subnormals(uint64_t saved) {
#if defined(__x86_64__) || defined(__i386__)
  _mm_setcsr(unsigned(saved));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" ::"r"(saved));
#else
  (void)saved;
#endif
}

double kernel_seconds() { return nanoseconds.load() * 1e-9; }

Section::Section() : saved_(flush_subnormals()) {
  if (depth++ == 0) start_ = std::chrono::steady_clock::now();
}

Section::~Section() {
  if (--depth == 0)
    nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
  restore_subnormals(saved_);
}

}  // namespace rewirl
