// Losses and other arithmetic between networks. Each function is one pass over a small batch; in NumPy the calls would take longer
// than the arithmetic. Names and symbols are those of the agents.
#pragma once
#include <utility>

#include "networks/batch.h"
#include "networks/network.h"

namespace rewirl {

// action = tanh(out), the action of a deterministic actor.
void tanh(const Batch& out, const Batch& action);
// a ← clip(a + clip(σ noise, -c, c), -1, 1): TD3's target policy smoothing.
void smooth(const Batch& action, const Batch& noise, float sigma, float c);

// y = r + γ (1 - terminated) min(q1, q2)
void bellman(const Batch& reward, const Batch& terminated, const Batch& q1, const Batch& q2, float gamma, const Batch& y);
// y = r + γ (1 - terminated) (min(q1, q2) - α log π)
void soft_bellman(const Batch& reward, const Batch& terminated, const Batch& q1, const Batch& q2, float gamma, float alpha,
                  const Batch& log_prob, const Batch& y);

// One step of a network towards y at x, along the gradient of 1/N Σ (q - y)²; none if that loss is not finite. Gives the loss and the
// mean of q.
std::pair<double, double> regress(Network& net, const Batch& x, const Batch& y, const AdamOptions& adam);

// The mean of q, and the gradient of minus that into dq.
double ascend(const Batch& q, const Batch& dq);
// The mean of min(q1, q2), and the gradient of minus that into dq1 and dq2: each sample's comes from the smaller.
double ascend_lower(const Batch& q1, const Batch& q2, const Batch& dq1, const Batch& dq2);

// du = da (1 - a²), a = tanh(u)
void through_tanh(const Batch& action, const Batch& da, const Batch& du);

// a = tanh(mean + std noise), where out has the means and below them the logarithms of std; the actions, std, and log π(a|s) over
// actions in units of the policy.
void squash(const Batch& out, const Batch& noise, const Batch& action, const Batch& std, const Batch& log_prob);
// The gradient of 1/N Σ (α log π - min q) with respect to the input of squash, from the gradients of minus the two critics with
// respect to the actions.
void through_squash(const Batch& out, const Batch& noise, const Batch& action, const Batch& std, const Batch& da1,
                    const Batch& da2, float alpha, const Batch& d_out);

}  // namespace rewirl
