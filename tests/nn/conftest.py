"""Instruction sets and threads, put back as they were."""

import pytest

from rewirl.nn import available_isas, isa, select_isa, set_threads, threads


@pytest.fixture(scope="module", params=available_isas())
def each_isa(request):
    """Runs what uses it once with every instruction set that the machine has."""
    before = isa()
    select_isa(request.param)
    yield request.param
    select_isa(before)


@pytest.fixture
def keep_threads():
    before = threads()
    yield
    set_threads(before)
