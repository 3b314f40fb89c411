"""Recordings: MP4 for videos, GIF for web pages."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rewirl.envs.rendering import Frame
from rewirl.errors import Failed, Refused
from rewirl.export.output_folder import prepare_folder
from rewirl.files import refuse_link

COLOURS = 128
"""Colours of a GIF's palette: fewer make the file smaller, but skies banded."""
SAMPLE = 48
"""The palette is made from this many first frames."""


class Film(Protocol):
    """The interface of a recorder; frames have one size."""

    def add(self, frame: Frame) -> None: ...
    def end(self) -> None:
        """Writes all remaining frames."""
        ...

    def close(self) -> None:
        """Releases everything, with or without a result."""
        ...


@contextmanager
def filmed(path: Path, fps: float) -> Iterator[Film]:
    """A recorder for the suffix of `path`. The file appears when it is complete, not before."""
    make = MAKERS[path.suffix.lower()]
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=path.suffix.lower())
    os.close(descriptor)
    film = make(Path(aside), fps)
    try:
        yield film
        film.end()
        os.umask(mask := os.umask(0))
        os.chmod(aside, 0o666 & ~mask)
        os.replace(aside, path)
    except OSError as error:
        raise Failed(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        film.close()
        Path(aside).unlink(missing_ok=True)


def check_place(path: Path, suffix: str, flag: str) -> None:
    """Refuses an impossible file before any work."""
    if path.suffix.lower() != suffix:
        raise Refused(f"{flag} takes a file whose name ends in {suffix}, not {path}")
    if path.is_dir():
        raise Refused(f"{path} is a folder: give a file for {flag}, e.g. {path / ('agent' + suffix)}")
    refuse_link(path)
    for module in {".mp4": ("imageio_ffmpeg",), ".gif": ("PIL",)}[suffix]:
        _needed(module)
    prepare_folder(path.parent)


def even(shape: tuple[int, ...]) -> tuple[int, int]:
    """Height and width of a video, both even: its colours have half the resolution."""
    height, width = shape
    return height // 2 * 2, width // 2 * 2


class Video:
    """H.264 by ffmpeg, frame by frame: memory does not depend on the length."""

    def __init__(self, path: Path, fps: float) -> None:
        self._path, self._fps = path, fps
        self._ffmpeg: subprocess.Popen[bytes] | None = None

    def add(self, frame: Frame) -> None:
        height, width = even(frame.shape[:2])
        if self._ffmpeg is None:
            self._ffmpeg = self._begun(width, height)
        assert self._ffmpeg.stdin
        try:
            self._ffmpeg.stdin.write(np.ascontiguousarray(frame[:height, :width]).tobytes())
        except BrokenPipeError:
            self.end()  # close() reports why ffmpeg ended
            raise

    def _begun(self, width: int, height: int) -> subprocess.Popen[bytes]:
        # Not imageio's own writer: it does not report how ffmpeg ended, so a truncated video would pass as complete.
        pictures = f"-f rawvideo -pix_fmt rgb24 -s {width}x{height} -r {Fraction(self._fps).limit_denominator()} -i -"
        film = "-an -pix_fmt yuv420p -crf 15"  # H.264 is what it takes for MP4
        words = ["-y", "-v", "error", "-xerror", *pictures.split(), *film.split(), str(self._path)]
        pipe = subprocess.PIPE
        # In a session of its own: Ctrl-C reaches only us, and we end it.
        return subprocess.Popen(
            [_needed("imageio_ffmpeg").get_ffmpeg_exe(), *words], stdin=pipe, stderr=pipe, start_new_session=True
        )

    def end(self) -> None:
        if self._ffmpeg is not None:
            ffmpeg, self._ffmpeg = self._ffmpeg, None
            said = ffmpeg.communicate()[1].decode(errors="replace").strip()
            if ffmpeg.returncode:
                raise OSError(_why(ffmpeg.returncode, said))

    def close(self) -> None:
        if self._ffmpeg is not None:
            ffmpeg, self._ffmpeg = self._ffmpeg, None
            ffmpeg.kill()
            ffmpeg.communicate()


def _why(code: int, said: str) -> str:
    """Why ffmpeg ended: a signal, a system error (its negated exit code), or its last message."""
    if code == -signal.SIGXFSZ:
        return os.strerror(errno.EFBIG)
    if code < 0:
        return f"ffmpeg was killed by {signal.Signals(-code).name}"
    return os.strerror(256 - code) if 256 - code in errno.errorcode else f"ffmpeg ended with {said or code!r}"


class Gif:
    """One palette for all frames, so that unchanged areas take no space."""

    def __init__(self, path: Path, fps: float) -> None:
        self._path, self._fps = path, fps
        self._waiting: list[Frame] = []
        self._frames: list[Any] = []
        self._palette: Any = None

    def add(self, frame: Frame) -> None:
        self._waiting.append(frame)
        if self._palette is not None or len(self._waiting) == SAMPLE:
            self._reduce()

    def _reduce(self) -> None:
        image = _needed("PIL.Image")
        if self._palette is None:
            mosaic = image.fromarray(np.concatenate(self._waiting[:: max(len(self._waiting) // 12, 1)]))
            self._palette = mosaic.quantize(COLOURS, method=image.Quantize.MEDIANCUT)
        for frame in self._waiting:
            reduced = image.fromarray(frame).quantize(palette=self._palette, dither=image.Dither.NONE)
            self._frames.append(reduced)
        self._waiting.clear()

    def end(self) -> None:
        if self._waiting:
            self._reduce()
        # A GIF counts hundredths of a second: each frame ends at the nearest one, so that errors do not add up.
        ends = [round(100 * (number + 1) / self._fps) for number in range(len(self._frames))]
        durations = [10 * (end - start) for start, end in zip([0, *ends], ends, strict=False)]
        first, *others = self._frames
        first.save(self._path, save_all=True, append_images=others, duration=durations, loop=0)

    def close(self) -> None:
        self._waiting.clear()
        self._frames.clear()


MAKERS: dict[str, Any] = {".mp4": Video, ".gif": Gif}


def _needed(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise Refused("recording needs packages that are not installed: pip install 'rewirl[video]'") from None
