"""The log of the wiring: what it says is what the networks had, also after a kill and a damage."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import tiny

from rewirl.cli import main
from rewirl.storage import resume, start, verify
from rewirl.storage.logs.wiring_log import WiringLog, matrix, read
from rewirl.topology import Links
from rewirl.training import Observer, Run
from rewirl.training.measurements import EvaluationRow


class Watch(Observer):
    """Keeps the links that the networks had at each evaluation."""

    def __init__(self) -> None:
        self.seen: list[dict[tuple[str, int], np.ndarray]] = []

    def on_evaluation(self, run: Run, row: EvaluationRow) -> None:
        networks = run.agent.networks.items()
        self.seen.append({(name, i): matrix(net.links(i)) for name, net in networks for i in range(net.layers)})


@pytest.mark.parametrize("block", [1, 4])
def test_it_holds_the_links_of_each_evaluation(block: int, tmp_path: Path) -> None:
    watch = Watch()
    with start(tiny.config(block=block), tmp_path / "run", observers=[watch]) as run:
        run.train()
    logged = read(tmp_path / "run" / "wiring.bin")
    assert len(watch.seen) == len(run.evaluations) == 5
    for number, networks in enumerate(watch.seen):
        assert networks.keys() == logged.keys()
        for layer, bits in networks.items():
            assert np.array_equal(logged[layer][number], bits), (number, layer)
    assert (logged["critic1", 1][0] != logged["critic1", 1][-1]).any(), "the wiring did move"


def test_a_dense_run_has_none(tmp_path: Path) -> None:
    tiny.train(tmp_path / "run", method="td3", eta=0.05, adapt_every=1000)
    assert not (tmp_path / "run" / "wiring.bin").exists()


def test_rows_after_the_checkpoint_are_made_again(tmp_path: Path) -> None:
    tiny.train(tmp_path / "whole")
    with start(tiny.config(checkpoint_every=10_000), tmp_path / "parts") as run:
        run.train(200)
        path = tmp_path / "parts" / "wiring.bin"
        path.write_bytes(path.read_bytes() + b"rows of a run that was killed")
    with resume(tmp_path / "parts") as run:
        run.train()
        assert not run.notices
    assert path.read_bytes() == (tmp_path / "whole" / "wiring.bin").read_bytes()


@pytest.mark.parametrize("damage", ["cut", "gone", "head"])
def test_a_damaged_log_is_said_and_costs_nothing_else(damage: str, tmp_path: Path) -> None:
    tiny.train(tmp_path / "whole")
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(320)
    path = tmp_path / "run" / "wiring.bin"
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[: len(content) // 2] if damage == "cut" else b"?" + content[1:])
        assert any("wiring.bin" in problem for problem in verify(tmp_path / "run"))
    with resume(tmp_path / "run") as run:
        assert "wiring.bin is damaged" in run.notices[0]
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")
    after, whole = read(path), read(tmp_path / "whole" / "wiring.bin")
    assert all(np.array_equal(after[layer][3:], whole[layer][3:]) for layer in whole)


def test_a_finished_run_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tiny.train(tmp_path / "run").folder
    assert folder
    content = bytearray((folder / "wiring.bin").read_bytes())
    content[-100] ^= 1
    (folder / "wiring.bin").write_bytes(content)
    assert main(["train", "--resume", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "note: " in said
    assert "wiring.bin is damaged" in said
    assert "This run is finished" in said


def first_format(path: Path) -> bytes:
    """The log as it was written before rows had checksums."""
    head, _, content = path.read_bytes().partition(b"\n")
    sizes = json.loads(head)["networks"]
    width = sum((a * b + 7) // 8 for widths in sizes.values() for a, b in pairwise(widths))
    rows = [content[start : start + width] for start in range(0, len(content), width + 8)]
    return json.dumps(sizes).encode() + b"\n" + b"".join(rows)


def test_every_flipped_byte_is_found(tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(320)
    path = tmp_path / "run" / "wiring.bin"
    content, networks = path.read_bytes(), run.agent.networks
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        log = WiringLog(path)
        assert not log.begin(networks, 3), place
        log.close()
    path.write_bytes(damaged)
    with resume(tmp_path / "run") as run:
        assert "wiring.bin is damaged" in run.notices[0]
    assert any("wiring.bin" in problem for problem in verify(tmp_path / "run"))
    assert [bool(row.any()) for row in read(path)["actor", 0]] == [True, True, False]


def test_rows_in_another_order_are_found(tmp_path: Path) -> None:
    tiny.train(tmp_path / "run")
    path = tmp_path / "run" / "wiring.bin"
    head, _, rows = path.read_bytes().partition(b"\n")
    width = len(rows) // 5
    path.write_bytes(b"\n".join([head, rows[width : 2 * width] + rows[:width] + rows[2 * width :]]))
    assert [bool(row.any()) for row in read(path)["actor", 0]] == [False, False, True, True, True]


def test_a_file_of_the_first_format_is_read_and_resumed(tmp_path: Path) -> None:
    tiny.train(tmp_path / "whole")
    whole = tmp_path / "whole" / "wiring.bin"
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(320)
    path = tmp_path / "run" / "wiring.bin"
    path.write_bytes(first_format(path))
    assert verify(tmp_path / "run") == []
    with resume(tmp_path / "run") as run:
        assert not run.notices
        run.train()
    assert path.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    "head",
    [
        "",
        "[1]",
        '{"actor": "x"}',
        '{"actor": []}',
        '{"actor": [0, 3]}',
        '{"format": 2}',
        '{"format": 2, "networks": {}}',
    ],
)
def test_what_is_no_log_is_refused(head: str, tmp_path: Path) -> None:
    (tmp_path / "wiring.bin").write_text(f"{head}\n")
    with pytest.raises(ValueError, match="not a wiring log"):
        read(tmp_path / "wiring.bin")


def test_blocks_are_single_links() -> None:
    bits = matrix(Links(2, 4, 2, np.array([1, 2])))
    assert bits.astype(int).tolist() == [[0, 0, 1, 1], [1, 1, 0, 0]]
