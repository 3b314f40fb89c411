"""The stored corpus, and some hundred neighbours of it, through every reader of untrusted bytes."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from readers import CORPUS, READERS, fault, mutations, seeds


def test_every_reader_has_a_corpus() -> None:
    assert {path.name for path in CORPUS.iterdir()} == READERS.keys()
    assert all(any(READERS[name](content) is not None for content in seeds(name)[:1]) for name in READERS), (
        "a valid one"
    )


@pytest.mark.parametrize("reader", READERS)
def test_no_input_is_more_than_refused(reader: str) -> None:
    stored = seeds(reader)
    for content in (*stored, *islice(mutations(stored, random.Random(7)), 5000)):
        error = fault(reader, content)
        assert error is None, (content[:300], error)
