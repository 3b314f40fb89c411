#include "networks/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "runtime/runtime.h"

namespace rewirl {

BatchNorm::BatchNorm(const BatchNormOptions& options, const std::vector<int>& inputs, int64_t size)
    : options_(options), folded_(aligned_floats(size)), size_(size) {
  if (!(options.momentum >= 0 && options.momentum < 1))
    throw std::invalid_argument("the momentum of batch normalisation must be from 0 to below 1, not " + std::to_string(options.momentum));
  if (!(options.eps > 0)) throw std::invalid_argument("eps of batch normalisation must be positive, not " + std::to_string(options.eps));
  if (!(options.r_max >= 1) || !(options.d_max >= 0) || options.warmup < 0)
    throw std::invalid_argument("batch renormalisation needs r_max ≥ 1, d_max ≥ 0 and warmup ≥ 0");
  for (const int n : inputs) {
    Inputs in;
    in.room = padded(n);
    float* next = (in.memory = aligned_floats(12 * in.room)).get();
    for (float** part : {&in.mean, &in.variance, &in.batch_mean, &in.scale, &in.p, &in.q, &in.a, &in.c, &in.plain, &in.along, &in.e, &in.f}) {
      *part = next;
      next += in.room;
    }
    std::fill_n(in.variance, n, 1.0f);
    inputs_.push_back(std::move(in));
  }
}

void BatchNorm::train(size_t index, const NormalisedLayer& layer, const float* flat, const Batch& x) {
  Inputs& in = inputs_[index];
  const Moments args{x.data(), in.batch_mean, in.scale, x.stride(), int(x.size())};
  parallel(layer.n_in, 1, 2 * x.features() * x.size(), [&](int64_t b, int64_t e) { kernels().moments(args, int(b), int(e)); });
  const bool corrected = steps >= options_.warmup;
  const float keep = float(options_.momentum), add = float(1 - options_.momentum);
  for (int j = 0; j < layer.n_in; ++j) {
    const float mean = in.batch_mean[j], variance = in.scale[j];
    const float std = std::sqrt(variance + options_.eps), running = std::sqrt(in.variance[j] + options_.eps);
    const float r = corrected ? std::min(std::max(std / running, 1 / options_.r_max), options_.r_max) : 1;
    const float d = corrected ? std::min(std::max((mean - in.mean[j]) / running, -options_.d_max), options_.d_max) : 0;
    in.scale[j] = 1 / std;
    in.p[j] = r / std;
    in.q[j] = d - in.p[j] * mean;
    in.mean[j] = keep * in.mean[j] + add * mean;
    in.variance[j] = keep * in.variance[j] + add * variance;
  }
  in.by_batch = true;
  fold(in, layer, flat);
}

void BatchNorm::evaluate(size_t index, const NormalisedLayer& layer, const float* flat) {
  Inputs& in = inputs_[index];
  for (int j = 0; j < layer.n_in; ++j) {
    in.p[j] = 1 / std::sqrt(in.variance[j] + options_.eps);
    in.q[j] = -in.p[j] * in.mean[j];
  }
  in.by_batch = false;
  fold(in, layer, flat);
}

void BatchNorm::fold(Inputs& in, const NormalisedLayer& layer, const float* flat) {
  const float *gamma = flat + layer.scale_at(), *beta = flat + layer.shift_at();
  for (int j = 0; j < layer.n_in; ++j) {
    in.a[j] = gamma[j] * in.p[j];
    in.c[j] = gamma[j] * in.q[j] + beta[j];
  }
  const Fold args{layer.links.view(flat + layer.weight_at), flat + layer.bias_at, in.a, in.c,
                  folded_.get() + layer.weight_at, folded_.get() + layer.bias_at, layer.n_out};
  for_groups(args.links, 0, layer.links.groups(), 2, [&](int b, int e) { kernels().fold(args, b, e); });
}

void BatchNorm::weight_gradients(size_t index, const NormalisedLayer& layer, const float* flat, float* gradients, int64_t batch) {
  Inputs& in = inputs_[index];
  std::fill_n(in.plain, in.room, 0.0f);
  std::fill_n(in.along, in.room, 0.0f);
  kernels().through_fold({layer.links.view(flat + layer.weight_at), gradients + layer.bias_at, in.a, in.c, gradients + layer.weight_at,
                          in.plain, in.along}, layer.links.groups());
  float *d_gamma = gradients + layer.scale_at(), *d_beta = gradients + layer.shift_at();
  const float each = 1 / float(batch);
  for (int j = 0; j < layer.n_in; ++j) {
    d_beta[j] = in.plain[j];
    d_gamma[j] = in.p[j] * in.along[j] + in.q[j] * in.plain[j];
    if (!in.by_batch) continue;
    // The gradients through the mean and the variance of the batch: a (g - mean g - h mean(g h)), h = (x - μ) / σ.
    const float h = in.scale[j] * (in.along[j] - in.batch_mean[j] * in.plain[j]) * each * in.scale[j];
    in.f[j] = -in.a[j] * h;
    in.e[j] = in.a[j] * (in.batch_mean[j] * h - in.plain[j] * each);
  }
}

void BatchNorm::input_gradients(size_t index, FinishGradients& args) {
  Inputs& in = inputs_[index];
  if (!in.by_batch) {
    std::fill_n(in.e, in.room, 0.0f);
    std::fill_n(in.f, in.room, 0.0f);
  }
  args.a = in.a;
  args.e = in.e;
  args.f = in.f;
}

int64_t BatchNorm::bytes() const {
  int64_t out = size_ * 4;
  for (const Inputs& in : inputs_) out += 12 * in.room * 4;
  return out;
}

}  // namespace rewirl
