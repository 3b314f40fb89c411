"""The stored corpus, and some hundred neighbours of it, through every reader of untrusted bytes."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from readers import ALLOWED, CORPUS, READERS, fault, little_memory, mutations, seeds


def test_every_reader_has_a_corpus() -> None:
    assert {path.name for path in CORPUS.iterdir()} == {name.removesuffix("-resealed") for name in READERS}
    assert all(any(READERS[name](content) is not None for content in seeds(name)[:1]) for name in READERS), (
        "a valid one"
    )


@pytest.mark.parametrize("reader", READERS)
def test_no_input_is_more_than_refused(reader: str) -> None:
    stored = seeds(reader)
    tried = 2000 if reader == "journal" else 5000
    with little_memory():
        for content in (*stored, *islice(mutations(stored, random.Random(7)), tried)):
            error = fault(reader, content)
            assert error is None, (content[:300], error)


@pytest.mark.parametrize("name", [name for name in READERS if name.endswith("-resealed")])
def test_inputs_get_past_the_seal(name: str) -> None:
    """Most changes of a byte in an array are read, where the reader without a correct hash refuses all."""
    content = seeds(name)[0]
    changed = [content[:-n] + bytes([content[-n] ^ 1]) + content[-n + 1 :] for n in range(2, 34)]
    read = {reader: sum(_reads(reader, each) for each in changed) for reader in (name, name.removesuffix("-resealed"))}
    assert read[name.removesuffix("-resealed")] == 0
    assert read[name] > 0


def _reads(reader: str, content: bytes) -> bool:
    try:
        READERS[reader](content)
    except ALLOWED:
        return False
    return True
