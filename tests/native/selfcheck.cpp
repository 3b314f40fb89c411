// The core without Python, against sums in double precision: for machines and vector widths that the tests cannot run on.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <random>
#include <stdexcept>

#include "networks/network.h"
#include "networks/target.h"
#include "networks/workspace.h"
#include "runtime/runtime.h"
#include "updates/losses.h"

using namespace rewirl;

namespace {

std::mt19937 generator(1);
float number() { return (int(generator() % 2000) - 1000) * 1e-3f; }

double worst = 0;
void compare(double expected, float got) { worst = std::max(worst, std::isnan(got) ? INFINITY : std::fabs(expected - got)); }

Batch random_batch(int features, int size) {
  Batch batch(features, size);
  for (int f = 0; f < features; ++f)
    for (int s = 0; s < size; ++s) batch.data()[f * batch.stride() + s] = number();
  return batch;
}

float at(const Batch& batch, int feature, int sample) { return batch.data()[feature * batch.stride() + sample]; }

void check(int n_in, int n_out, int block, int batch, int percent = 50) {
  const Shape shape = checked_shape(n_in, n_out, block);
  std::vector<int64_t> positions;
  for (int64_t k = 0; k < shape.n_positions(); ++k)
    if (int(generator() % 100) < percent || k == 0) positions.push_back(k);
  const auto net = std::make_shared<Network>(std::vector<Layer>{Layer(shape, positions.data(), int64_t(positions.size()), false)});
  std::vector<float> parameters(size_t(net->size()));
  for (float& p : parameters) p = number();
  net->set_parameters(parameters.data());
  Target target(net);

  // the same links as a dense matrix, and where each of them stands
  std::vector<double> dense(size_t(n_in) * n_out), bias(n_out);
  std::vector<int64_t> where(dense.size(), -1);
  const ByPosition& order = net->layer(0).order(workspace());
  for (size_t k = 0; k < order.slot.size(); ++k) {
    const int64_t position = order.positions[k / block];
    const size_t cell = size_t(position % (n_out / block) * block + int64_t(k % block)) * n_in + position / (n_out / block);
    dense[cell] = parameters[order.slot[k]];
    where[cell] = order.slot[k];
  }
  for (int i = 0; i < n_out; ++i) bias[i] = parameters[size_t(net->layer(0).bias_at) + i];

  const Batch x = random_batch(n_in, batch), dy = random_batch(n_out, batch);
  const Batch y = net->forward(x), target_y = target.forward(x), dx = net->backward(dy, true, 0, n_in);
  std::vector<float> observation(n_in), action(n_out);
  for (float& o : observation) o = number();
  net->act(observation.data(), action.data());
  for (int i = 0; i < n_out; ++i) {
    for (int s = 0; s < batch; ++s) {
      double sum = bias[i];
      for (int j = 0; j < n_in; ++j) sum += dense[size_t(i) * n_in + j] * at(x, j, s);
      compare(sum, at(y, i, s));
      compare(sum, at(target_y, i, s));
    }
    double sum = bias[i];
    for (int j = 0; j < n_in; ++j) sum += dense[size_t(i) * n_in + j] * observation[j];
    compare(sum, action[i]);
    for (int j = 0; j < n_in; ++j) {
      if (where[size_t(i) * n_in + j] < 0) continue;
      double gradient = 0;
      for (int s = 0; s < batch; ++s) gradient += double(at(dy, i, s)) * at(x, j, s);
      compare(gradient, net->gradients()[where[size_t(i) * n_in + j]]);
    }
  }
  for (int j = 0; j < n_in; ++j)
    for (int s = 0; s < batch; ++s) {
      double sum = 0;
      for (int i = 0; i < n_out; ++i) sum += dense[size_t(i) * n_in + j] * at(dy, i, s);
      compare(sum, at(dx, j, s));
    }

  // one step of Adam moves every weight by lr against the sign of its gradient
  net->step({1e-3f, 0.9f, 0.999f, 1e-12f, 0.0f});
  for (int64_t k = 0; k < net->size(); ++k)
    if (std::fabs(net->gradients()[k]) > 1e-4f)
      compare(parameters[k] - std::copysign(1e-3, net->gradients()[k]), net->parameters()[k]);
  target.update(0.25f);
  for (int64_t k = 0; k < net->layer(0).links(); ++k)
    compare(0.25 * net->parameters()[k] + 0.75 * parameters[k], target.layer(0).weights.get()[k]);
}

// Actions of a squashed Gaussian, and the gradient of α log π + c · a by how it changes.
void check_squash(int n_act, int batch) {
  const float alpha = 0.3f;
  const Batch out = random_batch(2 * n_act, batch), noise = random_batch(n_act, batch), c = random_batch(n_act, batch);
  const Batch action(n_act, batch), spread(n_act, batch), log_prob(1, batch), d_out(2 * n_act, batch), none(n_act, batch);
  squash(out, noise, action, spread, log_prob);
  through_squash(out, noise, action, spread, c, none, alpha, d_out);
  for (int s = 0; s < batch; ++s) {
    const auto log_prob_of = [&](int i, double mean, double log_std, double& tanh) {
      const double z = at(noise, i, s), u = mean + std::exp(log_std) * z;
      tanh = std::tanh(u);
      return -0.5 * z * z - log_std - 0.5 * std::log(2 * M_PI) - std::log(1 - tanh * tanh);
    };
    double sum = 0;
    for (int i = 0; i < n_act; ++i) {
      const double mean = at(out, i, s), log_std = at(out, n_act + i, s), h = 1e-5;
      double a;
      sum += log_prob_of(i, mean, log_std, a);
      compare(a, at(action, i, s));
      compare(std::exp(log_std), at(spread, i, s));
      const auto loss = [&](double m, double l) {
        const double log_pi = log_prob_of(i, m, l, a);
        return alpha / batch * log_pi + at(c, i, s) * a;
      };
      compare((loss(mean + h, log_std) - loss(mean - h, log_std)) / (2 * h), at(d_out, i, s));
      compare((loss(mean, log_std + h) - loss(mean, log_std - h)) / (2 * h), at(d_out, n_act + i, s));
    }
    compare(sum, at(log_prob, 0, s));
  }
}

// Normal numbers from the first and the last bits that there can be, and from others.
void check_normals() {
  uint64_t bits[kNormals / 2];
  alignas(64) float out[kNormals];
  for (uint64_t& b : bits) b = uint64_t(generator()) << 32 | generator();
  const uint64_t all = ~uint64_t(0), half = uint64_t(1) << 63, eighth = uint64_t(1) << 61;
  std::copy_n(std::initializer_list<uint64_t>{0, 1, 2, all, half, half - 1, eighth, eighth - 1, all >> 32, all << 32}.begin(), 10, bits);
  kernels().normals(bits, out);
  for (int64_t i = 0; i < kNormals / 2; ++i) {
    const double a = (float(bits[i] >> 1 & 0x7fffffff) + 0.5f) / 0x1p31, b = double(bits[i] >> 32) / 0x1p32;
    const double r = std::sqrt(-2 * std::log(a));
    compare(r * std::cos(2 * M_PI * b), out[i]);
    compare(r * std::sin(2 * M_PI * b), out[kNormals / 2 + i]);
  }
}

// An error in any thread reaches the caller, after all threads have ended; the pool works as before.
bool check_errors() {
  bool right = true;
  for (bool spin : {false, true}) {
    set_threads(3, spin);
    for (int64_t thrower = -1; thrower < 3; ++thrower) {
      std::atomic<int> done{0};
      bool thrown = false;
      try {
        parallel(3, 1, 1 << 30, [&](int64_t begin, int64_t) {
          ++done;
          if (begin == thrower) throw std::runtime_error("on purpose");
        });
      } catch (const std::runtime_error&) {
        thrown = true;
      }
      right &= done == 3 && thrown == (thrower >= 0);
    }
  }
  set_threads(1);
  return right;
}

}  // namespace

int main() {
  for (int block : {1, 2, 4})
    for (int trial = 0; trial < 12; ++trial)
      check(1 + int(generator() % 40), block * (1 + int(generator() % 10)), block, 1 + int(generator() % 90));
  // Quads of two columns, with parts of three rows taken apart, and of four columns.
  for (int percent : {50, 65, 10}) check(200, 41, 1, 77, percent);
  for (int batch : {1, 16, 37}) check_squash(3, batch);
  check_normals();
  if (!check_errors()) return std::puts("an error in a thread was lost"), 1;
  std::printf("%s: largest difference %g\n", kernels().name, worst);
  return worst < 2e-5 ? 0 : 1;
}
