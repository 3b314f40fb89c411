// How many billion floating-point operations per second one core can do at most: multiply-adds in registers and nothing else.
// bounds.py compiles and runs it. Prints that of the fastest of many short bursts.
#include <algorithm>
#include <chrono>
#include <cstdio>

#if defined(__AVX512F__)
constexpr int kBytes = 64, kSums = 24;
#elif defined(__AVX__)
constexpr int kBytes = 32, kSums = 12;
#else
constexpr int kBytes = 16, kSums = 12;
#endif
typedef float vec __attribute__((vector_size(kBytes)));

int main(int arguments, char**) {  // their number is a number that no compiler knows
  constexpr int kTurns = 4000, kBursts = 4000;
  const vec a = vec{} + 0.5f * float(arguments), b = vec{} + 1e-3f * float(arguments);
  double least = 1e9;  // seconds
  float seen = 0;
  for (int burst = 0; burst < kBursts; ++burst) {
    vec sums[kSums];
    for (int i = 0; i < kSums; ++i) sums[i] = vec{} + float(i + arguments);  // no two alike, or one would do for all
    const auto start = std::chrono::steady_clock::now();
    for (int turn = 0; turn < kTurns; ++turn) {
#pragma GCC unroll 32
      for (int i = 0; i < kSums; ++i) sums[i] = a * sums[i] + b;
    }
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    for (const vec& sum : sums) seen += sum[0];
  }
  const double operations = 2.0 * kTurns * kSums * (kBytes / 4) / 1e9;
  std::printf("%.1f\n", operations / least);
  return seen == 0;  // or a compiler could leave all of it out
}
