"""Names of tasks and their newest versions."""

from __future__ import annotations

import re

import gymnasium
from gymnasium.envs.registration import find_highest_version, parse_env_id


def full_name(task: str) -> str:
    """The name with its newest version, if it has none and is not registered by itself.

    >>> full_name("Pendulum"), full_name("Pendulum-v0"), full_name("no/Such")
    ('Pendulum-v1', 'Pendulum-v0', 'no/Such')
    """
    if task in gymnasium.registry or _version(task) is not None:
        return task
    return newer(task) or task


def without_version(task: str) -> str:
    """
    >>> without_version("HalfCheetah-v5")
    'HalfCheetah'
    """
    return re.sub(r"-v\d+$", "", task)


def newer(task: str) -> str | None:
    """The newest version of a task, if it is newer.

    >>> newer("Pendulum-v0"), newer("Pendulum-v1")
    ('Pendulum-v1', None)
    """
    try:
        namespace, name, version = parse_env_id(task)
    except gymnasium.error.Error:
        return None
    newest = find_highest_version(namespace, name)
    if newest is None or (version is not None and version >= newest):
        return None
    return f"{f'{namespace}/' if namespace else ''}{name}-v{newest}"


def _version(task: str) -> int | None:
    try:
        return parse_env_id(task)[2]
    except gymnasium.error.Error:
        return None
