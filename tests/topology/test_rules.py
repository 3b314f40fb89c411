"""Drop and grow: tables of small wirings worked out by hand, and what always holds."""

import doctest
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewirl.topology import RULES, SET, Dense, DenseGradient, Links, RigL, Rule, Static, erdos_renyi, gradients, rules
from rewirl.topology._checks import BLOCKS

NO_LUCK = np.random.default_rng(0)


def f32(*values):
    return np.array(values, dtype=np.float32)


def line(n_places, *taken):
    """A layer with one output, so that a place is an input."""
    return Links(n_places, 1, 1, np.array(taken, dtype=np.int64))


def drops(rule, links, weights):
    return rule.rewire(links, weights, np.random.default_rng(0)).dropped.tolist()


@pytest.mark.parametrize(
    ("eta", "weights", "dropped"),
    [
        # two of each sign, nearest to zero
        (0.5, (0.4, -0.1, 0.2, -0.3, 0.1, -0.4, 0.3, -0.2), [1, 2, 4, 7]),
        # one of each, though the two smallest magnitudes are both positive
        (0.25, (0.1, 0.2, 0.5, 0.6, -0.7, -0.8, 0.9, -0.9), [0, 4]),
        (0.25, (-0.1, -0.2, 0.5, 0.6, -0.7, -0.8, 0.9, -0.9), [0, 2]),
        # odd c = 3: two positives, one negative
        (0.375, (0.4, -0.1, 0.2, -0.3, 0.1, -0.4, 0.3, -0.2), [1, 2, 4]),
        # c = 1: the positive, even though the negative is nearer to zero
        (0.125, (0.4, -0.1, 0.5, -0.3, 0.6, -0.4, 0.3, -0.2), [6]),
        # positives run short: one, and three negatives
        (0.5, (-0.1, -0.2, -0.3, -0.4, 0.9, -0.5, -0.6, -0.7), [0, 1, 2, 4]),
        # negatives run short: one, and three positives
        (0.5, (0.1, 0.2, 0.3, 0.4, -0.9, 0.5, 0.6, 0.7), [0, 1, 2, 4]),
        # one sign only
        (0.5, (0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1), [4, 5, 6, 7]),
        (0.5, (-0.8, -0.7, -0.6, -0.5, -0.4, -0.3, -0.2, -0.1), [4, 5, 6, 7]),
        # zeros go first, and the rest is halved
        (0.5, (0.1, 0.2, 0.0, -0.3, 0.0, -0.4, 0.3, -0.2), [0, 2, 4, 7]),
        (0.5, (0.1, 0.2, 0.0, -0.3, 0.5, -0.4, 0.3, -0.2), [0, 1, 2, 7]),
        # a negative zero is a zero
        (0.25, (0.1, 0.2, -0.0, -0.3, 0.0, -0.4, 0.3, -0.2), [2, 4]),
        # more zeros than c: the lowest places of them
        (0.25, (0.1, 0.0, 0.0, 0.0, 0.0, -0.4, 0.3, 0.0), [1, 2]),
        # zeros and a sign that runs short
        (0.5, (0.0, -0.2, -0.3, -0.4, -0.5, -0.6, -0.7, -0.8), [0, 1, 2, 3]),
        # ties: the lowest place
        (0.25, (0.1, 0.1, 0.1, 0.1, -0.2, -0.2, -0.2, -0.2), [0, 4]),
        (0.5, (0.3, 0.1, 0.3, 0.3, -0.2, -0.4, -0.4, -0.4), [0, 1, 4, 5]),
        # smallest and largest numbers there are
        (0.25, (1e-45, 1e-38, 3e38, np.inf, -1e-45, -1e-38, -3e38, -np.inf), [0, 4]),
        (1.0, (1e-45, 1e-38, 3e38, np.inf, -1e-45, -1e-38, -3e38, -np.inf), list(range(8))),
        # c = round(η 8): 2.4, 2.8 and, a half to the even one, 2.5 and 3.5
        (0.3, (0.1, 0.2, 0.3, 0.4, -0.1, -0.2, -0.3, -0.4), [0, 4]),
        (0.35, (0.1, 0.2, 0.3, 0.4, -0.1, -0.2, -0.3, -0.4), [0, 1, 4]),
        (0.3125, (0.1, 0.2, 0.3, 0.4, -0.1, -0.2, -0.3, -0.4), [0, 4]),
        (0.4375, (0.1, 0.2, 0.3, 0.4, -0.1, -0.2, -0.3, -0.4), [0, 1, 4, 5]),
        (0.0625, (0.1, 0.2, 0.3, 0.4, -0.1, -0.2, -0.3, -0.4), []),
        (0, (0.1, 0.2, 0.3, 0.4, -0.1, -0.2, -0.3, -0.4), []),
    ],
)
def test_set_drops_by_hand(eta, weights, dropped):
    assert drops(SET(eta=eta), line(20, *range(8)), f32(*weights)) == dropped


def test_set_drops_where_one_sign_is_rare_near_zero():
    # c = 10; the 20 nearest to zero are all positive, but the negatives have half to give all the same
    weights = np.concatenate([np.linspace(0.1, 0.2, 80), np.linspace(-0.9, -0.8, 20)]).astype(np.float32)
    assert drops(SET(eta=0.1), line(300, *range(100)), weights) == [0, 1, 2, 3, 4, 95, 96, 97, 98, 99]
    assert drops(SET(eta=0.1), line(300, *range(100)), -weights) == [0, 1, 2, 3, 4, 95, 96, 97, 98, 99]


@pytest.mark.parametrize("rule", [SET(eta=0.5), RigL(eta=0.5)])
def test_blocks_go_by_the_sum_of_their_magnitudes_whatever_the_sign(rule):
    links = Links(4, 4, 2, np.array([0, 3, 5, 6]))
    weights = f32(0.3, 0.3, -0.5, 0.0, 0.2, -0.2, 0.9, 0.0)  # sums 0.6 0.5 0.4 0.9
    for shaped in (weights, weights.reshape(4, 2)):
        change = rule.rewire(links, shaped, np.random.default_rng(0), np.ones((4, 4)))
        assert change.dropped.tolist() == [3, 5]
        assert change.links.block == 2
        assert change.links.count == 8


@pytest.mark.parametrize(
    ("weights", "dropped"),
    [
        ((0.4, -0.1, 0.2, -0.3), [1, 2]),
        ((0.1, 0.2, -0.3, -0.4), [0, 1]),  # no split by sign
        ((0.1, 0.0, -0.3, -0.0), [1, 3]),
        ((-0.2, 0.2, 0.2, -0.2), [0, 1]),
    ],
)
def test_rigl_drops_the_smallest_magnitudes(weights, dropped):
    change = RigL(eta=0.5).rewire(line(9, *range(4)), f32(*weights), NO_LUCK, np.ones((1, 9)))
    assert change.dropped.tolist() == dropped


@pytest.mark.parametrize(
    ("gradients", "grown"),
    [
        # outputs are rows, inputs columns; places 0 (input 0, output 0) and 4 (input 2, output 0) are taken
        ([[9, 1, 9], [2, 3, -4]], [3, 5]),
        ([[9, -5, 9], [2, 3, 4]], [2, 5]),
        ([[0, 0, 0], [0, 0, 0]], [1, 2]),  # ties: the lowest places
        ([[9, 7, 9], [7, -7, 8]], [1, 5]),
        ([[np.inf, 0, np.inf], [0, np.inf, -np.inf]], [3, 5]),
    ],
)
def test_rigl_grows_at_the_largest_gradients_of_free_places(gradients, grown):
    links = Links(3, 2, 1, np.array([0, 4]))
    change = RigL(eta=1).rewire(links, f32(0.1, -0.2), NO_LUCK, np.array(gradients, dtype=np.float32))
    assert change.grown.tolist() == change.links.places.tolist() == grown
    assert change.dropped.tolist() == [0, 4]


def test_rigl_grows_blocks_by_the_sum_of_their_gradients():
    links = Links(3, 4, 2, np.array([0]))
    gradients = f32(9, 3, 0, 9, 0, 1, 0, 2, 1, 0, -2, -2).reshape(4, 3)
    # sums of magnitudes, per input and block of two outputs: (18, 0) (3, 4) (1, 3)
    assert RigL(eta=1).rewire(links, f32(1, 1), NO_LUCK, gradients).grown.tolist() == [3]


@pytest.mark.parametrize("block", [1, 2])
@pytest.mark.parametrize("panel", [1, 100, 1000, 10**6])
def test_rigl_grows_the_same_panel_by_panel(panel, block, monkeypatch):
    rng = np.random.default_rng(panel)
    links = erdos_renyi(40, 30, 300 * block, rng, block)
    dense = rng.integers(-5, 6, (30, 40)).astype(np.float32)  # many are alike
    sizes = []

    def read(begin, end):
        sizes.append((end - begin) * 30)
        return dense.T[begin:end]

    monkeypatch.setattr(gradients, "PANEL", panel)
    weights = rng.standard_normal((links.blocks, block)).astype(np.float32)
    for rule in (RigL(eta=0.5), RigL(eta=0.5, min_links=8)):
        grown = [
            rule.rewire(links, weights, np.random.default_rng(0), given).grown
            for given in (dense, DenseGradient(40, 30, read))
        ]
        np.testing.assert_array_equal(*grown)
    assert sum(sizes) == 2 * dense.size
    assert max(sizes) <= max(panel, 30)


@pytest.mark.parametrize("rule", [SET(eta=1), RigL(eta=1)])
@pytest.mark.parametrize(
    ("links", "weights", "dropped", "grown"),
    [
        # full: nothing changes
        (line(3, 0, 1, 2), (0.1, 0.0, -0.1), [], []),
        (Links.dense(1, 8), (0.0,) * 8, [], []),
        # fewer free places than c: grow what there is and drop only as many
        (line(4, 0, 1, 3), (0.3, 0.1, 0.2), [1], [2]),
        (line(5, 0, 2, 4), (0.3, -0.1, 0.2), [2, 4], [1, 3]),
        # one link: it can move, and must if η says so
        (line(2, 1), (0.7,), [1], [0]),
        (line(2, 0), (-0.7,), [0], [1]),
        # no link at all
        (line(2), (), [], []),
        # a layer of one place
        (line(1, 0), (0.0,), [], []),
    ],
)
def test_full_nearly_full_and_nearly_empty_layers(rule, links, weights, dropped, grown):
    change = rule.rewire(links, f32(*weights), np.random.default_rng(0), np.ones((links.n_out, links.n_in)))
    assert change.dropped.tolist() == dropped
    assert change.grown.tolist() == grown
    assert change.links.count == links.count
    if not grown:
        assert change.links == links


def test_one_link_stays_when_eta_rounds_to_none():
    assert SET(eta=0.05).rewire(line(9, 4), f32(0), NO_LUCK).links == line(9, 4)


@given(st.data())
def test_every_rule_always(data):
    """Links kept, sorted, exactly c; what goes was there, what comes was not; same seed, same result."""
    block = data.draw(st.sampled_from(BLOCKS))
    n_in, n_out = data.draw(st.integers(1, 12)), block * data.draw(st.integers(1, 4))
    taken = data.draw(st.sets(st.integers(0, n_in * n_out // block - 1)))
    links = Links(n_in, n_out, block, np.array(sorted(taken), dtype=np.int64))
    few = st.sampled_from((0.0, -0.0, 0.5, -0.5, 0.25, -1.0, 2.0))  # many zeros and ties
    weights = f32(*data.draw(st.lists(few, min_size=links.count, max_size=links.count)))
    gradients = f32(*data.draw(st.lists(few, min_size=n_in * n_out, max_size=n_in * n_out))).reshape(n_out, n_in)
    rule = data.draw(st.sampled_from((SET, RigL)))(eta=data.draw(st.floats(0, 1)))
    before, seed = weights.copy(), data.draw(st.integers(0, 999))

    change = rule.rewire(links, weights, np.random.default_rng(seed), gradients)

    c = min(round(rule.eta * len(taken)), links.n_places - len(taken))
    dropped, grown, new = (x.tolist() for x in (change.dropped, change.grown, change.links.places))
    assert len(dropped) == len(grown) == c
    assert change.links.count == links.count
    assert change.links.block == block
    assert dropped == sorted(set(dropped))
    assert set(dropped) <= taken
    assert grown == sorted(set(grown))
    assert not set(grown) & taken
    assert new == sorted(taken - set(dropped) | set(grown))
    assert np.array_equal(weights, before)
    assert set(links.places.tolist()) == taken
    if block == 1:
        expected = set_oracle(weights, c) if rule.name == "set" else by_magnitude(range(len(weights)), weights)[:c]
        assert dropped == sorted(links.places[expected].tolist())
    again = rule.rewire(links, weights, np.random.default_rng(seed), gradients)
    assert again.links == change.links


def by_magnitude(indices, weights):
    return sorted(indices, key=lambda i: (abs(float(weights[i])), i))


def set_oracle(weights, c):
    """Drops one at a time: zeros, then positives and negatives in turn, whoever still has one."""
    zeros = [i for i, w in enumerate(weights) if w == 0]
    hands = [by_magnitude((i for i, w in enumerate(weights) if sign * w > 0), weights) for sign in (1, -1)]
    chosen, turn = zeros[:c], 0
    while len(chosen) < c:
        if hands[turn]:
            chosen.append(hands[turn].pop(0))
        turn = 1 - turn
    return chosen


@given(st.integers(1, 400), st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.5), st.integers(0, 999))
def test_set_agrees_with_taking_turns_on_larger_layers(n, eta, positive, zero, seed):
    rng = np.random.default_rng(seed)
    weights = (rng.random(n) * np.where(rng.random(n) < positive, 1, -1)).round(2).astype(np.float32)
    weights[rng.random(n) < zero] = 0
    dropped = SET(eta=eta).rewire(line(3 * n, *range(n)), weights, rng).dropped
    assert dropped.tolist() == sorted(set_oracle(weights, round(eta * n)))


@pytest.mark.parametrize("block", [1, 2])
def test_growth_is_uniform_over_places_that_were_free_before_the_drop(block):
    taken = [0, 1, 5, 8, 9, 10, 14, 17]
    links = Links(5, 4 * block, block, np.array(taken))
    weights = np.linspace(0.1, 0.9, links.count, dtype=np.float32)
    rng, draws, c = np.random.default_rng(7), 6000, 4
    hits = np.zeros(20)
    for _ in range(draws):
        hits[SET(eta=0.5).rewire(links, weights, rng).grown] += 1
    assert not hits[taken].any()  # what was just dropped does not come back either
    hits = np.delete(hits, taken)
    expected = draws * c / 12
    chi_square = ((hits - expected) ** 2 / (expected * (1 - c / 12))).sum() * 11 / 12
    assert 1.5 < chi_square < 31  # 11 degrees of freedom: one in a thousand is outside


def test_just_dropped_places_do_not_come_back_in_the_same_adaptation_but_may_in_the_next():
    links, rng, came_back = line(6, 0, 1, 2), np.random.default_rng(0), False
    for _ in range(50):
        first = SET(eta=0.5).rewire(links, f32(0.1, 0.2, -0.3), rng)
        assert not set(first.grown.tolist()) & set(first.dropped.tolist())
        second = SET(eta=0.5).rewire(first.links, f32(0.3, 0.3, 0.3), rng)
        came_back |= bool(set(second.grown.tolist()) & set(first.dropped.tolist()))
    assert came_back


def test_a_thousand_adaptations_keep_the_number_of_links():
    rng = np.random.default_rng(0)
    links = start = erdos_renyi(10, 16, 80, rng)
    for _ in range(1000):
        links = SET(eta=0.3).rewire(links, rng.standard_normal(80).astype(np.float32), rng).links
        assert links.count == 80
    assert links != start


@pytest.mark.parametrize("rule", [Dense(), Static(), Rule()])
def test_rules_that_never_rewire(rule):
    links = line(4, 0, 3)
    change = rule.rewire(links, f32(0, 0), NO_LUCK)
    assert change.links == links
    assert len(change.dropped) == len(change.grown) == 0
    assert not any(rule.due(t) for t in (0, 1, 1000))
    assert change.dropped.dtype == change.grown.dtype == np.int64


@pytest.mark.parametrize("rule", [SET(every=200), RigL(every=200)])
def test_due_at_every_e_updates_but_not_before_the_first(rule):
    assert [t for t in range(-200, 601) if rule.due(t)] == [200, 400, 600]
    assert all(SET(every=1).due(t) for t in (1, 2, 3))
    assert not SET(every=1).due(0)


def test_the_family_by_name():
    assert list(RULES.items()) == [("dense", Dense), ("static", Static), ("set", SET), ("rigl", RigL)]
    assert [(rule.sparse, rule.wants_gradients) for rule in RULES.values()] == [
        (False, False),
        (True, False),
        (True, False),
        (True, True),
    ]
    assert SET() == SET(eta=0.05, every=1000) == SET(0.05, 1000) != RigL()


@pytest.mark.parametrize("rule", [SET, RigL])
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"eta": -0.1}, ValueError, "eta must be from 0 to 1, not -0.1"),
        ({"eta": 1.1}, ValueError, "eta must be from 0 to 1, not 1.1"),
        ({"eta": float("nan")}, ValueError, "eta must be a finite number, not nan"),
        ({"eta": "0.1"}, TypeError, "eta must be a number, not '0.1'"),
        ({"every": 0}, ValueError, "every must be at least 1, not 0"),
        ({"every": -5}, ValueError, "every must be at least 1, not -5"),
        ({"every": 1e3}, TypeError, "every must be a whole number, not 1000.0"),
    ],
)
def test_wrong_settings_are_refused(rule, given, error, message):
    with pytest.raises(error, match=re.escape(message)):
        rule(**given)


@pytest.mark.parametrize("eta", [0, 0.5])
@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (f32(0.1, np.nan, 0.2, np.nan), ValueError, "weights[1] is NaN: it must be a number"),
        (f32(0.1, 0.2, 0.3), ValueError, "weights must have the shape (2, 2) or (4,), not (3,)"),
        (f32(0.1, 0.2, 0.3, 0.4).reshape(1, 4), ValueError, "the shape (2, 2) or (4,), not (1, 4)"),
        (np.array([1, 2, 3, 4]), TypeError, "weights must be an array of floats, not one of int64"),
        ([0.1, 0.2, 0.3, 0.4], TypeError, "weights must be an array of floats, not a list"),
    ],
)
def test_wrong_weights_are_refused(eta, weights, error, message):
    with pytest.raises(error, match=re.escape(message)):
        SET(eta=eta).rewire(Links(3, 4, 2, np.array([0, 3])), weights, NO_LUCK)


@pytest.mark.parametrize(
    ("gradients", "error", "message"),
    [
        (None, ValueError, "rule 'rigl' grows by gradients: give the dense gradient of the layer"),
        (np.ones((3, 4)), ValueError, "gradients must have the shape (4, 3), not (3, 4)"),
        (np.ones((4, 3), dtype=int), TypeError, "gradients must be an array of floats, not one of int64"),
        (
            np.where(np.eye(4, 3)[::-1] > 0, np.nan, 1),
            ValueError,
            "gradients[1, 2] is NaN: it must be a number",
        ),
    ],
)
def test_wrong_gradients_are_refused(gradients, error, message):
    with pytest.raises(error, match=re.escape(message)):
        RigL(eta=0.5).rewire(Links(3, 4, 2, np.array([0, 3])), f32(1, 2, 3, 4), NO_LUCK, gradients)


def test_the_examples_in_the_docstrings_run():
    examples = doctest.testmod(rules)
    assert examples.failed == 0 < examples.attempted


def test_rewiring_ends_and_is_annealed():
    rule = SET(eta=0.4, every=10, until=100, anneal=True)
    assert [t for t in range(200) if rule.due(t)] == list(range(10, 101, 10))
    assert [round(rule.at(t).eta, 6) for t in (0, 50, 100, 150)] == [0.4, 0.2, 0, 0]
    constant = RigL(eta=0.4, every=10, until=100)
    assert constant.at(50) is constant
    assert constant.due(100)
    assert not constant.due(110)


@pytest.mark.parametrize("given", [{"until": -1}, {"anneal": True}, {"until": 0, "anneal": True}])
def test_schedules_that_mean_nothing_are_refused(given):
    with pytest.raises(ValueError, match="until"):
        SET(**given)
