"""A trained policy: a small file and a few lines of NumPy."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rewirl.limits import LOG_STD
from rewirl.policies import sealed_file as container
from rewirl.policies.file_header import (
    ALGORITHMS,
    DISCRETE,
    FORMAT,
    OWN_METADATA,
    PARTS,
    check_header,
    outputs_of,
)
from rewirl.policies.layer import Floats, PolicyLayer, _owned
from rewirl.policies.scaling import Scaling, check_statistic
from rewirl.policies.sealed_file import PolicyFileError

__all__ = ["Policy", "PolicyFileError", "PolicyLayer"]


def _none() -> Floats:
    return np.zeros(0, dtype=np.float32)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Policy:
    """A trained policy: layers with ReLU between them, then tanh and the action box, or the largest output's action.

    Needs only NumPy. `predict` has the interface of Stable-Baselines3.

    >>> link = np.array([0, 1], np.int32), np.array([0], np.int32), np.array([1], np.float32), np.array([0], np.float32)
    >>> low, high = np.array([0], np.float32), np.array([10], np.float32)
    >>> policy = Policy(layers=[PolicyLayer(1, 1, *link)], low=low, high=high, algorithm="td3", task="Toy-v0")
    >>> policy.predict([0.0])
    (array([5.], dtype=float32), None)
    """

    layers: Sequence[PolicyLayer]
    """Layers, from the observation to the network's outputs."""
    low: Floats = field(default_factory=_none)
    """Lowest action, per dimension; empty if actions are discrete."""
    high: Floats = field(default_factory=_none)
    """Highest action, per dimension; empty if actions are discrete."""
    first: int = 0
    """The action of the first output, if actions are discrete."""
    obs_mean: Floats = field(default_factory=_none)
    """What is subtracted from each number of an observation; empty if observations are used as they are."""
    obs_std: Floats = field(default_factory=_none)
    """What they are then divided by, before they are clipped to ±10; empty if observations are used as they are."""
    algorithm: str
    """`td3`, `sac` or `dqn`."""
    task: str = ""
    """Name of the task that it was trained on."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Further texts to store with it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        object.__setattr__(self, "metadata", dict(self.metadata))
        object.__setattr__(self, "low", _owned("low", self.low, np.dtype(np.float32)))
        object.__setattr__(self, "high", _owned("high", self.high, np.dtype(np.float32)))
        if not self.layers:
            raise ValueError("a policy needs at least one layer")
        for number, (before, after) in enumerate(pairwise(self.layers), start=1):
            if before.n_out != after.n_in:
                raise ValueError(
                    f"layer {number} takes {after.n_in} inputs, but layer {number - 1} has {before.n_out} outputs"
                )
        if len(self.low) != len(self.high) or not (
            np.isfinite(self.low).all() and np.isfinite(self.high).all() and (self.low < self.high).all()
        ):
            raise ValueError(
                f"an action box needs finite lows below finite highs, not low {self.low}, high {self.high}"
            )
        for name in ("obs_mean", "obs_std"):
            object.__setattr__(self, name, _owned(name, getattr(self, name), np.dtype(np.float32)))
        if len(self.obs_mean) or len(self.obs_std):
            check_statistic("obs_mean", self.obs_mean, (self.n_obs,))
            check_statistic("obs_std", self.obs_std, (self.n_obs,))
        outputs = outputs_of(self.algorithm, len(self.low))
        if self.is_discrete:
            if len(self.low):
                raise ValueError(f"a {self.algorithm} policy has no action box: its actions are discrete")
            if type(self.first) is not int or not -(2**31) <= self.first < 2**31 - self.n_act:
                raise ValueError(f"the first action must be a whole number of 32 bits, not {self.first!r}")
        elif not len(self.low) or self.layers[-1].n_out != outputs:
            raise ValueError(
                f"a {self.algorithm} policy with {len(self.low)} action dimensions has {outputs} outputs, "
                f"not {self.layers[-1].n_out}"
            )
        for name in self.metadata:
            if name in OWN_METADATA:
                raise ValueError(f"the metadata name {name!r} is reserved: choose another")

    def __repr__(self) -> str:
        dense = sum(layer.n_in * layer.n_out for layer in self.layers)
        facts = [self.task, self.metadata.get("method", self.algorithm), "-".join(map(str, self.sizes))]
        facts.append(f"{sum(self.links):,} links, {1 - sum(self.links) / dense:.0%} sparse")
        for name, form in (("step", ",.0f"), ("return", ",.1f")):
            with suppress(KeyError, ValueError):  # a file may lack it, or contain any text
                facts.append(f"{name} {format(float(self.metadata[name]), form)}")
        return f"Policy({', '.join(filter(None, facts))})"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Widths: observation, hidden layers, outputs of the network."""
        return (self.layers[0].n_in, *(layer.n_out for layer in self.layers))

    @property
    def n_obs(self) -> int:
        """Numbers in an observation."""
        return self.layers[0].n_in

    @property
    def n_act(self) -> int:
        """Numbers in an action; if actions are discrete, the number of choices."""
        return self.layers[-1].n_out if self.is_discrete else len(self.low)

    @property
    def links(self) -> tuple[int, ...]:
        """Links of each layer."""
        return tuple(layer.links for layer in self.layers)

    @property
    def is_gaussian(self) -> bool:
        """Whether the network gives a mean and a log-std for each number of an action."""
        return ALGORITHMS[self.algorithm] == 2

    @property
    def is_discrete(self) -> bool:
        """Whether actions are discrete: one of `n_act`."""
        return self.algorithm in DISCRETE

    @property
    def around(self) -> str:
        """Wrappers around the task in training, which only Python can recreate; empty if none."""
        return self.metadata.get("wrappers", "")

    @property
    def is_normalised(self) -> bool:
        """Whether observations are normalised before the network sees them."""
        return len(self.obs_mean) > 0

    def normalised(self, observation: Floats) -> Floats:
        """One observation or several, as the network sees them."""
        return Scaling(self.obs_mean, self.obs_std).observation(observation)

    def outputs(self, observation: Floats) -> Floats:
        """Outputs of the network before tanh and the action box or the choice, for one observation or several."""
        x = self.normalised(observation)
        for layer in self.layers[:-1]:
            x = layer(x)
            np.maximum(x, 0, out=x)
        return self.layers[-1](x)

    def __call__(self, observation: ArrayLike) -> NDArray[Any]:
        """The action for one observation, or the actions for several."""
        return self.predict(observation)[0]

    def predict(
        self,
        observation: ArrayLike,
        *,
        deterministic: bool = True,
        rng: np.random.Generator | None = None,
        state: None = None,
        episode_start: object = None,
    ) -> tuple[NDArray[Any], None]:
        """The action for one observation (n_obs,), or the actions for several (n, n_obs): inside the box, or int64 if
        actions are discrete.

        With `deterministic=False` a SAC policy samples from its distribution with `rng`; other policies are always
        deterministic. `state` and `episode_start` are ignored: Stable-Baselines3's tools pass them.
        """
        x = np.asarray(observation, dtype=np.float32)
        if x.ndim not in (1, 2) or x.shape[-1] != self.n_obs:
            raise ValueError(
                f"an observation of this policy is {self.n_obs} numbers (or a row of them each), not of shape {x.shape}"
            )
        out = self.outputs(x)
        if self.is_discrete:
            return np.asarray(out.argmax(axis=-1) + self.first, dtype=np.int64), None
        action = out[..., : self.n_act]
        if not deterministic and self.is_gaussian:
            std: Floats = np.exp(np.clip(out[..., self.n_act :], *LOG_STD))
            noise: Floats = (rng or np.random.default_rng()).standard_normal(std.shape, dtype=np.float32)
            action = action + std * noise
        center, half = self._box
        mapped = (center + half * np.tanh(action)).astype(np.float32)
        return np.minimum(np.maximum(mapped, self.low), self.high), None

    @cached_property
    def _box(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Centre and half-range in float64, then rounded once: the ends of the box are met exactly."""
        low, high = self.low.astype(np.float64), self.high.astype(np.float64)
        return (high + low) / 2, (high - low) / 2

    def acting(self) -> Policy:
        """The policy without outputs that `deterministic=True` does not need, such as SAC's log-std."""
        if not self.is_gaussian:
            return self
        *hidden, last = self.layers
        return replace(self, layers=[*hidden, last.head(self.n_act)], algorithm="td3")

    def save(self, path: str | Path) -> None:
        """Writes one safetensors file; the same policy gives the same bytes."""
        container.write(path, *self.to_tensors())

    def to_tensors(self) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
        """The arrays and the metadata of its file."""
        tensors: dict[str, NDArray[Any]] = {"action.low": self.low, "action.high": self.high}
        if self.is_discrete:
            tensors = {"action.first": np.array([self.first], dtype=np.int32)}
        if self.is_normalised:
            tensors |= {"observation.mean": self.obs_mean, "observation.std": self.obs_std}
        for number, layer in enumerate(self.layers):
            for part in PARTS:
                tensors[f"layer.{number}.{part}"] = getattr(layer, part)
        own = {
            "format": FORMAT,
            "format_version": "3" if self.is_normalised else "2" if self.is_discrete else "1",
            "rewirl": version("rewirl"),
            "algorithm": self.algorithm,
            "task": self.task,
            "sizes": ",".join(map(str, self.sizes)),
            "links": ",".join(map(str, self.links)),
        }
        return tensors, {**self.metadata, **own}

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """The policy in a file written by `save`, or in the file of a whole agent. Any other file is refused with a
        PolicyFileError, before memory of the claimed size is allocated."""
        with container.opened(path) as file:
            return cls._of(file)

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> Policy:
        """As `load`, from the content of a file, whose name is for messages."""
        with container.naming(name):
            return cls._of(container.SealedFile(io.BytesIO(content), len(content)))

    @classmethod
    def _of(cls, file: container.SealedFile) -> Policy:
        check_header(file)
        tensors, text = file.tensors(), file.metadata
        sizes = [int(size) for size in text["sizes"].split(",")]
        layers = []
        for number, shape in enumerate(pairwise(sizes)):
            parts = [tensors[f"layer.{number}.{part}"] for part in PARTS]
            try:
                layers.append(PolicyLayer(*shape, *parts))
            except ValueError as error:
                raise PolicyFileError(f"layer {number}: {error}") from error
        if text["algorithm"] in DISCRETE:
            actions: dict[str, Any] = {"first": int(tensors["action.first"][0])}
        else:
            actions = {name: tensors[f"action.{name}"] for name in ("low", "high")}
        return cls(
            layers=layers,
            **actions,
            obs_mean=tensors.get("observation.mean", _none()),
            obs_std=tensors.get("observation.std", _none()),
            algorithm=text["algorithm"],
            task=text["task"],
            metadata={name: value for name, value in text.items() if name not in OWN_METADATA},
        )
