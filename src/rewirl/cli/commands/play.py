"""Show an agent in a window, or record it as a video.

Without a screen, MuJoCo renders with EGL or OSMesa, whichever works. Recording needs pip install 'rewirl[video]'.
Gymnasium renders tasks such as Pendulum-v1 with 'gymnasium[classic-control]', such as LunarLander-v3 with
'gymnasium[box2d]'.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from gymnasium.error import DependencyNotInstalled
from rich.console import Console

from rewirl.cli.ui.film import check_place, even, filmed
from rewirl.cli.ui.output import only_shown
from rewirl.cli.ui.parser import Parser, number, whole
from rewirl.cli.ui.policy_path import policy_at, without_wrappers
from rewirl.cli.ui.session import say
from rewirl.cli.ui.tables import size
from rewirl.envs.creation import Env, close
from rewirl.envs.environment import Environment, Misbehaved
from rewirl.envs.rendering import as_pictures, fps_of, has_screen, in_window, lacking, picture, window_closed
from rewirl.errors import Failed, Refused
from rewirl.policies import Policy
from rewirl.training.config import SEEDS
from rewirl.training.evaluation.rollout import moments

EXAMPLES = (
    "rewirl play runs/HalfCheetah-v5/ds-td3-seed1                       in a window",
    "rewirl play runs/HalfCheetah-v5/ds-td3-seed1 --video cheetah.mp4",
    "rewirl play runs/HalfCheetah-v5/ds-td3-seed1 --best --gif cheetah.gif --seconds 5 --width 480 --height 270",
)
MOST_FPS = 25
"""Default limit of frames per second: more are hardly visible and slow to render."""
LARGEST = 4096
"""Width and height of a picture."""


def arguments(parser: Parser) -> None:
    """The agent and the way to show it."""
    parser.add_argument("run", type=Path, metavar="RUN", help="Run folder or policy.safetensors")
    parser.add_argument("--best", action="store_true", help="Use the best policy of a run folder, not the latest")
    parser.add_argument("--video", type=Path, metavar="FILE", help="Record an MP4 video")
    parser.add_argument("--gif", type=Path, metavar="FILE", help="Record a GIF")
    parser.add_argument("--episodes", type=whole, default=1, metavar="N", help="Number of episodes (default: 1)")
    parser.add_argument("--seconds", type=number, metavar="X", help="Stop after this much simulated time")
    parser.add_argument(
        "--seed", type=whole, default=0, metavar="N", help="Random seed of the environment (default: 0)"
    )
    parser.add_argument("--width", type=whole, metavar="N", help="Width of the picture (default for MuJoCo: 640)")
    parser.add_argument("--height", type=whole, metavar="N", help="Height of the picture (default for MuJoCo: 360)")
    parser.add_argument(
        "--fps",
        type=number,
        metavar="X",
        help=f"Frames per second of the recording (default: the task's, at most {MOST_FPS})",
    )
    parser.add_argument("--task", metavar="TASK", help="Task, if not the one it was trained on")


def run(args: argparse.Namespace) -> None:
    """Shows the episodes and prints their returns."""
    _check(args)
    policy = policy_at(args.run, args.best)
    task = args.task or policy.task
    if not task:
        raise Refused("the policy file does not name its task: give --task")
    if note := without_wrappers(policy):
        say(Console(highlight=False), note)
    only_shown()
    try:
        if args.video or args.gif:
            _film(args, policy, task)
        else:
            _window(args, policy, task)
    except Misbehaved as error:
        raise Failed(f"{error}, seed {args.seed}") from error


def _check(args: argparse.Namespace) -> None:
    for name, low, high in (("width", 16, LARGEST), ("height", 16, LARGEST), ("fps", 1, 100), ("seconds", 0.1, 1e5)):
        value = getattr(args, name)
        if value is not None and not low <= value <= high:
            raise Refused(f"--{name} must be from {low} to {high:g}, not {value:g}")
    if (args.width is None) != (args.height is None):
        raise Refused("give --width and --height together")
    if args.episodes < 1:
        raise Refused(f"--episodes must be at least 1, not {args.episodes}")
    if not 0 <= args.seed < SEEDS:
        raise Refused(f"--seed must be from 0 to {SEEDS - 1}, not {args.seed}")
    for flag, suffix in (("video", ".mp4"), ("gif", ".gif")):
        if getattr(args, flag) is not None:
            check_place(getattr(args, flag), suffix, f"--{flag}")
    if not (args.video or args.gif or has_screen()):
        raise Refused("there is no screen: record it with --video agent.mp4 or --gif agent.gif")


def _window(args: argparse.Namespace, policy: Policy, task: str) -> None:
    env = in_window(task, args.width, args.height)
    steps = 0
    try:
        pace, start = fps_of(env), time.monotonic()
        for steps in _steps(args, policy, env, task, Console(highlight=False)):
            time.sleep(max(0.0, start + steps / pace - time.monotonic()))
            if window_closed(env):
                break
    except Misbehaved as error:
        if steps:
            raise
        if isinstance(error.__cause__, DependencyNotInstalled):
            raise Refused(lacking(task, error.__cause__)) from None
        raise Refused(f"{task} cannot be shown in a window: {error.__cause__ or error}") from error
    finally:
        close(env)


def _film(args: argparse.Namespace, policy: Policy, task: str) -> None:
    env = as_pictures(task, args.width, args.height)
    wanted = (args.width, args.height) if args.width else None
    paths = [path for path in (args.video, args.gif) if path]
    console = Console(highlight=False)
    frames, shape = 0, (0, 0)
    try:
        pace = fps_of(env)
        fps = args.fps or min(pace, MOST_FPS)
        with ExitStack() as stack, console.status("filming") as status:
            films = [stack.enter_context(filmed(path, fps)) for path in paths]
            for steps in _steps(args, policy, env, task, console):
                # One picture for all frames that this step covers, because rendering is slow.
                for _ in range(math.ceil(steps * fps / pace) - frames):
                    frame = picture(env, task, wanted)
                    frames, shape = frames + 1, frame.shape[:2]
                    for film in films:
                        film.add(frame)
                    status.update(f"recording: {frames} frames, {frames / fps:.1f} s")
    finally:
        close(env)
    for path in paths:
        height, width = even(shape) if path == args.video else shape
        about = f"{frames} frames, {frames / fps:.1f} s, {width} × {height}, {size(path.stat().st_size)}"
        say(console, f"{path}: {about}")


def _steps(args: argparse.Namespace, policy: Policy, env: Env, task: str, console: Console) -> Iterator[int]:
    """Yields the steps of the episodes until the time limit, and prints the return of each episode."""
    pace, total, length = fps_of(env), 0.0, 0
    for steps, moment in enumerate(moments(policy, Environment(env, task, scaled=True), args.episodes, args.seed), 1):
        total, length = total + moment.reward, length + 1
        yield steps
        over = args.seconds is not None and steps / pace >= args.seconds
        if moment.ended or over:
            cut = "" if moment.ended else " so far"
            say(console, f"episode {moment.episode + 1}: return {total:,.1f} in {length:,} steps{cut}")
            total, length = 0.0, 0
        if over:
            return
