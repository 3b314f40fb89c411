"""`rewirl play`: recordings contain the frames of the episode at its speed; what cannot be shown is reported."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from types import SimpleNamespace

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.spaces import Box

from rewirl.cli import main
from rewirl.cli.ui import film
from rewirl.envs import rendering
from rewirl.policies import Policy, PolicyLayer

PIL = pytest.importorskip("PIL.Image")
ffmpeg = pytest.importorskip("imageio_ffmpeg")


class Drawn(gymnasium.Env):
    """Twelve steps; its picture is as bright as the step's number, 10 steps to a second."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    observation_space = Box(-1, 1, (2,), dtype=np.float32)
    action_space = Box(-1, 1, (1,), dtype=np.float32)

    def __init__(self, render_mode=None, picture=None):
        self.render_mode, self.picture = render_mode, picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.number += 1
        return np.zeros(2, np.float32), 1.0, False, self.number == 12, {}

    def render(self):
        if self.picture is not None:
            return self.picture
        drawn = np.zeros((21, 33, 3), dtype=np.uint8)
        drawn[:, :] = 20 * self.number
        return drawn


class Blind(Drawn):
    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self):
        super().__init__()


for name, entry in {"drawn/Drawn-v0": Drawn, "drawn/Blind-v0": Blind}.items():
    if name not in gymnasium.registry:
        gymnasium.register(name, entry_point=entry)
if "drawn/Odd-v0" not in gymnasium.registry:
    gymnasium.register("drawn/Odd-v0", entry_point=Drawn, kwargs={"picture": "no picture"})


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)


def saved(task: str = "drawn/Drawn-v0", n_obs: int = 2, n_act: int = 1) -> str:
    indptr, columns = np.arange(n_act + 1, dtype=np.int32), np.zeros(n_act, dtype=np.int32)
    layer = PolicyLayer(n_obs, n_act, indptr, columns, np.ones(n_act, np.float32), np.zeros(n_act, np.float32))
    ones = np.ones(n_act, np.float32)
    Policy(layers=[layer], low=-ones, high=ones, algorithm="td3", task=task).save("policy.safetensors")
    return "policy.safetensors"


def played(capsys, *words: object) -> str:
    assert main(["play", *map(str, words)]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def refused(capsys, *words: object, code: int = 2) -> str:
    assert main(["play", *map(str, words)]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert os.listdir() in ([], ["policy.safetensors"])  # no film, and nothing left of one
    return err


def frames_of(path: str) -> tuple[list[np.ndarray], list[int]]:
    """Pictures of a GIF and for how many milliseconds each is shown."""
    with PIL.open(path) as image:
        frames, durations = [], []
        for number in range(image.n_frames):
            image.seek(number)
            frames.append(np.asarray(image.convert("RGB")).copy())
            durations.append(image.info["duration"])
    return frames, durations


def test_a_gif_has_every_step_at_the_tasks_own_pace(capsys):
    text = played(capsys, saved(), "--gif", "a.gif")
    assert text == "episode 1: return 12.0 in 12 steps\na.gif: 12 frames, 1.2 s, 33 × 21, " + text.split("21, ")[1]
    frames, durations = frames_of("a.gif")
    assert [round(frame.mean() / 20) for frame in frames] == list(range(1, 13))
    assert durations == [100] * 12
    assert frames[0].shape == (21, 33, 3)


@pytest.mark.parametrize(("fps", "steps"), [(5, [1, 3, 5, 7, 9, 11]), (4, [1, 3, 6, 8, 11]), (20, None)])
def test_other_frame_rates_keep_the_time(capsys, fps, steps):
    played(capsys, saved(), "--gif", "a.gif", "--fps", fps)
    frames, durations = frames_of("a.gif")
    assert sum(durations) == pytest.approx(1200, abs=1000 / fps)
    seen = [round(frame.mean() / 20) for frame in frames]
    assert seen == (steps or list(range(1, 13)))  # frames that are the same are one, shown for longer


def test_seconds_and_episodes(capsys):
    text = played(capsys, saved(), "--gif", "a.gif", "--seconds", 1.5, "--episodes", 3)
    assert "episode 1: return 12.0 in 12 steps\n" in text
    assert "episode 2: return 3.0 in 3 steps so far\n" in text
    assert "15 frames" in text
    assert len(frames_of("a.gif")[0]) == 15


def test_a_video_is_what_was_drawn(capsys):
    text = played(capsys, saved(), "--video", "a.mp4", "--gif", "b.gif", "--width", 64, "--height", 48)
    assert "a.mp4: 12 frames, 1.2 s, 64 × 48" in text
    reader = ffmpeg.read_frames("a.mp4")
    about = next(reader)
    assert about["size"] == (64, 48)
    assert about["fps"] == 10
    pictures = [np.frombuffer(frame, np.uint8) for frame in reader]
    assert len(pictures) == 12
    for number, picture in enumerate(pictures, start=1):
        assert abs(picture.mean() - 20 * number) < 8
    assert frames_of("b.gif")[0][0].shape == (48, 64, 3)


def test_odd_sizes_are_made_even_for_a_video(capsys):
    played(capsys, saved(), "--video", "a.mp4")
    assert next(ffmpeg.read_frames("a.mp4"))["size"] == (32, 20)


def test_long_gifs_share_the_palette_of_their_beginning(capsys, monkeypatch):
    monkeypatch.setattr(film, "SAMPLE", 3)
    played(capsys, saved(), "--gif", "a.gif")
    assert len(frames_of("a.gif")[0]) > 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "there is no screen: record it with --video agent.mp4 or --gif agent.gif"),
        ("--video a.avi", "--video takes a file whose name ends in .mp4, not a.avi"),
        ("--gif a.mp4", "--gif takes a file whose name ends in .gif, not a.mp4"),
        ("--gif policy.safetensors/a.gif", "cannot write to policy.safetensors"),
        ("--gif a.gif --width 64", "give --width and --height together"),
        ("--gif a.gif --width 1 --height 64", "--width must be from 16 to 4096, not 1"),
        ("--gif a.gif --fps 0", "--fps must be from 1 to 100, not 0"),
        ("--gif a.gif --fps nan", "--fps must be from 1 to 100, not nan"),
        ("--gif a.gif --seconds -1", "--seconds must be from 0.1 to 100000, not -1"),
        ("--gif a.gif --episodes 0", "--episodes must be at least 1, not 0"),
        ("--gif a.gif --seed -1", "--seed must be from 0 to 4294967295, not -1"),
        ("--gif a.gif --task drawn/Blind-v0", "drawn/Blind-v0"),
        ("--gif a.gif --task drawn/Odd-v0", "renders no picture: its render must return bytes of shape"),
        ("--gif a.gif --task drawn/Drawm-v0", "there is no task 'drawn/Drawm-v0', did you mean drawn/Drawn-v0?"),
        ("--gif a.gif --task Pendulum-v1", "it was trained for drawn/Drawn-v0"),
    ],
)
def test_refusals(capsys, words, says):
    assert says in refused(capsys, saved(), *words.split())


def test_a_missing_package_is_named_with_the_command_that_installs_it(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert "pip install 'rewirl[video]'" in refused(capsys, saved(), "--video", "a.mp4")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "pip install 'rewirl[video]'" in refused(capsys, saved(), "--gif", "a.gif")


@pytest.mark.parametrize("words", [["--gif", "a.gif"], []], ids=["film", "window"])
def test_the_extra_that_a_task_needs_is_named(capsys, monkeypatch, words):
    monkeypatch.setenv("DISPLAY", ":77")
    monkeypatch.setitem(sys.modules, "pygame", None)
    wanted = "Pendulum-v1 cannot be drawn without pygame: pip install 'gymnasium[classic-control]'\n"
    assert refused(capsys, saved("Pendulum-v1", 3, 1), *words).endswith(wanted)


def test_help_names_the_extra(capsys):
    assert main(["play", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for extra in ("pip install 'rewirl[video]'", "'gymnasium[classic-control]'", "'gymnasium[box2d]'"):
        assert extra in out


def test_a_policy_that_does_not_know_its_task(capsys):
    assert "give --task" in refused(capsys, saved(task=""), "--gif", "a.gif")
    assert "12 frames" in played(capsys, "policy.safetensors", "--task", "drawn/Drawn-v0", "--gif", "a.gif")


def test_a_task_that_fails_leaves_no_film(capsys, monkeypatch):
    def step(self, action):
        raise RuntimeError("it broke")

    monkeypatch.setattr(Drawn, "step", step)
    assert "raised RuntimeError in step: it broke, seed 0" in refused(capsys, saved(), "--gif", "a.gif", code=1)


def test_a_window_where_there_is_a_screen(capsys, monkeypatch):
    modes = []

    class Windowed(Drawn):
        metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 1000}  # noqa: RUF012

        def __init__(self, render_mode=None):
            super().__init__(render_mode)
            modes.append(render_mode)

    gymnasium.register("drawn/Windowed-v0", entry_point=Windowed)
    monkeypatch.setenv("DISPLAY", ":77")
    try:
        assert played(capsys, saved("drawn/Windowed-v0")) == "episode 1: return 12.0 in 12 steps\n"
    finally:
        del gymnasium.registry["drawn/Windowed-v0"]
    assert modes == ["human"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have a screen")
def test_a_screen_that_is_not_there_is_refused(capsys, monkeypatch):
    """MuJoCo's window library ends the process if it is not asked first; others raise what they like."""
    monkeypatch.setenv("DISPLAY", ":77")
    assert "no window can be opened on this screen" in refused(capsys, saved("HalfCheetah-v5", 17, 6))

    class Broken(Drawn):
        metadata = {"render_modes": ["human"], "render_fps": 10}  # noqa: RUF012

        def reset(self, **_):
            raise RuntimeError("No available video device")

    gymnasium.register("drawn/Broken-v0", entry_point=Broken)
    try:
        err = refused(capsys, saved("drawn/Broken-v0"))
    finally:
        del gymnasium.registry["drawn/Broken-v0"]
    assert "drawn/Broken-v0 cannot be shown in a window: No available video device" in err


def test_a_window_that_its_user_closed_ends_it(capsys, monkeypatch):
    closed = []

    class Closable(Drawn):
        metadata = {"render_modes": ["human"], "render_fps": 1000}  # noqa: RUF012

        def __init__(self, render_mode=None):
            super().__init__(render_mode)
            self.model = mujoco.MjModel.from_xml_string("<mujoco/>")
            self.mujoco_renderer = SimpleNamespace(viewer=SimpleNamespace(window="its window"))

        def close(self):
            closed.append(self.number)

    monkeypatch.setattr("glfw.init", lambda: True)
    monkeypatch.setattr("glfw.window_should_close", lambda window: window == "its window")
    gymnasium.register("drawn/Closable-v0", entry_point=Closable)
    monkeypatch.setenv("DISPLAY", ":77")
    try:
        assert played(capsys, saved("drawn/Closable-v0")) == ""
    finally:
        del gymnasium.registry["drawn/Closable-v0"]
    assert closed == [1]


def test_an_interrupted_film_leaves_nothing(capsys, monkeypatch):
    def render(self):
        if self.number == 3:
            raise KeyboardInterrupt
        return np.zeros((20, 30, 3), dtype=np.uint8)

    monkeypatch.setattr(Drawn, "render", render)
    assert "interrupted" in refused(capsys, saved(), "--video", "a.mp4", "--gif", "a.gif", code=130)


def test_a_full_disk_is_said(capsys, monkeypatch):
    def end(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(film.Gif, "end", end)
    assert main(["play", saved(), "--gif", "a.gif"]) == 1
    assert "a.gif could not be written: No space left on device" in capsys.readouterr().err
    assert os.listdir() == ["policy.safetensors"]


@pytest.mark.parametrize("steps", [12, 400])  # found when the film is ended, and while it is made
def test_a_video_that_is_cut_short_is_none(capfd, monkeypatch, steps):
    def render(self):
        return np.random.default_rng(self.number).integers(0, 255, (120, 160, 3), dtype=np.uint8)

    monkeypatch.setattr(Drawn, "render", render)
    policy = saved()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        assert main(["play", policy, "--video", "a.mp4", "--episodes", str(steps // 12)]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert capfd.readouterr().err == "rewirl: a.mp4 could not be written: File too large\n"
    assert os.listdir() == ["policy.safetensors"]


@pytest.fixture(scope="module")
def headless():
    try:
        return rendering.headless_way()
    except rendering.Refused as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


def test_mujoco_is_drawn_without_a_screen_and_followed(capsys, headless, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", headless)
    env = rendering.as_pictures("HalfCheetah-v5", 64, 48)
    try:
        env.reset(seed=0)
        before = rendering.picture(env, "HalfCheetah-v5")
        env.unwrapped.data.qpos[0] += 1000.0  # far out of a view that does not go along
        env.unwrapped.set_state(env.unwrapped.data.qpos, env.unwrapped.data.qvel)
        after = rendering.picture(env, "HalfCheetah-v5")
    finally:
        env.close()
    assert before.shape == (48, 64, 3)
    assert np.ptp(before) > 100

    def body(frame):  # it is brown, and the floor and the sky are not
        red, green, blue = (frame[..., i].astype(int) for i in range(3))
        return int(((red > green + 25) & (red > blue + 40)).sum())

    assert body(before) > 20
    assert body(after) > 20
    played(capsys, saved("HalfCheetah-v5", 17, 6), "--gif", "a.gif", "--seconds", 0.2, "--width", 64, "--height", 48)
    assert len(frames_of("a.gif")[0]) >= 3


def test_what_to_install_where_nothing_can_be_drawn(capsys, monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(rendering, "PROBE", "raise SystemExit(1)")
    err = refused(capsys, saved("HalfCheetah-v5", 17, 6), "--gif", "a.gif")
    assert "apt install libegl1 libgl1, or apt install libosmesa6" in err


def test_a_way_of_drawing_that_crashes_is_passed_over(monkeypatch):
    tried = []

    def run(command, *, env, **_):
        tried.append(env["MUJOCO_GL"])
        return subprocess.CompletedProcess(command, -11 if len(tried) == 1 else 0)

    monkeypatch.setattr(subprocess, "run", run)
    assert rendering.headless_way() == "osmesa"
    assert tried == ["egl", "osmesa"]
