"""Drawings: what a picture holds is what it was given."""

from __future__ import annotations

import io
import re
from itertools import combinations

import numpy as np
import pytest

from rewirl.cli.ui.page.drawing import curves, heat, histogram, matrix, png


def test_png_is_read_back_as_it_was_given():
    from PIL import Image

    rng = np.random.default_rng(0)
    palette = [(0, 0, 0, 0), (10, 20, 30, 40), (250, 240, 230, 255)]
    codes = rng.integers(0, 3, (7, 11)).astype(np.uint8)
    read = np.asarray(Image.open(io.BytesIO(png(codes, palette))).convert("RGBA"))
    np.testing.assert_array_equal(read, np.array(palette, np.uint8)[codes])


def test_a_matrix_shows_signs_and_gaps():
    import base64

    from PIL import Image

    drawn = matrix(np.array([[np.nan, -1.0], [0.01, 1.0]], np.float32), what="a < b")
    assert 'alt="a &lt; b"' in drawn
    content = base64.b64decode(re.search(r"base64,([^\"]+)", drawn)[1])
    pixels = np.asarray(Image.open(io.BytesIO(content)).convert("RGBA")).astype(int)
    assert pixels[0, 0, 3] == 0
    assert pixels[0, 1, 0] > pixels[0, 1, 2]  # red: negative
    assert pixels[1, 1, 2] > pixels[1, 1, 0]  # blue: positive
    assert 0 < pixels[1, 0, 3] < pixels[1, 1, 3]


def test_a_layer_without_links_is_drawn_empty():
    assert matrix(np.full((2, 2), np.nan, np.float32), what="nothing").startswith("<img")


def test_curves_go_through_their_points():
    drawn = curves({"a & b": [1.0, 0.0]}, [0, 10], what="x")
    points = re.search(r'points="([^"]+)"', drawn)[1].split()
    (x0, y0), (x1, y1) = (tuple(map(float, point.split(","))) for point in points)
    assert x0 < x1
    assert y0 < y1  # 1 is above 0
    assert "a &amp; b" in drawn
    assert "nan" not in curves({"a": [1.0]}, [0], what="one point")


def texts(drawn: str) -> list[tuple[float, float, float, str]]:
    """Left end, height, width and content of each text, with letters as wide as they get."""
    found = []
    for attributes, content in re.findall(r"<text([^>]*)>([^<]*)</text>", drawn):
        x, y = (float(re.search(rf' {name}="([^"]+)"', attributes)[1]) for name in "xy")
        wide = 6.2 * len(content)
        anchor = re.search(r'text-anchor="(\w+)"', attributes)
        found.append((x - {"end": wide, "middle": wide / 2}.get(anchor[1] if anchor else "", 0), y, wide, content))
    return found


@pytest.mark.parametrize("lines", [1, 3, 9, 16])
def test_axes_and_names_fit_into_a_drawing_and_do_not_meet(lines):
    names = [f"second critic, layer {number}" for number in range(lines)]
    drawn = [
        curves({name: [1.0, 0.03] for name in names}, [0, 1_000_000], what="x"),
        heat(names, np.ones((lines, 2)), [0, 1_000_000], what="x"),
        histogram(np.linspace(0, 1, 300), bins=10, what="x", low="never", high="always"),
    ]
    for picture in drawn:
        width, height = map(float, re.search(r'viewBox="0 0 (\S+) ([^"]+)"', picture).groups())
        placed = texts(picture)
        for x, y, wide, content in placed:
            assert 0 <= x <= width - wide, content
            assert 8 <= y <= height, content
        for (x, y, wide, content), (x2, y2, wide2, content2) in combinations(placed, 2):
            assert abs(y - y2) > 10 or x + wide <= x2 or x2 + wide2 <= x, f"{content} meets {content2}"


def test_histogram_counts_every_value():
    drawn = histogram(np.array([0.0, 0.05, 1.0, 1.0, 1.0]), bins=10, what="x", low="low", high="high")
    assert re.findall(r"<title>(\d+) neurons", drawn) == ["2", "0", "0", "0", "0", "0", "0", "0", "0", "3"]


def test_heat_has_a_cell_for_each_share():
    drawn = heat(["a", "b"], np.array([[0.5, 1.0, 0.0], [0.0, 0.0, 0.0]]), [0, 10, 20], what="x")
    assert drawn.count("<rect") == 6
    assert "<title>a, step 10: 100%</title>" in drawn
