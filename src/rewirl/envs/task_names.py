"""Names of tasks, their newest versions, and the modules that may be imported for them.

`module:Task-v0` makes Gymnasium import the module. A name may come from a stranger's file, so modules are imported
only for names that the user typed (`import_module_of`). For any other name the module must already be imported.
"""

from __future__ import annotations

import importlib
import re
import sys

import gymnasium
from gymnasium.envs.registration import find_highest_version, parse_env_id

from rewirl.errors import Refused


class NotImported(Refused):
    """The task belongs to a module that has not been imported."""

    def __init__(self, task: str) -> None:
        self.module = module_of(task)
        super().__init__(
            f"the task {task!r} is in the module {self.module}, which is not imported because its name was not typed: "
            "import it first if you trust it"
        )


def module_of(task: str) -> str:
    """The module part of a name, or an empty string.

    >>> module_of("own_environment:Docking-v0"), module_of("Pendulum-v1")
    ('own_environment', '')
    """
    return task.rpartition(":")[0]


def import_module_of(task: str) -> None:
    """Imports the module of a name that the user typed, if it has one."""
    if module := module_of(task):
        import_module(module)


def import_module(name: str) -> None:
    """Imports a module that the user named; refused when that fails."""
    try:
        importlib.import_module(name)
    except Exception as error:
        raise Refused(f"the module {name!r} cannot be imported: {type(error).__name__}: {error}") from error


def import_flags(task: str) -> list[str]:
    """The flags that `rewirl` needs to use a task whose name it reads from a file.

    >>> import_flags("Pendulum-v1"), import_flags("gymnasium:Pendulum-v1"), import_flags("nobody:Typed-v0")
    ([], ['--import', 'gymnasium'], [])
    """
    module = module_of(task)
    return ["--import", module] if module in sys.modules else []


def check_imported(task: str) -> None:
    """Refused if creating the task would import a module: the name may come from a file."""
    if (module := module_of(task)) and module not in sys.modules:
        raise NotImported(task)


def full_name(task: str) -> str:
    """The name with its newest version, if it has no version and is not registered as it is.

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
