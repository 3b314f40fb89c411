"""Drawings: what a picture holds is what it was given."""

from __future__ import annotations

import io
import re

import numpy as np

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


def test_histogram_counts_every_value():
    drawn = histogram(np.array([0.0, 0.05, 1.0, 1.0, 1.0]), bins=10, what="x", low="low", high="high")
    assert re.findall(r"<title>(\d+) neurons", drawn) == ["2", "0", "0", "0", "0", "0", "0", "0", "0", "3"]


def test_heat_has_a_cell_for_each_share():
    drawn = heat(["a", "b"], np.array([[0.5, 1.0, 0.0], [0.0, 0.0, 0.0]]), [0, 10, 20], what="x")
    assert drawn.count("<rect") == 6
    assert "<title>a, step 10: 100%</title>" in drawn
