"""The command `rewirl`: finds the command, runs it, and reports errors in one sentence."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

from rewirl.cli.ui.loading import early_signals, loading
from rewirl.cli.ui.output import outputs
from rewirl.errors import Failed, Refused, Stopped
from rewirl.untrusted import printable

# Slow imports happen on demand inside `loading`, because Ctrl-C must not interrupt them.
if TYPE_CHECKING:
    from rewirl.cli.ui.parser import Parser

COMMANDS = {
    "train": "train an agent on a task",
    "demo": "watch a sparse agent learn to run in two minutes",
    "sweep": "train all runs of an experiment in parallel",
    "tune": "search for good settings of the wiring: λ, η and e",
    "evaluate": "measure a trained policy",
    "inspect": "show layers, links, features and dead neurons",
    "play": "show an agent on the screen, or record a video",
    "list": "list runs and their state",
    "verify": "check every file of a run",
    "export": "export a policy as C source or ONNX",
    "report": "write a page, figures and tables about runs",
    "methods": "list the methods",
    "tasks": "list the tasks",
}
"""Commands (one module each) and what they do."""


class Command(Protocol):
    """The interface of a command's module."""

    EXAMPLES: Sequence[str]

    def arguments(self, parser: Parser) -> None: ...

    def run(self, args: object) -> None: ...


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code. Without words it is this process's program, with its arguments."""
    is_program = words is None
    words = sys.argv[1:] if words is None else list(words)
    try:
        with early_signals(to_the_end=is_program), outputs():
            return _ended(words)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1  # the reader has closed the pipe (`rewirl list | head`)
    except Failed as error:
        return _say(str(error), error.exit_code)


def _ended(words: Sequence[str]) -> int:
    try:
        _run(words)
        return 0
    except Refused as error:
        flag = f" (--{error.option.replace('_', '-')})" if error.option else ""
        return _say(f"{error}{flag}", error.exit_code)
    except (Failed, Stopped) as error:
        return _say(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except BrokenPipeError:
        raise
    except OSError as error:  # a file that may not be read, or whose name is too long
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"{where}{error.strerror or error}", Failed.exit_code)
    except MemoryError as error:
        what = f" ({error})" if str(error) else ""
        return _say(f"not enough memory{what}: use smaller networks, batches or replays", Failed.exit_code)


def _run(words: Sequence[str]) -> None:
    if not words or words[0] in ("-h", "--help"):
        print(_help(), end="")
        return
    if words[0] in ("-V", "--version"):
        with loading():
            from rewirl.cli.ui.versions import versions

        print(versions())
        return
    name = words[0]
    with loading():
        from rewirl.cli.ui.parser import Parser
        from rewirl.envs.task_names import NotImported
        from rewirl.errors import nearest

        if name in COMMANDS:
            command = cast(Command, importlib.import_module(f"rewirl.cli.commands.{name}"))
    if name not in COMMANDS:
        kind, known = ("flag", ("--help", "--version")) if name.startswith("-") else ("command", tuple(COMMANDS))
        raise Refused(f"there is no {kind} {name}{nearest(name, known)} (see rewirl --help)")
    parser = Parser(f"rewirl {name}", (command.__doc__ or "").strip(), command.EXAMPLES)
    command.arguments(parser)
    try:
        args = parser.read(words[1:])
    except SystemExit:  # argparse's way to end after --help
        return
    try:
        command.run(args)
    except NotImported as error:
        raise Refused(f"{error} (--import {error.module})") from error


def _help() -> str:
    lines = [
        "Deep RL agents that rewire themselves while they learn.",
        "",
        "Usage: rewirl COMMAND ...",
        "",
        "Commands:",
    ]
    lines += [f"  {name:<10} {about}" for name, about in COMMANDS.items()]
    lines += [
        "",
        "Examples:",
        "  rewirl demo",
        "  rewirl train ds-td3 HalfCheetah-v5 --seed 1",
        "  rewirl train ds-td3 HalfCheetah-v5 --seed 1 --dry-run",
        "  rewirl sweep paper/td3 --tasks HalfCheetah-v5 --dry-run",
        "  rewirl list",
        "",
        "rewirl COMMAND --help explains a command; rewirl --version prints what a bug report needs.",
        "",
    ]
    return "\n".join(lines)


def _say(sentence: str, code: int) -> int:
    print(f"rewirl: {printable(sentence)}", file=sys.stderr)
    return code
