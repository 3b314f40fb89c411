"""Identity of runs: by the content of their configs, not by the names of their folders."""

from __future__ import annotations

from pathlib import Path

from rewirl.files import sha256, to_json
from rewirl.storage import RunInfo, list_runs
from rewirl.training.config import RunConfig


def content_of(config: RunConfig) -> str:
    """A hash of what a run computes: equal for configs whose runs are bit-identical up to the shorter one's end.

    >>> one = RunConfig.resolve(method="ds-td3", task="HalfCheetah-v5", seed=1, steps=500_000)
    >>> same = RunConfig.resolve(method="ds-td3", task="HalfCheetah-v5", seed=1, lambdas=(7, 64), threads=2)
    >>> content_of(one) == content_of(same)
    True
    """
    return sha256(to_json({name: value for name, value in config.items().items() if name not in RunConfig.FREE}))


def known_runs(folder: Path) -> dict[str, list[RunInfo]]:
    """All runs below a folder by content, longest first."""
    found: dict[str, list[RunInfo]] = {}
    for info in list_runs(folder) if folder.is_dir() else []:
        if info.config is not None:
            found.setdefault(content_of(info.config), []).append(info)
    return {content: sorted(infos, key=lambda info: -info.step) for content, infos in found.items()}
