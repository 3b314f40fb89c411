"""Former module names: code that imports them gets the very modules that have their place now."""

from __future__ import annotations

from importlib import import_module

import pytest

from rewirl._aliases import MOVED


@pytest.mark.parametrize("former", MOVED)
def test_former_names_are_the_same_modules(former: str) -> None:
    assert import_module(former) is import_module(MOVED[former])


def test_public_names_that_moved() -> None:
    from rewirl import storage, training
    from rewirl.deploy import Policy, export_c  # noqa: F401

    for name in storage.__all__:
        assert getattr(training, name) is getattr(storage, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        training.nothing  # noqa: B018
