"""`verify` names every fault of a run folder, and none that is not there; what can be mended is."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny

from rewirl.errors import Refused
from rewirl.storage import inspect_run, resume, start, verify
from rewirl.training import RunConfig


def test_a_run_without_evaluations_has_no_best_policy(tmp_path: Path) -> None:
    tiny.train(tmp_path / "run", eval_every=0)
    assert not (tmp_path / "run" / "best_policy.safetensors").exists()
    assert verify(tmp_path / "run") == []
    tiny.train(tmp_path / "other")
    (tmp_path / "other" / "best_policy.safetensors").unlink()
    assert len(verify(tmp_path / "other")) == 1


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_broken_config_hides_no_other_fault(checkpoints: bool, tmp_path: Path) -> None:
    with start(tiny.config(), tmp_path / "run") as run:
        run.train(320 if checkpoints else 0)
    (tmp_path / "run" / "config.toml").write_text("nonsense")
    (tmp_path / "run" / "policy.safetensors").write_bytes(b"")
    found = verify(tmp_path / "run")
    assert len(found) == 2
    assert "config.toml is not a config" in found[0]
    assert "policy.safetensors" in found[1]


def test_a_bad_row_blames_its_own_file_alone(tmp_path: Path) -> None:
    tiny.train(tmp_path / "run")
    rows = tmp_path / "run" / "evaluations.csv"
    rows.write_bytes(rows.read_bytes().replace(b"\n150,", b"\n1x0,"))
    found = verify(tmp_path / "run")
    assert found
    assert all("evaluations.csv" in problem and "wiring.bin" not in problem for problem in found)


@pytest.mark.parametrize("eval_every", [0, 150, 250])
@pytest.mark.parametrize("lost", [False, True])
def test_the_policy_of_a_run_that_is_done_is_restored(eval_every: int, lost: bool, tmp_path: Path) -> None:
    """At step 600 there was an evaluation, or not: its return is in the policy, or not."""
    tiny.train(tmp_path / "run", eval_every=eval_every)
    before = tiny.content(tmp_path / "run")
    policy = tmp_path / "run" / "policy.safetensors"
    policy.unlink() if lost else policy.write_bytes(policy.read_bytes()[:100])
    with resume(tmp_path / "run") as run:
        assert "policy.safetensors is missing or damaged: it is restored" in run.notices[0]
        assert not run.done
        run.train()
        assert run.done
    assert verify(tmp_path / "run") == []
    assert tiny.content(tmp_path / "run") == before


def test_killed_between_the_last_checkpoint_and_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps are made, and still it is not done: the last policy is not written, nor the replay deleted."""
    tiny.train(tmp_path / "whole", eval_every=250)
    with monkeypatch.context() as patch, start(tiny.config(eval_every=250), tmp_path / "run") as run:
        patch.setattr("rewirl.storage.store.FolderStore.finish", lambda *_: None)
        run.train()
    with resume(tmp_path / "run") as run:
        assert run.step == 600
        assert not run.done
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")
    assert inspect_run(tmp_path / "run").state == "done"
    assert (tmp_path / "run" / "replay.bin").exists() == (tmp_path / "whole" / "replay.bin").exists()


@pytest.mark.parametrize("checkpoint_every", [100, 1000])
def test_a_run_is_not_made_shorter_than_it_is(checkpoint_every: int, tmp_path: Path) -> None:
    given = {"checkpoint_every": checkpoint_every}
    tiny.train(tmp_path / "whole", steps=700, **given)
    with start(tiny.config(**given), tmp_path / "run") as run:
        run.train(320)
        config = (tmp_path / "run" / "config.toml").read_text()
    if checkpoint_every == 1000:  # killed before the first one: it begins anew, but not to end before where it was
        for path in (tmp_path / "run" / "checkpoint").iterdir():
            path.rename(tmp_path / "gone")
    rows = (tmp_path / "run" / "evaluations.csv").read_bytes()
    with pytest.raises(Refused, match=r"has made 3\d\d steps already, and 100 were requested"):
        resume(tmp_path / "run", config=tiny.config(steps=100, **given))
    assert (tmp_path / "run" / "config.toml").read_text() == config
    assert (tmp_path / "run" / "evaluations.csv").read_bytes() == rows
    with resume(tmp_path / "run", config=tiny.config(steps=700, **given)) as run:
        run.train()
    assert tiny.content(tmp_path / "run") == tiny.content(tmp_path / "whole")
    assert RunConfig.from_toml((tmp_path / "run" / "config.toml").read_text()).steps == 700
