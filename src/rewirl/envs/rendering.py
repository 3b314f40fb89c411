"""Rendering of environments: in a window if there is a screen, otherwise as pictures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rewirl.envs.creation import Env, close, make_by_name
from rewirl.errors import Refused

Frame = NDArray[np.uint8]
"""(height, width, 3)."""

SIZES = {"human": (960, 540), "rgb_array": (640, 360)}
"""Default width and height of MuJoCo's window and pictures; other tasks have their own."""
FPS = 30
"""Default of a task that does not define its frame rate."""
HEADLESS = ("egl", "osmesa")
"""MuJoCo's backends without a screen, the fastest first."""
PROBE = """\
import mujoco, numpy
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><light/><geom size='1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 32, 32) as renderer:
    renderer.update_scene(data)
    raise SystemExit(0 if numpy.ptp(renderer.render()) else 1)
"""
"""Renders a ball in a separate process: a failed attempt would break later ones, and a bad driver may crash."""


def has_screen() -> bool:
    """Whether a window can probably be opened."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def in_window(task: str, width: int | None = None, height: int | None = None) -> Env:
    """The task in a window that is redrawn at every step; refused if none can be opened."""
    made = _made(task, "human", width, height)
    if _has_mujoco(made):
        import glfw

        with warnings.catch_warnings(action="ignore"):
            opened = glfw.init()
        if not opened:  # e.g. a stale DISPLAY: Gymnasium would continue, and GLFW would end the process
            close(made)
            raise Refused("no window can be opened on this screen: record it, for example to agent.mp4", "video")
    return made


def as_pictures(task: str, width: int | None = None, height: int | None = None) -> Env:
    """The task, rendered on request; refused with what to install if rendering is impossible."""
    made = _made(task, "rgb_array", width, height)
    if _has_mujoco(made) and "MUJOCO_GL" not in os.environ:
        try:
            os.environ["MUJOCO_GL"] = headless_way()
        except Refused:
            close(made)
            raise
    return made


def headless_way() -> str:
    """The backend with which MuJoCo can render without a screen."""
    for way in HEADLESS:
        try:
            drawn = subprocess.run(
                [sys.executable, "-c", PROBE], env={**os.environ, "MUJOCO_GL": way}, capture_output=True, timeout=120
            )
        except subprocess.TimeoutExpired:
            continue
        if drawn.returncode == 0:
            return way
    raise Refused(
        "rendering is not possible, since MuJoCo finds neither EGL nor OSMesa: install one of them (on Debian and "
        "Ubuntu: apt install libegl1 libgl1, or apt install libosmesa6), or set MUJOCO_GL=glfw where there is a screen"
    )


def fps_of(env: Env) -> float:
    """Steps per second of the task."""
    return float(env.metadata.get("render_fps") or FPS)


def picture(env: Env, task: str, size: tuple[int, int] | None = None) -> Frame:
    """A picture of the environment, of the size (width, height) if given; refused if it cannot be rendered."""
    try:
        with warnings.catch_warnings(action="ignore"):  # messages of graphics libraries before they fail
            drawn = env.render()
    except gymnasium.error.DependencyNotInstalled as error:
        raise Refused(lacking(task, error)) from None
    except Exception as error:  # graphics drivers may raise anything
        way = os.environ.get("MUJOCO_GL")
        hint = f": MUJOCO_GL={way} may be wrong here, leave it out or set another" if way and _has_mujoco(env) else ""
        raise Refused(f"{task} cannot be rendered ({type(error).__name__}: {error}){hint}") from error
    frame = np.asarray(drawn)
    if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
        raise Refused(f"{task} renders no picture: its render must return bytes of shape (height, width, 3)")
    if size and (frame.shape[1], frame.shape[0]) != size:
        return _resized(frame, size)
    return np.ascontiguousarray(frame)


def lacking(task: str, error: BaseException) -> str:
    """What to install for a task that cannot be drawn.

    >>> lacking("Pendulum-v1", Exception('pygame is not installed, run `pip install "gymnasium[classic_control]"`'))
    "Pendulum-v1 cannot be drawn without pygame: pip install 'gymnasium[classic-control]'"
    """
    library, extra = re.match(r"(\w+) is not installed", str(error)), re.search(r"gymnasium\[([\w-]+)\]", str(error))
    if library and extra:
        wanted = f"gymnasium[{extra[1].replace('_', '-')}]"
        return f"{task} cannot be drawn without {library[1]}: pip install '{wanted}'"
    return f"{task} cannot be rendered: {error}"


def window_closed(env: Env) -> bool:
    """Whether the user closed the window of a MuJoCo task: Gymnasium would keep drawing and crash."""
    viewer = getattr(getattr(env.unwrapped, "mujoco_renderer", None), "viewer", None)
    window = getattr(viewer, "window", None)
    if window is None:
        return False
    import glfw

    return bool(glfw.window_should_close(window))


def _made(task: str, mode: str, width: int | None, height: int | None) -> Env:
    given: dict[str, Any] = {"render_mode": mode}
    spec = gymnasium.registry.get(task)
    if spec is not None and "mujoco" in str(spec.entry_point):  # Gymnasium's own tasks accept a size
        given |= {"width": width or SIZES[mode][0], "height": height or SIZES[mode][1]}
    with warnings.catch_warnings(action="ignore"):  # Gymnasium's warning about the mode, which is checked below
        made = make_by_name(task, **given)
    if made.render_mode != mode:
        close(made)
        raise Refused(f"{task} cannot be shown: it has no render mode {mode!r}")
    if _has_mujoco(made):
        _follow(made)
    return made


def _has_mujoco(env: Env) -> bool:
    return hasattr(env.unwrapped, "mujoco_renderer")


def _follow(env: Env) -> None:
    """Selects the camera that follows the body, if the model has one: Gymnasium's own stays fixed."""
    import mujoco  # type: ignore[import-untyped]

    inner: Any = env.unwrapped
    camera = mujoco.mj_name2id(inner.model, mujoco.mjtObj.mjOBJ_CAMERA, "track")
    if camera >= 0:
        tracking = {"type": mujoco.mjtCamera.mjCAMERA_TRACKING, "trackbodyid": inner.model.cam_bodyid[camera]}
        shown = inner.mujoco_renderer
        shown.camera_id = camera  # pictures only; a window has settings instead
        shown.default_cam_config = {**(shown.default_cam_config or {}), **tracking}


def _resized(frame: Frame, size: tuple[int, int]) -> Frame:
    try:
        from PIL import Image
    except ImportError:
        raise Refused("rendering this task in another size needs Pillow: pip install 'rewirl[video]'") from None
    return np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS))
