"""What agents compute between networks, against PyTorch in float64 and its autograd."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rewirl import _core
from rewirl.nn import Adam, Batch, Network, batch_of, regress_each
from rewirl.topology import Links

from .oracle import normal, seeds

pytestmark = pytest.mark.usefixtures("each_isa")

sizes = st.tuples(st.integers(1, 9), st.integers(1, 70), seeds)


def double(batch):
    return torch.from_numpy(batch.array.astype(np.float64))


def close(batch, wanted, tolerance=1e-6):
    np.testing.assert_allclose(batch.array, wanted.detach().numpy(), rtol=tolerance, atol=tolerance)


def some(rng, features, size, scale=1.0):
    return batch_of(np.float32(scale) * normal(rng, features, size))


@given(sizes, st.sampled_from([1e-3, 1.0, 30.0]))
def test_tanh(size, scale):
    n_act, n, seed = size
    out, action = some(np.random.default_rng(seed), n_act, n, scale), Batch(n_act, n)
    _core.tanh(out, action)
    close(action, double(out).tanh())


def test_tanh_of_what_is_no_number():
    action = Batch(1, 3)
    _core.tanh(batch_of(np.array([[np.nan, np.inf, -np.inf]], dtype=np.float32)), action)
    np.testing.assert_array_equal(action.array, [[np.nan, 1, -1]])


@given(sizes, st.floats(0, 2), st.floats(0, 2))
def test_smooth(size, sigma, c):
    n_act, n, seed = size
    rng = np.random.default_rng(seed)
    action, noise = batch_of(np.tanh(normal(rng, n_act, n))), some(rng, n_act, n)
    wanted = (double(action) + (sigma * double(noise)).clamp(-c, c)).clamp(-1, 1)
    _core.smooth(action, noise, sigma, c)
    close(action, wanted)


@given(st.integers(1, 70), seeds, st.floats(0, 1), st.floats(0, 2))
def test_bellman_and_the_soft_one(n, seed, gamma, alpha):
    rng = np.random.default_rng(seed)
    r, q1, q2, log_prob, y = (some(rng, 1, n, 10) for _ in range(5))
    end = batch_of((normal(rng, 1, n) > 0).astype(np.float32))
    lower = torch.minimum(double(q1), double(q2))
    _core.bellman(r, end, q1, q2, gamma, y)
    close(y, double(r) + gamma * (1 - double(end)) * lower)
    _core.soft_bellman(r, end, q1, q2, gamma, alpha, log_prob, y)
    close(y, double(r) + gamma * (1 - double(end)) * (lower - alpha * double(log_prob)), 1e-5)


@pytest.mark.parametrize("broken", [0, 1])
def test_a_nan_in_either_critic_is_in_the_target(broken):
    q = [batch_of(np.ones((1, 5), dtype=np.float32)) for _ in range(2)]
    q[broken].array[0, 2] = np.nan
    r, end, y = Batch(1, 5), Batch(1, 5), Batch(1, 5)
    _core.bellman(r, end, *q, 0.5, y)
    np.testing.assert_array_equal(y.array[0], [0.5, 0.5, np.nan, 0.5, 0.5])


def test_a_nan_action_stays_one():
    action = batch_of(np.array([[np.nan, 3, -3]], dtype=np.float32))
    _core.smooth(action, Batch(1, 3), 1.0, 0.5)
    np.testing.assert_array_equal(action.array[0], [np.nan, 1, -1])


def one_layer(rng, n_in=3):
    return Network([Links.dense(n_in, 1)], rng)


@given(st.integers(1, 70), seeds)
def test_regress(n, seed):
    """The loss and the mean of a linear network, its gradients, and Adam's step along them."""
    rng = np.random.default_rng(seed)
    net, x, y = one_layer(rng), some(rng, 3, n, 10), some(rng, 1, n, 10)
    # in the order of parameters: three weights, then the bias
    parameters = torch.tensor(net.parameters, dtype=torch.float64, requires_grad=True)
    q = parameters[:3] @ double(x) + parameters[3]
    loss = ((q - double(y)) ** 2).mean()
    loss.backward()
    same = one_layer(rng)
    same.load_state(net.state())
    [found] = regress_each([net], x, y, Adam())
    assert found == pytest.approx((loss.item(), q.mean().item()), rel=1e-4, abs=1e-5)
    np.testing.assert_allclose(net.gradients, parameters.grad, rtol=1e-4, atol=2e-3)
    same.backward(batch_of((same.forward(x).array - y.array) * np.float32(2 / n)))
    same.step(Adam())
    np.testing.assert_array_equal(net.parameters, same.parameters)


@pytest.mark.parametrize("y", [1e30, np.nan])
def test_a_loss_that_is_not_finite_moves_nothing(y):
    """Beyond floats it is infinite."""
    net = one_layer(np.random.default_rng(0))
    before = net.parameters.copy()
    x, wrong = Batch(3, 4), batch_of(np.full((1, 4), y, dtype=np.float32))
    [(loss, _)] = regress_each([net], x, wrong, Adam())
    assert loss == math.inf if y == 1e30 else math.isnan(loss)
    np.testing.assert_array_equal(net.parameters, before)
    assert net.state()["steps"] == 0


def test_nothing_is_regressed_to_what_it_overwrites():
    rng = np.random.default_rng(0)
    nets = [one_layer(rng), one_layer(rng)]
    x = some(rng, 3, 4)
    for net in nets:
        with pytest.raises(ValueError, match="y is a network's own output"):
            regress_each(nets, x, net.forward(x), Adam())


def test_a_gradient_that_regress_overwrote_is_gone():
    """Also where it makes no step: both use the same memory."""
    rng = np.random.default_rng(0)
    deep, flat = (Network([Links.dense(3, 3)] * n + [Links.dense(3, 1)], rng) for n in (3, 2))
    x, nan = some(rng, 3, 4), batch_of(np.full((1, 4), np.nan, dtype=np.float32))
    deep.forward(x)
    deep.backward(some(rng, 1, 4))
    deep.dense_gradient(2)
    regress_each([flat], x, nan, Adam())
    with pytest.raises(ValueError, match="are gone"):
        deep.dense_gradient(2)


@pytest.mark.parametrize(("outputs", "y"), [(2, (2, 4)), (1, (1, 5)), (1, (2, 4))])
def test_regress_wants_one_number_for_each_sample(outputs, y):
    net = Network([Links.dense(3, outputs)], np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"wanted \d × \d numbers, not \d × \d"):
        regress_each([net], Batch(3, 4), Batch(*y), Adam())


@given(st.integers(1, 70), seeds)
def test_ascend(n, seed):
    rng = np.random.default_rng(seed)
    q1, q2, dq1, dq2 = some(rng, 1, n), some(rng, 1, n), Batch(1, n), Batch(1, n)
    assert _core.ascend(q1, dq1) == pytest.approx(double(q1).mean().item(), rel=1e-5, abs=1e-6)
    close(dq1, torch.full((1, n), -1 / n))
    one, two = double(q1).requires_grad_(), double(q2).requires_grad_()
    lower = torch.minimum(one, two).mean()
    (-lower).backward()
    assert _core.ascend_lower(q1, q2, dq1, dq2) == pytest.approx(lower.item(), rel=1e-5, abs=1e-6)
    close(dq1, one.grad)
    close(dq2, two.grad)


@given(sizes)
def test_through_tanh(size):
    n_act, n, seed = size
    rng = np.random.default_rng(seed)
    u, da, du = some(rng, n_act, n), some(rng, n_act, n), Batch(n_act, n)
    want = double(u).requires_grad_()
    (torch.tanh(want) * double(da)).sum().backward()
    _core.through_tanh(batch_of(np.tanh(u.array)), da, du)
    close(du, want.grad)


def squashed(out, noise):
    """As one would write it: the Gaussian's density, and the slope of tanh from softplus."""
    n_act = len(noise)
    mean, log_std = out[:n_act], out[n_act:].clamp(-20, 2)
    u = mean + log_std.exp() * noise
    gaussian = torch.distributions.Normal(mean, log_std.exp(), validate_args=False).log_prob(u)
    slope = 2 * (math.log(2) - u - torch.nn.functional.softplus(-2 * u))
    return torch.tanh(u), log_std.exp(), (gaussian - slope).sum(0, keepdim=True)


@given(sizes, st.sampled_from([0.1, 1.0, 5.0]), st.floats(0, 1))
def test_squash_and_the_way_back(size, scale, alpha):
    n_act, n, seed = size
    rng = np.random.default_rng(seed)
    out, noise = some(rng, 2 * n_act, n, scale), some(rng, n_act, n)
    da1, da2 = some(rng, n_act, n), some(rng, n_act, n)
    action, std, log_prob, d_out = Batch(n_act, n), Batch(n_act, n), Batch(1, n), Batch(2 * n_act, n)
    _core.squash(out, noise, action, std, log_prob)
    want = double(out).requires_grad_()
    a, s, lp = squashed(want, double(noise))
    close(action, a)
    close(std, s)
    close(log_prob, lp, 1e-5)
    (alpha * lp.mean() + (a * (double(da1) + double(da2))).sum()).backward()
    _core.through_squash(out, noise, action, std, da1, da2, alpha, d_out)
    # where tanh is nearly flat its slope, 1 - a², has few digits left
    np.testing.assert_allclose(d_out.array, want.grad.numpy(), rtol=1e-4, atol=2e-5)


def test_squash_at_its_ends():
    """Log-std is clamped, and has no gradient there; nothing overflows however far out a mean lies."""
    out = batch_of(np.array([[0, 0, 200, -200, np.nan], [-30, 30, 0, 0, 0]], dtype=np.float32))
    noise = batch_of(np.full((1, 5), 0.25, dtype=np.float32))
    action, std, log_prob, d_out = Batch(1, 5), Batch(1, 5), Batch(1, 5), Batch(2, 5)
    _core.squash(out, noise, action, std, log_prob)
    wanted = squashed(double(out), double(noise))
    for batch, want in zip((action, std, log_prob), wanted, strict=True):
        close(batch, want, 1e-5)
    assert math.isnan(action.array[0, 4])
    assert math.isnan(log_prob.array[0, 4])
    _core.through_squash(out, noise, action, std, noise, noise, 0.1, d_out)
    assert (d_out.array[1, :2] == 0).all()
    assert (d_out.array[1, 2:4] != 0).all()


ONE, TWO, OTHER = (1, 3), (2, 3), (1, 4)  # shapes


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("smooth", (ONE, TWO, 0.2, 0.5)),
        ("smooth", (ONE, OTHER, 0.2, 0.5)),
        ("bellman", (ONE, ONE, TWO, ONE, 0.9, ONE)),
        ("bellman", (ONE, ONE, ONE, ONE, 0.9, OTHER)),
        ("soft_bellman", (ONE, ONE, ONE, ONE, 0.9, 0.1, OTHER, ONE)),
        ("ascend", (ONE, TWO)),
        ("ascend_lower", (ONE, ONE, ONE, OTHER)),
        ("through_tanh", (TWO, TWO, ONE)),
        ("squash", (ONE, ONE, ONE, ONE, ONE)),
        ("squash", (TWO, ONE, ONE, ONE, OTHER)),
        ("squash", (TWO, ONE, ONE, TWO, ONE)),
        ("through_squash", (TWO, ONE, ONE, ONE, ONE, ONE, 0.1, ONE)),
        ("through_squash", (TWO, ONE, ONE, ONE, ONE, OTHER, 0.1, TWO)),
    ],
)
def test_shapes_that_do_not_fit(function, arguments):
    with pytest.raises(ValueError, match=r"wanted \d × \d numbers, not \d × \d"):
        getattr(_core, function)(*(Batch(*a) if isinstance(a, tuple) else a for a in arguments))
