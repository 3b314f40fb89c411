"""The paper's numbers, shown next to ours: -v3 tasks, 1M steps, 5 seeds."""

from __future__ import annotations

from dataclasses import dataclass

from rewirl.envs.task_names import without_version

STEPS = 1_000_000
SEEDS = 5
TASKS = ("HalfCheetah", "Walker2d", "Hopper", "Ant", "Humanoid")


@dataclass(frozen=True)
class PaperFigures:
    """Of one method on one task."""

    final_return: float
    std: float
    lca: float
    """Divided by 5 000, as in the paper's tables."""


# Tables 1 and 2, and 4 and 5 of the appendix (hard target updates), in the order of TASKS.
_RETURNS = {
    ("td3", False): "11153.48±473.29 4042.36±576.57 2184.78±1224.14 4287.69±1080.88 3809.15±1053.40",
    ("static-td3", False): "10583.84±307.03 3951.01±443.78 3570.88±43.71 4148.61±801.34 4989.47±546.32",
    ("ds-td3", False): "11459.88±482.55 4870.57±525.33 3587.17±70.62 5011.56±596.95 5238.16±121.71",
    ("sac", False): "11415.23±357.22 4566.18±448.25 3387.36±148.73 5848.64±385.85 5518.61±97.03",
    ("sac", True): "11645.12±425.585 3858.20±689.913 3100.39±374.45 5899.30±197.15 5425.56±196.33",
    ("ds-sac", True): "11084.39±445.15 4216.77±236.23 3229.39±135.82 5943.54±169.95 5584.64±109.40",
}
_LCA = {
    ("td3", False): "1.7686 .5264 .4788 .5524 .3635",
    ("static-td3", False): "1.7666 .5167 .4984 .5807 .5182",
    ("ds-td3", False): "1.9560 .6956 .5435 .6623 .6089",
    ("sac", False): "1.7297 .6128 .5572 .7969 .5639",
    ("sac", True): "1.6229 .5368 .4441 .7504 .3776",
    ("ds-sac", True): "1.7081 .5906 .4875 .8229 .6777",
}


def in_paper(task: str) -> bool:
    """Whether it is one of the paper's tasks, whatever its version.

    >>> in_paper("HalfCheetah-v5"), in_paper("Pendulum-v1")
    (True, False)
    """
    return without_version(task) in TASKS


def figures(method: str, task: str, hard: bool = False) -> PaperFigures | None:
    """The paper's results for a task of any version; None if there are none.

    >>> figures("ds-td3", "HalfCheetah-v5")
    PaperFigures(final_return=11459.88, std=482.55, lca=1.956)
    """
    base = without_version(task)
    if base not in TASKS or (method, hard) not in _RETURNS:
        return None
    place = TASKS.index(base)
    mean, std = _RETURNS[method, hard].split()[place].split("±")
    return PaperFigures(float(mean), float(std), float(_LCA[method, hard].split()[place]))
