#include "updates/losses.h"

#include <cmath>
#include <initializer_list>
#include <limits>

#include "networks/workspace.h"
#include "runtime/runtime.h"

namespace rewirl {

namespace {

void expect(int64_t features, int64_t size, std::initializer_list<const Batch*> batches) {
  for (const Batch* batch : batches)
    if (batch->features() != features || batch->size() != size)
      throw std::invalid_argument("wanted " + std::to_string(features) + " × " + std::to_string(size) + " numbers, not " +
                                  std::to_string(batch->features()) + " × " + std::to_string(batch->size()));
}

// NaN counts as the smaller, so that it is not hidden.
inline float lower(float a, float b) { return a < b || a != a ? a : b; }
// NaN stays.
inline float clip(float x, float limit) { return x < -limit ? -limit : x > limit ? limit : x; }

// f(row of each batch) for every row.
template <class F, class... Batches>
void for_rows(const F& f, const Batch& first, const Batches&... others) {
  for (int64_t i = 0; i < first.features(); ++i) f(first.data() + i * first.stride(), (others.data() + i * others.stride())...);
}

// y = r + γ (1 - terminated) value: nothing follows a terminal state.
template <class F>
void discounted(const Batch& reward, const Batch& terminated, float gamma, const Batch& y, const F& value) {
  expect(1, y.size(), {&reward, &terminated, &y});
  Section section;
  const float *r = reward.data(), *end = terminated.data();
  float* __restrict out = y.data();
  for (int64_t s = 0; s < y.size(); ++s) out[s] = r[s] + gamma * (1 - end[s]) * value(s);
}

// The loss 1/N Σ (q - y)² and the mean of q; the loss's gradient goes into dq.
std::pair<double, double> squared_error(const Batch& q, const Batch& y, const Batch& dq) {
  expect(1, q.size(), {&q, &y, &dq});
  Section section;
  const int64_t n = q.size();
  const float *have = q.data(), *want = y.data(), scale = float(2.0 / double(n));
  float* __restrict out = dq.data();
  double squares = 0, sum = 0;
  for (int64_t s = 0; s < n; ++s) {
    const float error = have[s] - want[s];
    out[s] = error * scale;
    squares += double(error) * error;
    sum += have[s];
  }
  // A loss that overflows float counts as infinite, as it would in float arithmetic.
  const double loss = squares / double(n);
  return {loss > std::numeric_limits<float>::max() ? std::numeric_limits<double>::infinity() : loss, sum / double(n)};
}

}  // namespace

void tanh(const Batch& out, const Batch& action) {
  expect(action.features(), action.size(), {&out});
  Section section;
  const auto row = [n = action.size()](const float* x, float* y) { kernels().tanh(x, y, n); };
  for_rows(row, out, action);
}

void smooth(const Batch& action, const Batch& noise, float sigma, float c) {
  expect(action.features(), action.size(), {&noise});
  Section section;
  const int64_t n = action.size();
  const auto row = [&](float* __restrict a, const float* __restrict z) {
    for (int64_t s = 0; s < n; ++s) a[s] = clip(a[s] + clip(sigma * z[s], c), 1.0f);
  };
  for_rows(row, action, noise);
}

void bellman(const Batch& reward, const Batch& terminated, const Batch& q1, const Batch& q2, float gamma, const Batch& y) {
  expect(1, y.size(), {&q1, &q2});
  const float *a = q1.data(), *b = q2.data();
  discounted(reward, terminated, gamma, y, [=](int64_t s) { return lower(a[s], b[s]); });
}

void soft_bellman(const Batch& reward, const Batch& terminated, const Batch& q1, const Batch& q2, float gamma, float alpha,
                  const Batch& log_prob, const Batch& y) {
  expect(1, y.size(), {&q1, &q2, &log_prob});
  const float *a = q1.data(), *b = q2.data(), *l = log_prob.data();
  discounted(reward, terminated, gamma, y, [=](int64_t s) { return lower(a[s], b[s]) - alpha * l[s]; });
}

std::pair<double, double> regress(Network& net, const Batch& x, const Batch& y, const AdamOptions& adam) {
  const Batch q = net.forward(x);
  Workspace& work = workspace();
  work.owner = 0;  // overwrites what another network's backward left there
  const Batch dq = work.at(net.layers().size() - 1, q.features(), q.size());  // behind those of hidden layers
  const auto loss = squared_error(q, y, dq);
  if (!std::isfinite(loss.first)) return loss;
  net.backward(dq, true, 0, 0);
  net.step(adam);
  return loss;
}

double ascend(const Batch& q, const Batch& dq) {
  expect(1, q.size(), {&q, &dq});
  Section section;
  double sum = 0;
  for (int64_t s = 0; s < q.size(); ++s) {
    dq.data()[s] = float(-1.0 / double(q.size()));
    sum += q.data()[s];
  }
  return sum / double(q.size());
}

double ascend_lower(const Batch& q1, const Batch& q2, const Batch& dq1, const Batch& dq2) {
  expect(1, q1.size(), {&q1, &q2, &dq1, &dq2});
  Section section;
  const int64_t n = q1.size();
  const float *a = q1.data(), *b = q2.data(), each = float(-1.0 / double(n));
  float *__restrict da = dq1.data(), *__restrict db = dq2.data();
  double sum = 0;
  for (int64_t s = 0; s < n; ++s) {
    const bool first = a[s] <= b[s];
    da[s] = first ? each : 0.0f;
    db[s] = first ? 0.0f : each;
    sum += lower(a[s], b[s]);
  }
  return sum / double(n);
}

void through_tanh(const Batch& action, const Batch& da, const Batch& du) {
  expect(action.features(), action.size(), {&da, &du});
  Section section;
  const int64_t n = action.size();
  const auto row = [&](const float* __restrict a, const float* __restrict d, float* __restrict out) {
    for (int64_t s = 0; s < n; ++s) out[s] = d[s] * (1 - a[s] * a[s]);
  };
  for_rows(row, action, da, du);
}

void squash(const Batch& out, const Batch& noise, const Batch& action, const Batch& std, const Batch& log_prob) {
  const int64_t n_act = action.features(), n = action.size();
  expect(n_act, n, {&noise, &std});
  expect(2 * n_act, n, {&out});
  expect(1, n, {&log_prob});
  Section section;
  kernels().squash({out.data(), noise.data(), action.data(), std.data(), log_prob.data(), out.stride(), int(n_act), int(n)});
}

void through_squash(const Batch& out, const Batch& noise, const Batch& action, const Batch& std, const Batch& da1,
                    const Batch& da2, float alpha, const Batch& d_out) {
  const int64_t n_act = action.features(), n = action.size();
  expect(n_act, n, {&noise, &std, &da1, &da2});
  expect(2 * n_act, n, {&out, &d_out});
  Section section;
  const Squash args{out.data(), noise.data(), action.data(), std.data(), nullptr, out.stride(), int(n_act), int(n)};
  kernels().through_squash(args, da1.data(), da2.data(), alpha / float(n), d_out.data());
}

}  // namespace rewirl
