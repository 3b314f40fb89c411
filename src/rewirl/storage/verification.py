"""Checks every hash and invariant of a run folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from rewirl.errors import Failed, Refused
from rewirl.policies.policy import Policy
from rewirl.storage import checkpoint
from rewirl.storage.checkpoint import UNFIT, Damaged
from rewirl.storage.folder import RunFolder, inspect_run
from rewirl.storage.initial_samples import kept
from rewirl.storage.logs import wiring_log
from rewirl.storage.logs.replay_file import ReplayFile
from rewirl.storage.logs.tables import parse
from rewirl.training.config import RunConfig
from rewirl.training.measurements import DiagnosticsRow, Episode, EvaluationRow
from rewirl.training.replay import Shape
from rewirl.untrusted import from_json, read_bytes, reason

ATTEMPTS = 20
"""Maximum attempts for a run that is training, until nothing changes during a check."""


def verify(folder: Path) -> list[str]:
    """The problems of a run folder, one sentence each; changes nothing, and opens nothing for writing."""
    place = RunFolder(folder)
    for _ in range(ATTEMPTS):
        before = _fingerprint(place)
        problems = _problems(place)
        if not problems or _fingerprint(place) == before:
            break  # otherwise the run replaced a file after we had read related ones
    return problems


def _fingerprint(place: RunFolder) -> list[object]:
    """Changes whenever a run writes or removes a checkpoint, starts or ends."""
    files = [place.replay, place.status, *(path / checkpoint.MANIFEST for path in checkpoint.found(place.checkpoints))]
    return [(file, file.stat().st_ino if file.exists() else None) for file in files]


def _problems(place: RunFolder) -> list[str]:
    info = inspect_run(place.path)
    state = place.read_status().get("state", "") if info.state == "damaged" else info.state
    config, problems = info.config, []
    if config is None:
        problems = [f"{place.config} is not a config of a run"]
        config = _saved_config(place)
    if config is None:
        return [*problems, *_policy_files(place, {})]
    problems += _notes(place)
    for part_of_it in (_checkpoints, _tables, _policies):
        problems += part_of_it(place, config, state)
    return problems


def _saved_config(place: RunFolder) -> RunConfig | None:
    """The copy in a checkpoint: without a config nothing else can be checked."""
    for path in checkpoint.found(place.checkpoints):
        with suppress(*UNFIT):
            return RunConfig.from_toml(checkpoint.read_run(path)["config.toml"].decode("utf-8"))
    return None


def _notes(place: RunFolder) -> Iterator[str]:
    """Files that nothing depends on."""
    for path, kind in ((place.status, dict), (place.about, list)):
        if path.exists():
            yield from _about(path, lambda path=path, kind=kind: _json(path, kind))  # type: ignore[misc]


def _json(path: Path, kind: type) -> None:
    if not isinstance(from_json(read_bytes(path)), kind):
        raise Damaged(f"{path} does not have the content that a run writes")


def _checkpoints(place: RunFolder, config: RunConfig, state: str) -> Iterator[str]:
    found = checkpoint.found(place.checkpoints)
    if state == "done" and not found:
        yield f"{place.checkpoints} is empty although the run is finished"
    for path in found:
        yield from _about(path, lambda path=path: _checkpoint(place, path, config))  # type: ignore[misc]


def _checkpoint(place: RunFolder, path: Path, config: RunConfig) -> None:
    files = checkpoint.read_run(path)
    if differences := RunConfig.from_toml(files["config.toml"].decode("utf-8")).differences(config):
        raise Damaged(f"{place.config} differs from the checkpoint's copy: {'; '.join(differences)}")
    state = checkpoint.load(path, files)
    step, shape = state.whole("step"), Shape(state.whole("n_obs"), state.whole("n_act"))
    if step != checkpoint.step_of(path):
        raise Damaged(f"{path} is of step {step}")
    config.empty_agent(shape.n_obs, shape.n_act).load_state(state.part("agent."))
    parse(Episode, files["progress.csv"])
    parse(EvaluationRow, files["evaluations.csv"])
    if place.replay.exists() or step < config.steps:
        ReplayFile.load(place.replay, config.replay_size, shape, state, writable=False)
    tables = [place.evaluations, place.progress]
    if place.diagnostics.name in files:  # older versions had none
        parse(DiagnosticsRow, files[place.diagnostics.name])
        tables.append(place.diagnostics)
    for now in tables:
        name = now.name
        if not now.is_file():
            raise Damaged(f"{now} is missing")
        try:
            content = read_bytes(now)
        except OSError as error:
            raise Damaged(f"{now} cannot be read: {error.strerror}") from None
        if not content.startswith(files[name]):
            raise Damaged(f"{now} does not start with the content of {path / name}")


def _tables(place: RunFolder, config: RunConfig, state: str) -> Iterator[str]:
    if state == "running":
        return  # rows may be pending
    problems = list(_about(place.evaluations, lambda: _evaluation_steps(place.evaluations, config)))
    yield from problems
    yield from _about(place.progress, lambda: _episode_steps(place.progress, config.envs))
    if problems:
        return  # the others cannot be checked with invalid rows
    if place.diagnostics.exists():
        yield from _about(place.diagnostics, lambda: _diagnosed_steps(place, state))
    if place.wiring.exists():
        yield from _about(place.wiring, lambda: _wiring(place))


def _evaluation_steps(path: Path, config: RunConfig) -> None:
    steps = [row.step for row in parse(EvaluationRow, read_bytes(path))]
    every = config.eval_every or 1
    # Besides these there is a row wherever the run ended, before it was extended as well.
    right = list(range(0, steps[-1] + 1, every)) if steps and config.eval_every else []
    if [step for step in steps if step % every == 0] != right or sorted(set(steps)) != steps:
        raise Damaged(f"{path} has a duplicate or missing row: steps are {steps} and should have {right} among them")


def _diagnosed_steps(place: RunFolder, state: str) -> None:
    """Rows of an older version's evaluations may be missing, at the start."""
    layers: dict[int, list[tuple[str, int]]] = {}
    for row in parse(DiagnosticsRow, read_bytes(place.diagnostics)):
        layers.setdefault(row.step, []).append((row.network, row.layer))
    steps = [row.step for row in parse(EvaluationRow, read_bytes(place.evaluations))]
    if state != "done" and steps:
        layers.pop(steps.pop(), None)  # a kill may have come before all its rows were written
    if list(layers) != steps[len(steps) - len(layers) :] or len(set(map(tuple, layers.values()))) > 1:
        raise Damaged(f"{place.diagnostics} has a duplicate or missing row: each evaluation has one for every layer")


def _episode_steps(path: Path, envs: int) -> None:
    """Episodes of several environments overlap, but no step is in two of them."""
    before = made = 0
    for episode in parse(Episode, read_bytes(path)):
        made += episode.length
        if episode.step < before + (episode.length if envs == 1 else 1) or made > episode.step:
            raise Damaged(f"{path} has the episode that ends at step {episode.step} twice or out of order")
        before = episode.step


def _wiring(place: RunFolder) -> None:
    logged = wiring_log.read(place.wiring)
    for number, row in enumerate(parse(EvaluationRow, read_bytes(place.evaluations))):
        for name in ("actor", "critic1", "critic2"):
            for layer, links in enumerate(map(int, getattr(row, f"{name}_links").split())):
                bits = logged.get((name, layer), ())
                if number >= len(bits) or bits[number].sum() != links:
                    raise Damaged(f"{place.wiring} does not have the {links} links of {name} at step {row.step}")


def _policies(place: RunFolder, config: RunConfig, state: str) -> Iterator[str]:
    # Without evaluations there is no best policy.
    done = state == "done"
    yield from _policy_files(place, {place.policy: done, place.best_policy: done and config.eval_every > 0})
    yield from _about(place.initial_policy, lambda: kept(place, config))


def _policy_files(place: RunFolder, wanted: Mapping[Path, bool]) -> Iterator[str]:
    for path in (place.policy, place.best_policy):
        if path.exists() or wanted.get(path):
            yield from _about(path, lambda path=path: Policy.load(path))  # type: ignore[misc]


def _about(path: Path, check: Callable[[], object]) -> Iterator[str]:
    try:
        check()
    except (Damaged, Refused, Failed) as error:
        yield str(error)
    except (OSError, *UNFIT) as error:
        yield f"{error}" if str(path) in str(error) and not isinstance(error, OSError) else f"{path}: {reason(error)}"
