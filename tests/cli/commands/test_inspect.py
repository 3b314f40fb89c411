"""`rewirl inspect`: the terminal and the page say what the files hold; bad input is refused in one sentence."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rewirl.cli import main
from rewirl.experiments.analysis.wiring.inspection import look
from rewirl.policies import Policy, PolicyLayer
from rewirl.storage import start
from rewirl.storage.logs.tables import parse
from rewirl.training import RunConfig
from rewirl.training.measurements import DiagnosticsRow

SIZES = {"batch": 16, "steps": 500, "random_steps": 100, "eval_every": 100, "eval_episodes": 1}
TINY = {"hidden": (16, 16), "adapt_every": 50, "lambdas": (1.5, 4.0), **SIZES}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("inspected") / "run"
    with start(RunConfig.resolve(method="ds-td3", task="Pendulum-v1", seed=3, **TINY), path) as run:
        run.train()
    return path


def refused(capsys, *words: object) -> str:
    assert main([str(word) for word in words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rewirl: ")
    assert err.count("\n") == 1
    return err


def said(capsys, *words: object) -> str:
    assert main(["inspect", *map(str, words)]) == 0
    return capsys.readouterr().out


def cells(text: str, first: str) -> list[str]:
    (line,) = (line for line in text.splitlines() if line.strip().startswith(first))
    return line.strip().removeprefix(first).split()


def test_the_terminal_says_what_the_files_hold(capsys, folder):
    text = said(capsys, folder)
    text, diagnostics = text.split("\n diagnostics ")[0] + text.split("transitions of the replay.")[1], text
    policy = Policy.load(folder / "policy.safetensors")
    assert "ds-td3 on Pendulum-v1, seed 3 at step 500 of 500" in text
    assert cells(text, "actor ")[:4] == ["3", "→", "16", str(policy.links[0])]
    for name, column in (("cosine of angle", 0), ("sine of angle", 1), ("angular speed", 2)):
        assert cells(text, name)[0] == str(np.count_nonzero(policy.layers[0].columns == column))
    first, *_, last = parse(DiagnosticsRow, (folder / "diagnostics.csv").read_bytes())[-9:]
    shown = cells(diagnostics.split("\n diagnostics ")[1], "actor ")
    assert shown[:7] == ["1", f"{first.dead}", "of", "16", f"{first.dormant}", "of", "16"]
    assert f"{last.q_bias:+,.1f}" in diagnostics
    assert "torque" in text
    assert "3 observations → 1 action, widths 3 → 16 → 16 → 1" in text
    assert "8 rewirings replaced" in text
    assert re.search(r"return -[\d,.]+ ± [\d,.]+ in 3 episodes", text)
    assert "\x1b" not in text


def alone(folder) -> dict[str, list[int]]:
    """Layers with neurons that no link led to at some evaluation, and how many there were at each."""
    movement = look(folder / "policy.safetensors", episodes=0).movement
    counts = {f"{net}, layer {n + 1}": (~bits.any(axis=1)).sum(axis=1) for (net, n), bits in movement.wiring.items()}
    return {layer: over_time.tolist() for layer, over_time in counts.items() if over_time.any()}


def test_neurons_that_no_link_leads_to_are_counted(capsys, folder):
    told = said(capsys, folder, "--episodes", 0).split("neurons  ")[1]
    assert alone(folder)
    for layer, over_time in alone(folder).items():
        last = len(over_time) - 1
        assert cells(told, layer) == [str(over_time[round(part * last)]) for part in (0.25, 0.5, 0.75, 1)]
    assert told.count("layer") == len(alone(folder)) + 1  # and once in the sentence below


def test_fewer_features_and_no_episodes(capsys, folder):
    text = said(capsys, folder, "--features", 1, "--episodes", 0)
    assert "2 more observations: use --features 3 to list all" in text
    assert "return" not in text
    assert sum(name in text for name in (" cosine of", " sine of", " angular speed")) == 1
    assert "torque" in text  # actions are few


def test_best_and_a_file_alone(capsys, folder, tmp_path):
    assert "the critics are left out" in said(capsys, folder, "--best", "--episodes", 0)
    (tmp_path / "p.safetensors").write_bytes((folder / "policy.safetensors").read_bytes())
    text = said(capsys, tmp_path / "p.safetensors", "--episodes", 0)
    assert "seed 3 at step 500" in text
    assert "of 500" not in text
    assert "adaptations" not in text


class Page(HTMLParser):
    """Checks that every element is closed; keeps the text and what would be loaded from elsewhere."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text, self.sources = "", []
        self.feed(content)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img"):
            self.open.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["style"], ["script"]):
            self.text += data + " "


def test_the_page_is_whole_and_needs_nothing_else(capsys, folder, tmp_path):
    out = tmp_path / "new[b]" / "agent.html"
    assert f"Page written to {out}" in said(capsys, folder, "--html", out, "--episodes", 1)
    content = out.read_text()
    page = Page(content)
    assert len(page.sources) == 3  # pictures of three layers
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert "http" not in content.replace('xmlns="http', "")
    assert "@import" not in content
    assert "url(" not in content
    for told in ("ds-td3 on Pendulum-v1", "cosine of angle", "torque", "critic2, layer 2", "8 rewirings replaced"):
        assert told in page.text
    assert "<b>1</b><span>action</span>" in content
    assert "In 1 episode, 200 steps." in content
    assert content.count("<polyline") == 6 + len(alone(folder))
    assert ("neurons without incoming links" in page.text) == bool(alone(folder))
    assert "prefers-color-scheme: dark" in content


def test_a_page_of_what_someone_else_wrote_runs_nothing(capsys, tmp_path):
    rng = np.random.default_rng(0)
    sizes = (50, 4, 2)
    layers = [
        PolicyLayer(
            n_in,
            n_out,
            np.arange(0, n_in * n_out + 1, n_in, dtype=np.int32),
            np.tile(np.arange(n_in, dtype=np.int32), n_out),
            rng.standard_normal(n_in * n_out).astype(np.float32),
            np.zeros(n_out, np.float32),
        )
        for n_in, n_out in pairwise(sizes)
    ]
    evil = "<script>alert(1)</script>"
    ones = np.ones(2, np.float32)
    policy = Policy(
        layers=layers, low=-ones, high=ones, algorithm="td3", task=evil, metadata={"method": evil, "seed": evil}
    )
    policy.save(tmp_path / "p.safetensors")
    said(capsys, tmp_path / "p.safetensors", "--html", tmp_path / "p.html", "--episodes", 0)
    content = (tmp_path / "p.html").read_text()
    assert "<script" not in content
    assert "&lt;script&gt;" in content
    assert "The 40 of 50 observations with most weight are shown" in content
    Page(content)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("nothing", "there is no nothing"),
        ("{run} --features 0", "--features must be at least 1, not 0"),
        ("{run} --episodes -1", "--episodes must be at least 0, not -1"),
        ("{run} --seed -1", "--seed must be from 0 to 4294967295, not -1"),
        ("{run} --html {run}", "is a folder: give a file for --html"),
        ("{run} --html {run}/config.toml/x.html", "cannot write to"),
        ("{run} --htlm x", "there is no flag --htlm, did you mean --html?"),
    ],
)
def test_refusals(capsys, folder, words, says):
    assert says in refused(capsys, "inspect", *words.format(run=folder).split())


def test_a_run_without_a_policy_and_a_damaged_one(capsys, folder, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").write_bytes((folder / "config.toml").read_bytes())
    assert "has no policy yet" in refused(capsys, "inspect", tmp_path / "run")
    content = bytearray((folder / "policy.safetensors").read_bytes())
    content[-3] ^= 1
    Path(tmp_path / "run" / "policy.safetensors").write_bytes(content)
    assert "policy.safetensors" in refused(capsys, "inspect", tmp_path / "run")
