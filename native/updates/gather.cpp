#include "updates/gather.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "runtime/runtime.h"

namespace rewirl {

namespace {

constexpr int64_t kSamples = 16;  // at a time: one cache line of each feature

// Records are spread over a replay far larger than the caches.
void ask_for(const float* const* records, int64_t n, int64_t features) {
  for (int64_t s = 0; s < n; ++s) {
    for (int64_t f = 0; f < features; f += 16) __builtin_prefetch(records[s] + f);
    __builtin_prefetch(records[s] + features - 1);
  }
}

template <int64_t N>
void transpose(const float* const* records, int64_t features, float* to, int64_t stride) {
  const float* from[N];
  std::copy_n(records, N, from);
  for (int64_t f = 0; f < features; ++f, to += stride)
    for (int64_t s = 0; s < N; ++s) to[s] = from[s][f];
}

void check_chosen(int64_t n_records, const int64_t* chosen, int64_t n_chosen, const Batch& out) {
  if (n_chosen != out.size())
    throw std::invalid_argument(std::to_string(n_chosen) + " records for a batch of " + std::to_string(out.size()));
  for (int64_t s = 0; s < n_chosen; ++s)
    if (chosen[s] < 0 || chosen[s] >= n_records)
      throw std::invalid_argument("record " + std::to_string(chosen[s]) + " of a replay that has " + std::to_string(n_records));
}

}  // namespace

void gather(const float* records, int64_t n_records, int64_t width, const int64_t* chosen, int64_t n_chosen, int64_t first,
            const Batch& out) {
  check_chosen(n_records, chosen, n_chosen, out);
  if (first < 0 || first > width - out.features())  // a sum might overflow
    throw std::invalid_argument(std::to_string(out.features()) + " columns from number " + std::to_string(first) +
                                " on, of records that have " + std::to_string(width));
  Section section;
  const int64_t features = out.features(), stride = out.stride();
  const float* from[2][kSamples];
  const auto look_up = [&](int64_t s, const float** at) {
    const int64_t n = std::min(kSamples, n_chosen - s);
    for (int64_t i = 0; i < n; ++i) at[i] = records + chosen[s + i] * width + first;
    ask_for(at, std::max<int64_t>(n, 0), features);
  };
  look_up(0, from[0]);
  for (int64_t s = 0, turn = 0; s < n_chosen; s += kSamples, turn ^= 1) {
    look_up(s + kSamples, from[turn ^ 1]);  // prefetches the next ones while these are copied
    float* to = out.data() + s;
    if (n_chosen - s >= kSamples)
      transpose<kSamples>(from[turn], features, to, stride);
    else
      for (int64_t i = 0; i < n_chosen - s; ++i) transpose<1>(from[turn] + i, features, to + i, stride);
  }
}

void extend(const float* records, int64_t n_records, int64_t width, const int64_t* chosen, int64_t n_chosen, int64_t newest,
            int64_t reward, int64_t n, float gamma, const Batch& out, int64_t apart) {
  check_chosen(n_records, chosen, n_chosen, out);
  if (out.features() != width || reward < width - reward - 2 || reward + 2 >= width)
    throw std::invalid_argument("records of " + std::to_string(width) + " numbers with the reward at " + std::to_string(reward) +
                                " do not fit a batch of " + std::to_string(out.features()) + " features");
  if (apart < 1 || newest < 0 || newest >= n_records)
    throw std::invalid_argument("the newest record is " + std::to_string(newest) + " of " + std::to_string(n_records) +
                                ", records that follow each other are " + std::to_string(apart) + " apart");
  Section section;
  const int64_t stride = out.stride();
  const auto added_since = [&](int64_t at) { return newest >= at ? newest - at : newest - at + n_records; };
  for (int64_t s = 0; s < n_chosen; ++s) {
    int64_t at = chosen[s];
    double sum = records[at * width + reward], discount = 1;
    for (int64_t k = 1; k < n && added_since(at) >= apart; ++k) {
      const float* record = records + at * width;
      const int64_t next = at < n_records - apart ? at + apart : at + apart - n_records;
      const int64_t n_obs = width - reward - 2;
      if (record[reward + 1] != 0 || std::memcmp(record + reward + 2, records + next * width, size_t(n_obs) * 4) != 0) break;
      at = next;
      discount *= gamma;
      sum += discount * records[at * width + reward];
    }
    if (at == chosen[s]) continue;  // as gather wrote it
    const float* last = records + at * width;
    float* to = out.data() + s;
    to[reward * stride] = float(sum);
    to[(reward + 1) * stride] = float(1 - discount * (1 - double(last[reward + 1])));
    for (int64_t f = reward + 2; f < width; ++f) to[f * stride] = last[f];
  }
}

void standardise(const Batch& x, const float* mean, const float* std, int64_t features, float limit) {
  if (features != x.features())
    throw std::invalid_argument(std::to_string(features) + " means for a batch of " + std::to_string(x.features()) + " features");
  Section section;
  for (int64_t f = 0; f < features; ++f) {
    float* __restrict row = x.data() + f * x.stride();
    for (int64_t s = 0; s < x.size(); ++s) {
      const float scaled = (row[s] - mean[f]) / std[f];
      row[s] = scaled < -limit ? -limit : scaled > limit ? limit : scaled;
    }
  }
}

}  // namespace rewirl
