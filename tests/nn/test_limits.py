"""Python and the core have the same limits."""

import pytest

from rewirl import _core, limits

NAMES = [name for name in vars(limits) if name.isupper()]


@pytest.mark.parametrize("name", NAMES)
def test_limits_are_those_of_the_core(name):
    assert getattr(limits, name) == getattr(_core, name)


def test_every_limit_of_the_core_is_there():
    assert [name for name in vars(_core) if name.isupper()] == NAMES
