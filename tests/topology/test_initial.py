"""How many links each layer gets, and where the first ones are."""

import doctest
import math
import re
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rewirl.topology import SET, Dense, Links, RigL, Static, erdos_renyi, initial, link_counts, wire
from rewirl.topology._checks import BLOCKS, MAX_WIDTH

ACTOR, CRITIC = (17, 256, 256, 6), (23, 256, 256, 1)

networks = st.lists(st.integers(1, 40), min_size=3, max_size=6)


def products(sizes):
    return [n_in * n_out for n_in, n_out in pairwise(sizes)]


def test_the_papers_counts_on_halfcheetah():
    sparse = [link_counts(sizes, lambdas=(7, 64)) for sizes in (ACTOR, CRITIC, CRITIC)]
    assert sparse == [[1911, 32_768, 1536], [1953, 32_768, 256], [1953, 32_768, 256]]
    assert sum(map(sum, sparse)) == 106_169
    assert sum(sum(link_counts(sizes, sparsity=0)) for sizes in (ACTOR, CRITIC, CRITIC)) == 214_784


@pytest.mark.parametrize(
    ("sizes", "lambdas", "block", "counts"),
    [
        ((3, 4, 2), (1,), 1, [7, 8]),
        ((3, 4, 2), (0.5,), 1, [4, 8]),  # 3.5: a half goes to the even one
        ((2, 3, 2), (0.5,), 1, [2, 6]),  # 2.5: the same
        ((3, 4, 2), (1.7,), 1, [12, 8]),  # 11.9
        ((3, 4, 2), (1.8,), 1, [12, 8]),  # 12.6 of 12: p > 1 is dense
        ((3, 4, 2), (1e300,), 1, [12, 8]),
        ((3, 4, 2), (0.1,), 1, [1, 8]),
        ((3, 4, 2), (1,), 2, [8, 8]),  # 3.5 blocks of 2
        ((3, 4, 2), (1,), 4, [8, 8]),  # 1.75 blocks of 4
        ((3, 4, 7, 5), (1, 0.25), 1, [7, 3, 35]),
        ((17, 256, 256, 6), (7, 64), 4, [1912, 32_768, 1536]),
        ((3, 2), (), 1, [6]),
    ],
)
def test_counts_by_lambda(sizes, lambdas, block, counts):
    assert link_counts(sizes, lambdas=lambdas, block=block) == counts


@pytest.mark.parametrize(
    ("sizes", "sparsity", "block", "counts"),
    [
        ((4, 4, 4, 1), 0, 1, [16, 16, 4]),
        ((4, 4, 4, 1), 0.5, 1, [7, 7, 4]),
        ((4, 4, 4, 1), 19 / 36, 1, [7, 6, 4]),  # of equal remainders the first layer's wins
        # 47 - 16 = 31 over 5 : 20; the first would get 6.2 and has 4 places, so 4, and the second the rest
        ((1, 4, 16, 1), 1 - 47 / 84, 1, [4, 27, 16]),
        # 80 - 20 = 60 over 9 : 15 : 20 are 12.27, 20.45 and 27.27: the second has lost most by rounding down
        ((4, 5, 10, 10, 2), 1 - 80 / 190, 1, [12, 21, 27, 20]),
        ((2, 8, 8, 1), 0.5, 4, [12, 24, 8]),  # 44 - 8 = 36 links = 9 blocks, 10 : 16
        ((3, 2), 0, 1, [6]),
        ((1, 200, 1, 1), 1 - 3 / 401, 1, [1, 1, 1]),
        ((50, 1, 2, 1), 1 - 5 / 54, 1, [2, 1, 2]),  # 3 links, 51 : 3: the second keeps one
    ],
)
def test_counts_by_global_sparsity(sizes, sparsity, block, counts):
    assert link_counts(sizes, sparsity=sparsity, block=block) == counts


@given(networks, st.floats(0, 1, exclude_max=True))
def test_a_global_sparsity_is_met_exactly_and_spread_by_erdos_renyi(sizes, sparsity):
    dense = products(sizes)
    wanted = round((1 - sparsity) * sum(dense))
    assume(wanted >= dense[-1] + len(dense) - 1)
    counts = link_counts(sizes, sparsity=sparsity)
    assert sum(counts) == wanted
    assert counts[-1] == dense[-1]
    assert all(1 <= count <= most for count, most in zip(counts, dense, strict=True))
    # one ε for all: what each layer should have differs from what it has by less than a link, except that no
    # layer is left without
    ideal = ideal_shares(wanted - dense[-1], sizes)
    if min(ideal) >= 1:
        assert all(abs(count - share) < 1 for count, share in zip(counts[:-1], ideal, strict=True))


def ideal_shares(total, sizes):
    """min(places, ε (n_in + n_out)) that sum up to total, the slow way: fill one layer after the other."""
    layers = list(pairwise(sizes))[:-1]
    by_saturation = sorted(range(len(layers)), key=lambda i: Fraction(math.prod(layers[i]), sum(layers[i])))
    shares, left = [Fraction(0)] * len(layers), Fraction(total)
    for n, i in enumerate(by_saturation):
        epsilon = left / sum(sum(layers[j]) for j in by_saturation[n:])
        shares[i] = min(Fraction(math.prod(layers[i])), epsilon * sum(layers[i]))
        left -= shares[i]
    assert left == 0
    return shares


@given(
    st.lists(st.integers(1, 8), min_size=3, max_size=5),
    st.sampled_from(BLOCKS[1:]),
    st.floats(0, 1, exclude_max=True),
)
def test_with_blocks_it_is_met_to_within_one_block_per_layer(sizes, block, sparsity):
    sizes = [sizes[0], *(size * block for size in sizes[1:-1]), sizes[-1]]
    dense = products(sizes)
    wanted = round((1 - sparsity) * sum(dense))
    assume(wanted >= dense[-1] + block * (len(dense) - 1))
    counts = link_counts(sizes, sparsity=sparsity, block=block)
    assert abs(sum(counts) - wanted) <= block / 2
    assert all(count % block == 0 and count > 0 for count in counts[:-1])
    assert all(count <= most for count, most in zip(counts, dense, strict=True))


@given(networks, st.sampled_from((1, 2, 4)), st.floats(0.5, 1, exclude_max=True))
def test_the_largest_sparsity_that_a_refusal_names_does_work(sizes, block, sparsity):
    sizes = [sizes[0], *(size * block for size in sizes[1:-1]), sizes[-1]]
    try:
        link_counts(sizes, sparsity=sparsity, block=block)
    except ValueError as refusal:
        largest = float(str(refusal).rsplit(" ", 1)[1])
        assert 0 <= largest <= sparsity
        assert min(link_counts(sizes, sparsity=largest, block=block)) >= 1


def test_the_largest_sparsity_is_rounded_down_where_six_digits_are_too_few():
    sizes = (3000, 3000, 3000, 1)
    with pytest.raises(ValueError, match=r"the largest sparsity possible is 0\.999833$"):
        link_counts(sizes, sparsity=0.9999)
    assert min(link_counts(sizes, sparsity=0.999833)) >= 1
    with pytest.raises(ValueError, match="the largest sparsity possible"):
        link_counts(sizes, sparsity=0.999834)


@pytest.mark.parametrize(
    ("sizes", "given", "error", "message"),
    [
        ((3, 4, 2), {}, ValueError, "give either lambdas or sparsity, and not both"),
        (
            (3, 4, 2),
            {"lambdas": (1,), "sparsity": 0.5},
            ValueError,
            "give either lambdas or sparsity, and not both",
        ),
        ((3, 4, 2), {"sparsity": math.nan}, ValueError, "sparsity must be a finite number, not nan"),
        ((3, 4, 2), {"sparsity": -0.1}, ValueError, "sparsity must be from 0 (dense) to below 1, not -0.1"),
        ((3, 4, 2), {"sparsity": 1}, ValueError, "sparsity must be from 0 (dense) to below 1, not 1"),
        ((3, 4, 2), {"sparsity": 1.5}, ValueError, "sparsity must be from 0 (dense) to below 1, not 1.5"),
        ((3, 4, 2), {"sparsity": "half"}, TypeError, "sparsity must be a number, not 'half'"),
        ((3, 4, 2), {"sparsity": True}, TypeError, "sparsity must be a number, not True"),
        (
            (3, 4, 2),
            {"sparsity": 0.6},
            ValueError,
            "sparsity 0.6 leaves 8 links, but a dense output layer and 1 in every sparse layer need 9: "
            "the largest sparsity possible is 0.550000",
        ),
        ((3, 4, 2), {"sparsity": 0.9}, ValueError, "sparsity 0.9 leaves 2 links"),
        ((3, 4, 2), {"sparsity": 0.5, "block": 4}, ValueError, "the largest sparsity possible is 0.400000"),
        ((3, 2), {"sparsity": 0.5}, ValueError, "the largest sparsity possible is 0.000000"),
        ((3, 4, 2), {"lambdas": (math.nan,)}, ValueError, "λ of layer 1 must be a finite number, not nan"),
        ((3, 4, 2), {"lambdas": (math.inf,)}, ValueError, "λ of layer 1 must be a finite number, not inf"),
        ((3, 4, 4, 2), {"lambdas": (1, -2)}, ValueError, "λ of layer 2 must be positive, not -2"),
        ((3, 4, 4, 2), {"lambdas": (1, "7")}, TypeError, "λ of layer 2 must be a number, not '7'"),
        (
            (3, 4, 2),
            {"lambdas": (0,)},
            ValueError,
            "λ = 0 leaves layer 1 without a link: it must be above 0.071429",
        ),
        (
            (3, 4, 2),
            {"lambdas": (0.2,), "block": 4},
            ValueError,
            "λ = 0.2 leaves layer 1 without a link: it must be above 0.285714",
        ),
        (
            (3, 4, 2),
            {"lambdas": (1, 1)},
            ValueError,
            "2 lambdas for 1 sparse layers: give one for each layer but the",
        ),
        ((3, 4, 2), {"lambdas": ()}, ValueError, "0 lambdas for 1 sparse layers"),
        (
            (3, 4, 2),
            {"lambdas": 7},
            TypeError,
            "lambdas must be a sequence of numbers such as (7, 64), not 7",
        ),
        (
            (3, 4, 2),
            {"lambdas": "7"},
            TypeError,
            "lambdas must be a sequence of numbers such as (7, 64), not '7'",
        ),
        ((3, 0, 2), {"sparsity": 0}, ValueError, f"every size must be from 1 to {MAX_WIDTH}, not 0"),
        ((3, -4, 2), {"sparsity": 0}, ValueError, f"every size must be from 1 to {MAX_WIDTH}, not -4"),
        (
            (3, MAX_WIDTH + 1, 2),
            {"sparsity": 0},
            ValueError,
            f"every size must be from 1 to {MAX_WIDTH}, not",
        ),
        ((3, 4.0, 2), {"sparsity": 0}, TypeError, "every size must be a whole number, not 4.0"),
        ((3,), {"sparsity": 0}, ValueError, "sizes must be at least two, inputs and outputs, not 1"),
        (
            3,
            {"sparsity": 0},
            TypeError,
            "sizes must be a sequence of numbers such as (17, 256, 256, 6), not 3",
        ),
        (
            (3, 8, 6, 2),
            {"sparsity": 0, "block": 4},
            ValueError,
            "4 does not divide a layer of 6 outputs: 1 or 2 would",
        ),
        ((3, 6, 9, 2), {"sparsity": 0, "block": 4}, ValueError, "a layer of 6 outputs: 1 would"),
        (
            (3, 6, 9, 2),
            {"sparsity": 0, "block": 2},
            ValueError,
            "2 does not divide a layer of 9 outputs: 1 would",
        ),
        ((3, 4, 2), {"sparsity": 0, "block": 3}, ValueError, f"or {BLOCKS[-1]}, not 3"),
    ],
)
def test_wrong_networks_and_densities_are_refused_with_what_would_be_right(sizes, given, error, message):
    with pytest.raises(error, match=re.escape(message)):
        link_counts(sizes, **given)


def test_a_block_need_not_divide_the_dense_output_layer():
    assert link_counts((3, 8, 5), sparsity=0.25, block=4) == [8, 40]


@given(st.integers(1, 20), st.integers(1, 6), st.sampled_from(BLOCKS), st.data())
def test_erdos_renyi_has_exactly_the_links_asked_for(n_in, n_blocks, block, data):
    count = block * data.draw(st.integers(0, n_in * n_blocks))
    seed = data.draw(st.integers(0, 2**32))
    wiring = erdos_renyi(n_in, n_blocks * block, count, np.random.default_rng(seed), block)
    assert (wiring.n_in, wiring.n_out, wiring.count) == (n_in, n_blocks * block, count)
    assert wiring == erdos_renyi(n_in, n_blocks * block, count, np.random.default_rng(seed), block)


def test_a_full_layer_is_simply_dense_and_keeps_a_block_that_was_asked_for():
    rng = np.random.default_rng(0)
    assert erdos_renyi(3, 16, 48, rng) == Links.dense(3, 16)
    assert erdos_renyi(3, 16, 48, rng, block=2) == Links(3, 16, 2, np.arange(24))


def test_every_place_is_equally_likely():
    rng, draws = np.random.default_rng(3), 6000
    hits = np.zeros(24)
    for _ in range(draws):
        hits[erdos_renyi(4, 6, 7, rng).places] += 1
    expected = draws * 7 / 24
    chi_square = ((hits - expected) ** 2 / (expected * (1 - 7 / 24))).sum() * 23 / 24
    assert 7 < chi_square < 50  # 23 degrees of freedom: one in a thousand is outside


@pytest.mark.parametrize(
    ("count", "block", "error", "message"),
    [
        (-1, 1, ValueError, "count must be from 0 to 3 x 4 = 12 links, not -1"),
        (13, 1, ValueError, "count must be from 0 to 3 x 4 = 12 links, not 13"),
        (6, 4, ValueError, "6 links are not a whole number of blocks: count must be a multiple of 4"),
        (6.0, 1, TypeError, "count must be a whole number, not 6.0"),
        (8, 3, ValueError, "block must be 1, 2"),
    ],
)
def test_wrong_counts_are_refused(count, block, error, message):
    with pytest.raises(error, match=re.escape(message)):
        erdos_renyi(3, 4, count, np.random.default_rng(0), block)


@pytest.mark.parametrize("rule", [SET(), RigL(), Static()])
def test_sparse_rules_wire_all_but_the_output_layer_sparse(rule):
    wiring = wire(ACTOR, np.random.default_rng(0), rule=rule, lambdas=(7, 64))
    assert [(layer.n_in, layer.n_out) for layer in wiring] == [(17, 256), (256, 256), (256, 6)]
    assert [layer.count for layer in wiring] == [1911, 32_768, 1536]
    assert [layer.block for layer in wiring] == [1, 1, 2]
    assert wiring[2] == Links.dense(256, 6)


def test_wire_in_blocks_and_by_sparsity():
    wiring = wire(CRITIC, np.random.default_rng(0), rule=SET(), sparsity=0.5, block=4)
    assert [layer.block for layer in wiring] == [4, 4, 1]
    assert abs(sum(layer.count for layer in wiring) - 35_840) <= 2


@pytest.mark.parametrize("density", [{}, {"lambdas": (7, 64)}, {"sparsity": 0.5}])
def test_the_dense_rule_wires_everything_whatever_the_density(density):
    wiring = wire(ACTOR, np.random.default_rng(0), rule=Dense(), **density)
    assert wiring == [Links.dense(17, 256), Links.dense(256, 256), Links.dense(256, 6)]


def test_the_same_seed_wires_the_same_and_another_another():
    def wired(seed):
        return wire((5, 16, 16, 2), np.random.default_rng(seed), rule=SET(), sparsity=0.5)

    assert wired(1) == wired(1)
    assert wired(1) != wired(2)


def test_wire_refuses_what_link_counts_refuses():
    with pytest.raises(ValueError, match="give either lambdas or sparsity"):
        wire(ACTOR, np.random.default_rng(0), rule=SET())
    with pytest.raises(ValueError, match="every size must be from 1"):
        wire((3, 0, 1), np.random.default_rng(0), rule=Dense())


def test_the_examples_in_the_docstrings_run():
    examples = doctest.testmod(initial)
    assert examples.failed == 0 < examples.attempted
