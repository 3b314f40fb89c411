"""Which instruction set runs: REWIRL_ISA, the baseline, and names that are not there."""

import pytest

from rewirl.nn import available_isas, isa, select_isa

from .oracle import run_python

SOLVE = """
import numpy as np
from rewirl.nn import Adam, Network, Target, batch_of, isa
from rewirl.topology import SET, wire

rng = np.random.default_rng(0)
net = Network(wire((5, 32, 32, 1), rng, rule=SET(), sparsity=0.3), rng)
target = Target(net)
losses = []
for update in range(1, 301):
    x = rng.standard_normal((5, 64), dtype=np.float32)
    error = net.forward(batch_of(x)).array - np.maximum(x[0], x[1])
    net.backward(batch_of(error / 64))
    net.step(Adam(lr=3e-3))
    if update % 50 == 0:
        net.adapt(SET(), rng)
    target.update(0.05)
    losses.append(float((error**2).mean()))
print(isa(), sum(losses[:20]) / 20, sum(losses[-20:]) / 20)
"""


@pytest.mark.parametrize("name", available_isas())
def test_each_set_is_honoured_and_learns(name):
    result = run_python(SOLVE, REWIRL_ISA=name)
    assert result.returncode == 0, result.stderr
    used, first, last = result.stdout.split()
    assert used == name
    assert float(last) < 0.1 * float(first)


def test_the_baseline_is_always_there_and_the_fastest_is_the_default():
    assert available_isas()[0] in ("baseline", "neon")  # every 64-bit ARM has the latter
    result = run_python("from rewirl.nn import isa; print(isa())", REWIRL_ISA="")
    assert result.stdout.strip() == available_isas()[-1]


@pytest.mark.parametrize("wish", ["mmx", "AVX2", "avx2 ", "baseline,avx2"])
def test_an_unknown_wish_is_refused_at_import(wish):
    result = run_python("import rewirl.nn; print('imported')", REWIRL_ISA=wish)
    assert result.returncode == 1
    assert "imported" not in result.stdout
    last = result.stderr.strip().splitlines()[-1]
    assert last == (
        f"ImportError: instruction set '{wish}' is not available here; this machine and build have: "
        + ", ".join(available_isas())
    )


def test_an_unknown_choice_is_refused_and_changes_nothing():
    before = isa()
    with pytest.raises(ValueError, match="instruction set 'mmx' is not available here"):
        select_isa("mmx")
    assert isa() == before
