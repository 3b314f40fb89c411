"""Train an agent on a task. If the run is stopped or killed, the same command resumes it.

METHOD is one of `rewirl methods`. TASK is one of `rewirl tasks`, or any Gymnasium task with a flat Box observation and
a bounded Box or a Discrete action. Options that are not given have the paper's values.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from rewirl.agents.methods import METHODS, Method, algorithms
from rewirl.cli.ui.output import only_shown
from rewirl.cli.ui.parser import Parser, add_fields
from rewirl.cli.ui.run_plan import plan, sizes, unwirable
from rewirl.cli.ui.session import train
from rewirl.cli.ui.tables import show
from rewirl.errors import Refused
from rewirl.storage import inspect_run, run_folder
from rewirl.storage.folder import folder_name
from rewirl.training import Run
from rewirl.training.config import LINKS, REWIRING, RunConfig, all_hints, default_of, hints, overlay, parse_toml
from rewirl.training.first_steps import FLOOR
from rewirl.training.observers.loggers import LOGGERS
from rewirl.untrusted import read_text

EXAMPLES = (
    "rewirl train ds-td3 HalfCheetah-v5 --seed 1",
    "rewirl train ds-td3 HalfCheetah-v5 --dry-run          print links, FLOPs and memory; train nothing",
    "rewirl train ds-sac Ant-v5 --tau 1 --target-interval 1000",
    "rewirl train static-td3 Pendulum-v1 --sparsity 0.8 --steps 20000 --random-steps 1000",
    "rewirl train ds-td3 Humanoid-v5 --envs 4              four environments, in worker processes",
    "rewirl train td3 HalfCheetah-v5 --initial-samples runs/HalfCheetah-v5/ds-td3-seed1",
    "rewirl train --config my.toml --seed 2                flags override the file",
    "rewirl train --resume runs/HalfCheetah-v5/ds-td3-seed1",
)
RUNS = Path("runs")


def arguments(parser: Parser) -> None:
    """All flags: of the command, of the run, and of the algorithms."""
    parser.usage = f"{parser.prog} METHOD TASK [flags]"
    parser.add_argument("method", nargs="?", metavar="METHOD", help=f"One of {', '.join(METHODS)}")
    parser.add_argument("task", nargs="?", metavar="TASK", help="E.g. HalfCheetah-v5")
    command = parser.add_argument_group("command")
    command.add_argument("--config", type=Path, metavar="FILE", help="Read options from a TOML file; flags override it")
    command.add_argument("--run-dir", type=Path, metavar="DIR", help="Run folder (default: runs/TASK/METHOD-seedSEED)")
    command.add_argument("--name", metavar="NAME", help="Name of the run below runs/TASK, instead of METHOD-seedSEED")
    command.add_argument("--resume", type=Path, metavar="RUN", help="Resume the run in this folder")
    command.add_argument("--dry-run", action="store_true", help="Print config, links, FLOPs and memory; train nothing")
    command.add_argument(
        "--log", action="append", default=[], choices=list(LOGGERS), help="Also log to this service; may be repeated"
    )
    everything, wiring = list(hints(RunConfig)), (*LINKS, *REWIRING, "recycle")
    run = parser.add_argument_group("run")
    add_fields(run, RunConfig, [name for name in everything if name not in wiring], _run_default)
    add_fields(parser.add_argument_group("wiring"), RunConfig, wiring, _run_default)
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in dict.fromkeys(name for method in algorithms().values() for name in hints(method.options)):
        groups.setdefault(tuple(method.title for method in _having(name)), []).append(name)
    for titles, names in sorted(groups.items(), key=lambda group: -len(group[0])):
        *others, last = titles
        group = parser.add_argument_group(f"{', '.join(others)} and {last}" if others else f"{last} only")
        add_fields(group, _having(names[0])[0].options, names, _option_default)


def run(args: argparse.Namespace) -> None:
    """Starts or resumes the run, or reports that it is finished."""
    flags = given(args)
    if args.resume is not None:
        folder, config = _resumed(args, flags)
    else:
        words = words_of(args, flags)
        config = config_of(words)
        folder = folder_of(args, config)
        config = as_long_random(config, words, folder)
    carry_out(args, config, folder)


def carry_out(
    args: argparse.Namespace, config: RunConfig, folder: Path, welcome: Callable[[Run], str] | None = None
) -> None:
    """Trains, or with --dry-run prints what would be trained."""
    if args.dry_run:
        show(plan(config, *sizes(config)))
        return
    only_shown()
    train(config, folder, Console(highlight=False), logs=args.log, welcome=welcome)


def given(args: argparse.Namespace) -> dict[str, Any]:
    """The given flags that are fields of a run's config."""
    names = {"method", "task", *all_hints()}
    return {name: value for name, value in vars(args).items() if name in names and value is not None}


def words_of(
    args: argparse.Namespace, flags: Mapping[str, Any], usual: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The options of a run: flags override the file, the file overrides `usual`."""
    words = overlay(usual or {}, config_file(args.config) if args.config else {})
    words = overlay(words, flags)
    for name in ("method", "task"):
        if name not in words:
            raise Refused(f"which {name}? For example: rewirl train {words.get('method', 'ds-td3')} HalfCheetah-v5")
    return words


def as_long_random(config: RunConfig, words: Mapping[str, Any], folder: Path) -> RunConfig:
    """A run that is extended keeps its random steps, unless other ones are given."""
    if not (folder / "config.toml").exists():
        return config
    known = inspect_run(folder).config
    return config.as_begun(known, words) if known else config


def config_of(words: Mapping[str, Any]) -> RunConfig:
    """The run that these options describe."""
    try:
        config = RunConfig.resolve(**words)
    except ValueError as error:
        raise Refused(unwirable(words) or str(error)) from None
    return config


def folder_of(args: argparse.Namespace, config: RunConfig) -> Path:
    """The folder of the run, which may not exist yet."""
    if args.run_dir is not None:
        if ".." in args.run_dir.parts:
            raise Refused(f"--run-dir must not go up with '..': write {args.run_dir.resolve()} instead")
        if args.name is not None:
            raise Refused("give either --run-dir (the whole path) or --name (its last part), not both")
        return Path(args.run_dir)
    task = folder_name(config.task)
    return run_folder(run_folder(RUNS, task), f"{config.method}-seed{config.seed}" if args.name is None else args.name)


def _resumed(args: argparse.Namespace, flags: Mapping[str, Any]) -> tuple[Path, RunConfig]:
    if args.config or args.run_dir or args.name is not None:
        raise Refused("--resume takes everything from the run folder: leave out --config, --run-dir and --name")
    info = inspect_run(args.resume)
    if info.config is None:
        raise Refused(
            f"{args.resume} cannot be resumed: {info.message}; each folder of {args.resume / 'checkpoint'} has a copy"
        )
    for name in ("method", "task"):
        known = getattr(info.config, name)
        if flags.get(name, known) != known:
            raise Refused(
                f"the {name} of {args.resume} is {known}, not {flags[name]}: leave it out, or start another run"
            )
    return args.resume, config_of(overlay(info.config.items(), flags))


def config_file(path: Path) -> dict[str, Any]:
    """The options in a user's TOML file."""
    try:
        return parse_toml(read_text(path))
    except OSError as error:
        raise Refused(f"cannot read the config {path}: {error.strerror}") from None
    except ValueError as error:
        raise Refused(f"{path}: {error}") from None


def _run_default(name: str) -> str:
    return _with_methods(name, _usual_default(name))


def _with_methods(name: str, usual: str) -> str:
    """The usual default, and those of methods that have another."""
    own = [f"{each.defaults[name]} for {each.name}" for each in METHODS.values() if name in each.defaults]
    return ", ".join(filter(None, [usual, *own]))


def _usual_default(name: str) -> str:
    if name == "eta":
        return _by_algorithm(lambda method: str(method.eta))
    if name == "random_steps":
        most = _by_algorithm(lambda method: str(method.random_steps))
        return f"a tenth of the steps, at least {FLOOR}, at most the paper's {most}"
    if name in ("sparsity", "lambdas"):
        return {"sparsity": "0.5 where the paper has no λ", "lambdas": "the paper's for its tasks"}[name]
    return _shown(default_of(RunConfig, name))


def _having(option: str) -> list[Method]:
    """The first method of each algorithm that has this option."""
    return [method for method in algorithms().values() if option in hints(method.options)]


def _option_default(name: str) -> str:
    return _with_methods(
        name, _by_algorithm(lambda method: _shown(default_of(method.options, name)), among=_having(name))
    )


def _by_algorithm(value_of: Callable[[Method], str], among: Iterable[Method] | None = None) -> str:
    """One default if all algorithms share it, otherwise the default of each."""
    values = {method.title: value_of(method) for method in among or algorithms().values()}
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return ", ".join(f"{value} for {name}" for name, value in values.items())


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return ""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
