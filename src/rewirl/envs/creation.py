"""Creating and closing environments, and describing what was added around a task."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import gymnasium
from gymnasium.vector import AsyncVectorEnv, VectorEnv

from rewirl.envs.task_names import check_imported, full_name, newer
from rewirl.envs.vector_rows import Row, Vector, rows_of
from rewirl.errors import Refused, nearest
from rewirl.untrusted import printable

Env: TypeAlias = "gymnasium.Env[Any, Any]"
EnvLike: TypeAlias = "str | Env | Vector | Callable[[], Env | Vector]"
"""A name for gymnasium.make, an environment (also a vector environment), or a function that creates one."""

WATCHING = ("Monitor",)
"""Wrappers that only record, such as Stable-Baselines3's; evaluation omits them."""
BY_NAME = ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker", *WATCHING)
"""Wrappers that gymnasium.make adds by itself."""
RAISED = (Exception, SystemExit, GeneratorExit)
"""Exceptions of environment code, including SystemExit: sys.exit must not end a run without a checkpoint."""


def raised(error: BaseException, where: str = "") -> str:
    """What an environment raised, in one line.

    >>> raised(ValueError("no such joint"), " in step"), raised(MemoryError())
    ('ValueError in step: no such joint', 'MemoryError')
    """
    text = printable(_text(error))
    return f"{type(error).__name__}{where}{': ' if text else ''}{text}"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except RAISED as problem:  # its own code
        return f"its text cannot be shown ({type(problem).__name__})"


@dataclass(frozen=True)
class Source:
    """The source of a run's environments."""

    task: str
    """Its name for display."""
    env: EnvLike
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments for gymnasium.make, if it is created by name."""

    @property
    def is_given(self) -> bool:
        """Whether its environments are the user's, who closes them."""
        return isinstance(self.env, gymnasium.Env | VectorEnv)

    def make(self) -> Env:
        """The environment to train in; of a vector environment, the first one."""
        return self.make_all()[0]

    def make_all(self) -> list[Env]:
        """All environments of a vector environment; else the only one."""
        if isinstance(self.env, VectorEnv):
            return rows_of(self.env)
        return [self.env] if isinstance(self.env, gymnasium.Env) else self._new()

    def another(self) -> Env:
        """A second environment that shares nothing with the first."""
        if isinstance(self.env, VectorEnv) and not isinstance(first := rows_of(self.env)[0], Row):
            return replace(self, env=first).another()
        if not self.is_given:
            return self._new()[0]
        try:
            if isinstance(self.env, VectorEnv):
                if isinstance(self.env.unwrapped, AsyncVectorEnv):  # an attempt to copy it would close its pipes
                    raise TypeError("its processes cannot be copied")
                return rows_of(copy.deepcopy(self.env))[0]
            assert isinstance(self.env, gymnasium.Env)
            spec = self.env.spec
            if spec is None:
                return copy.deepcopy(_unwatched(self.env))
            return gymnasium.make(
                replace(spec, additional_wrappers=tuple(w for w in spec.additional_wrappers if w.name not in WATCHING))
            )
        except RAISED as error:
            raise Refused(
                f"{self.task} cannot be created a second time for evaluation ({raised(error)}): "
                "give a function that creates it"
            ) from error

    def _new(self) -> list[Env]:
        if isinstance(self.env, str):
            return [make_by_name(self.env, **self.arguments)]
        try:
            made = self.env()  # type: ignore[operator]
        except RAISED as error:
            raise Refused(f"{self.task} could not be created: {raised(error)}") from error
        if isinstance(made, VectorEnv):
            return rows_of(made)
        if not isinstance(made, gymnasium.Env):
            raise Refused(f"{self.task} must be a gymnasium environment, not {type(made).__name__}")
        return [made]


def _unwatched(env: Env) -> Env:
    while isinstance(env, gymnasium.Wrapper) and type(env).__name__ in WATCHING:
        env = env.env
    return env


def close(env: Env) -> str | None:
    """Closes an environment. An error is only returned as a sentence, because the environment is no longer needed."""
    try:
        env.close()
    except RAISED as error:
        return f"raised {raised(error, ' in close')}"
    return None


def make_by_name(name: str, **options: Any) -> Env:
    """gymnasium.make with these options; an unknown name is refused with the nearest known one.

    >>> make_by_name("Pendulum-v1").action_space
    Box(-2.0, 2.0, (1,), float32)
    """
    name = full_name(name)
    check_imported(name)
    try:
        with _quiet_models(name), _quiet_versions(name):
            return gymnasium.make(name, disable_env_checker=True, **options)  # `Environment` does the same checks
    except gymnasium.error.UnregisteredEnv:
        raise Refused(f"there is no task {name!r}{nearest(name, gymnasium.registry)}") from None
    except gymnasium.error.DependencyNotInstalled as error:
        raise Refused(f"the task {name!r} needs a package that is not installed: {_wanted(error)}") from None
    except RAISED as error:
        # A message of Gymnasium is a sentence; sys.exit has a number.
        text = printable(_text(error)).rstrip(".")
        why = raised(error) if isinstance(error, SystemExit) or not text else text
        better = f"; use {newest}" if (newest := newer(name)) else ""
        raise Refused(f"the task {name!r} could not be created: {why}{better}") from error


def _wanted(error: Exception) -> str:
    """What to install, from Gymnasium's message.

    >>> _wanted(Exception('Box2D is not installed, you can install it by run `pip install "gymnasium[box2d]"`'))
    "pip install 'gymnasium[box2d]'"
    """
    extra = re.search(r"gymnasium\[([\w-]+)\]", str(error))
    return f"pip install 'gymnasium[{extra[1]}]'" if extra else str(error).rstrip(".")


@contextmanager
def _quiet_versions(name: str) -> Iterator[None]:
    """For MuJoCo tasks -v2 and -v3 Gymnasium has only a function that raises: its message is enough."""
    spec = gymnasium.registry.get(name)
    if spec is None or isinstance(spec.entry_point, str) or not newer(name):
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@contextmanager
def _quiet_models(name: str) -> Iterator[None]:
    """MuJoCo 4 warns about the models that Gymnasium ships, on the terminal and in a file; users cannot fix that."""
    spec = gymnasium.registry.get(name)
    if spec is None or "mujoco" not in str(spec.entry_point):
        yield
        return
    import mujoco  # type: ignore[import-untyped]

    mujoco.set_mju_user_warning(lambda _: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)


def wrappers_of(env: Env) -> str:
    """What was added to a task, separated by commas: wrappers, the outermost first, then arguments and a time limit
    that differ from the task's own.

    >>> from gymnasium.wrappers import TransformReward
    >>> wrappers_of(TransformReward(gymnasium.make("Pendulum-v1", g=9.81), abs))
    'TransformReward, g=9.81'
    >>> wrappers_of(gymnasium.make("Pendulum-v1"))
    ''
    """
    if isinstance(env, Row):
        return ", ".join(env.wrappers)
    found, spec = [], env.spec
    while isinstance(env, gymnasium.Wrapper):
        found.append(type(env).__name__)
        env = env.env
    found = [name for name in found if name not in BY_NAME]
    if spec is not None and (usual := gymnasium.registry.get(spec.id)) is not None:
        given = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
        given["max_episode_steps"] = spec.max_episode_steps
        known = {**usual.kwargs, "max_episode_steps": usual.max_episode_steps}
        found += [f"{name}={_shown(value)}" for name, value in sorted(given.items()) if known.get(name) != value]
    return ", ".join(found)


OWN_STATISTICS = {"NormalizeObservation": "observations", "NormalizeReward": "rewards"}
"""Wrappers of Gymnasium that keep running statistics, and what `normalize` calls these."""


def statistics_hint(env: Env) -> str | None:
    """What to tell a user whose wrappers keep statistics; None if none of them does.

    >>> from gymnasium.wrappers import NormalizeReward
    >>> print(statistics_hint(NormalizeReward(gymnasium.make("Pendulum-v1"))))
    NormalizeReward keeps statistics that evaluations, checkpoints and policies do not have: leave it out, and set \
normalize to 'rewards' instead
    """
    found = []
    while isinstance(env, gymnasium.Wrapper):
        found.append(type(env).__name__)
        env = env.env
    names = [name for name in OWN_STATISTICS if name in found]
    if not names:
        return None
    keep, it = ("keep", "them") if len(names) > 1 else ("keeps", "it")
    instead = ",".join(OWN_STATISTICS[name] for name in names)
    return (
        f"{' and '.join(names)} {keep} statistics that evaluations, checkpoints and policies do not have: leave {it} "
        f"out, and set normalize to {instead!r} instead"
    )


def _shown(value: object) -> str:
    """A representation without memory addresses."""
    return repr(value) if isinstance(value, str | int | float | tuple | list | None) else type(value).__name__
