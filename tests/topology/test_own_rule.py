"""A user's rule: one override is enough, and it cannot change the number of links."""

import numpy as np
import pytest

from rewirl.nn import Network
from rewirl.topology import DropAndGrow

from .test_rules import NO_LUCK, f32, line


class OldestGo(DropAndGrow):
    """What a user writes: the first links go."""

    name = "oldest"
    surplus = 0

    def choose_drops(self, links, weights, count):
        return np.arange(count + self.surplus)


def test_a_new_rule_is_one_override_and_cannot_change_the_number_of_links():
    links, weights = line(9, 2, 5, 7, 8), f32(0.1, 0.2, 0.3, 0.4)
    assert OldestGo(eta=0.5).rewire(links, weights, NO_LUCK).dropped.tolist() == [2, 5]

    class TooMany(OldestGo):
        surplus = 1

    with pytest.raises(ValueError, match="rule 'oldest' dropped 3 and grew 2: both must be 2"):
        TooMany(eta=0.5).rewire(links, weights, NO_LUCK)

    class Twice(OldestGo):
        def choose_growth(self, links, count, rng, gradients):
            return np.full(count, 3)

    with pytest.raises(ValueError, match="rule 'oldest' dropped 2 and grew 1: both must be 2"):
        Twice(eta=0.5).rewire(links, weights, NO_LUCK)

    class WhereOneIs(OldestGo):
        where = slice(None, None)

        def choose_growth(self, links, count, rng, gradients):
            return links.places[self.where]

    net = Network([links], np.random.default_rng(0))
    for rule, place in ((WhereOneIs(eta=0.5), 7), (WhereOneIs(eta=0.5), 2)):
        object.__setattr__(rule, "where", slice(2, 4) if place == 7 else slice(0, 2))  # kept, or just dropped
        with pytest.raises(ValueError, match=f"position {place} cannot grow a link: it has one"):
            _ = rule.rewire(links, weights, NO_LUCK).links
        with pytest.raises(ValueError, match=f"position {place} cannot grow a link: it has one"):
            net.adapt(rule, NO_LUCK)
    assert net.links(0) == links

    class FromTheEnd(OldestGo):
        chosen = (-1, 0)

        def choose_drops(self, links, weights, count):
            return np.array(self.chosen)

        def choose_growth(self, links, count, rng, gradients):
            return np.array([0, 1], dtype=np.int32)

    assert FromTheEnd(eta=0.5).rewire(links, weights, NO_LUCK).dropped.tolist() == [2, 8]
    assert net.adapt(FromTheEnd(eta=0.5), NO_LUCK) == 2
    FromTheEnd.chosen = (-1, 3)
    with pytest.raises(ValueError, match="rule 'oldest' dropped 1 and grew 2: both must be 2"):
        FromTheEnd(eta=0.5).rewire(links, weights, NO_LUCK)
