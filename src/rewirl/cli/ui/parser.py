"""A parser that reports errors in one sentence, and flags made from the fields of a dataclass."""

from __future__ import annotations

import argparse
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from rich_argparse import RawDescriptionRichHelpFormatter

from rewirl.cli.ui.loading import loading
from rewirl.envs.task_names import import_module, import_module_of
from rewirl.errors import Refused, nearest
from rewirl.training.config import hints, meanings_of


class _Help(RawDescriptionRichHelpFormatter):
    """Help with colours on terminals only, and headings as written."""

    group_name_formatter = str
    text_markup = help_markup = False  # [video] is the name of an extra

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)


class Parser(argparse.ArgumentParser):
    """The parser of a command. `examples` are shown below its help, one per line."""

    def __init__(self, prog: str, about: str, examples: Sequence[str]) -> None:
        epilog = "Examples:\n" + "\n".join(f"  {line}" for line in examples)
        super().__init__(
            prog=prog, description=about, epilog=epilog, formatter_class=_Help, allow_abbrev=False, add_help=False
        )
        self.add_argument("-h", "--help", action="help", help="Show this help and exit")
        self.add_argument(
            "--import",
            dest="modules",
            action="append",
            type=_imported,
            metavar="MODULE",
            help="Import this module first; needed for a task MODULE:TASK whose name comes from a file",
        )

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """The parsed arguments; an unknown flag is refused with the nearest known one."""
        args, unknown = self.parse_known_intermixed_args(words)
        for word in unknown:
            if word.startswith("-"):
                flag = word.split("=")[0]
                self.error(f"there is no flag {flag}{nearest(flag, self._option_string_actions)}")
            self.error(f"unexpected argument {word!r}")
        for task in (getattr(args, "task", None), *(getattr(args, "tasks", None) or ())):
            with loading():
                import_module_of(task or "")
        return args

    def error(self, message: str) -> NoReturn:
        raise Refused(f"{message.removeprefix('argument ')} (see {self.prog} --help)")


def _imported(module: str) -> str:
    with loading():
        import_module(module)
    return module


def add_fields(
    group: argparse._ArgumentGroup, kind: type, names: Iterable[str], defaults: Callable[[str], str]
) -> None:
    """A flag for each named field of a dataclass. Flags that are not given are absent from the result."""
    meanings, kinds = meanings_of(kind), hints(kind)
    for name in names:
        flag, default = "--" + name.replace("_", "-"), defaults(name)
        meaning = meanings[name].rstrip(".") + (f" (default: {default})" if default else "")
        common: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS, "help": meaning.replace("%", "%%")}
        if kinds[name] is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, **common)
            continue
        read, metavar, several = _reader(kinds[name])
        if several:
            common |= {"nargs": "+", "action": Several}
            read = listed(read) if read is not str else lambda text: [text]
        group.add_argument(flag, type=read, metavar=metavar, **common)


class Several(argparse.Action):
    """Collects the values of all words of a flag, each read by `listed`, in one list."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        setattr(namespace, self.dest, [value for word in values for value in word])


def listed(read: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Reads values with commas or spaces between them.

    >>> listed(int)("64,64"), listed(int)("400, 300"), listed(int)("8")
    ([64, 64], [400, 300], [8])
    """
    return lambda text: [read(part) for part in text.replace(",", " ").split() or [text]]


def _reader(hint: Any) -> tuple[Callable[[str], Any], str, bool]:
    """The parser for values of this type, their placeholder, and whether the flag takes several."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        literals = [a for kind in inner if typing.get_origin(kind) is typing.Literal for a in typing.get_args(kind)]
        read, metavar, several = _reader(next(kind for kind in inner if kind is not types.NoneType))
        if not literals or typing.get_origin(inner[0]) is typing.Literal:
            return read, metavar, several
        return _or_word(read, literals), f"{metavar}|{literals[0]}", several
    if origin is typing.Literal:
        return _one_of(inner), "|".join(inner), False
    if origin is tuple and inner[0] is str:
        return str, "NAME=VALUE", True
    if origin is tuple:
        return *_reader(inner[0])[:2], True
    if hint is str:
        return str, "PATH", False
    return (whole, "N", False) if hint is int else (number, "X", False)


def _one_of(words: Sequence[str]) -> Callable[[str], str]:
    def reading(text: str) -> str:
        if text not in words:
            raise argparse.ArgumentTypeError(f"must be {' or '.join(words)}, not {text!r}")
        return text

    return reading


def _or_word(read: Callable[[str], Any], words: Sequence[str]) -> Callable[[str], Any]:
    """Accepts one of the words as it is, and parses anything else with `read`."""

    def reading(text: str) -> Any:
        if text in words:
            return text
        try:
            return read(text)
        except argparse.ArgumentTypeError as error:
            must, _, given = str(error).partition(", not ")
            raise argparse.ArgumentTypeError(f"{must} or {' or '.join(words)}, not {given}") from None

    return reading


def whole(text: str) -> int:
    """A whole number, also as 1e6 or 100_000.

    >>> whole("1e6"), whole("-1")
    (1000000, -1)
    """
    try:
        value = float(text) if set(text.lower()) & set(".e") else int(text)
        if value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}")


def number(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}") from None
