"""The scripts that draw the figures of the pages run, and draw every figure that they show."""

import re
import runpy
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.image import imread

PAGE, SCRIPT = "docs/generative-vs-discriminative.md", "docs/figures/generative_vs_discriminative.py"


def test_every_figure_of_the_page_is_drawn_and_committed(root, tmp_path):
    command = [sys.executable, "-W", "error", root / SCRIPT, tmp_path, "--repeats", "1"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    shown = set(re.findall(r"\]\(figures/([\w-]+\.png)\)", (root / PAGE).read_text(encoding="utf-8")))
    assert len(shown) == 4
    assert {path.name for path in tmp_path.iterdir()} == shown
    assert {path.name for path in (root / "docs" / "figures").glob("*.png")} == shown
    for path in tmp_path.iterdir():
        pixels = imread(path)[..., :3]
        assert pixels.shape[0] > 400
        assert pixels.shape[1] > 900
        assert 0.05 < (pixels.min(axis=-1) < 0.95).mean() < 0.95  # neither empty nor flooded


def test_the_gallery_is_drawn_and_committed(root, tmp_path):
    """Every picture of the gallery that a page shows comes from its script; one is drawn here."""
    gallery = runpy.run_path(str(root / "docs" / "figures" / "gallery.py"))
    pages = "".join(page.read_text(encoding="utf-8") for page in (root / "docs").glob("*.md"))
    shown = set(re.findall(r"\]\(figures/gallery/([\w-]+\.\w+)\)", pages))
    made = {f"{draw.__name__.replace('_', '-')}.png" for draw in gallery["PICTURES"]} | {"perceptron.gif"}
    assert shown == made
    assert {path.name for path in (root / "docs" / "figures" / "gallery").iterdir()} == made
    gallery["tube"]().figure.savefig(tmp_path / "tube.png", dpi=100)
    committed = imread(root / "docs" / "figures" / "gallery" / "tube.png")
    assert imread(tmp_path / "tube.png").shape == committed.shape


def test_figures_show_what_the_page_says(root):
    figures = runpy.run_path(str(root / SCRIPT))
    turns = []
    for _, model, *_ in figures["outlier_models"]():
        ways = []
        for far in (0, 30):
            w = np.ravel(model.fit(*figures["two_clouds"](far)).coef_)
            ways.append(w / np.linalg.norm(w))
        turns.append(np.degrees(np.arccos(min(1.0, ways[0] @ ways[1]))))
    assert turns[0] > 15  # least squares tilts
    assert turns[1] == pytest.approx(turns[0], abs=1e-3)  # and the Gaussian model with it
    assert turns[2] < 1  # the logistic boundary stays

    runaway, lengths = figures["norms"](np.inf, 20)
    assert runaway.certificate_.status == "separable"
    assert len(lengths) < 20
    _, endless = figures["norms"](1e15, 20)
    assert np.diff(endless)[5:] == pytest.approx(np.full(14, 1.75), abs=0.15)  # a straight line
    penalised, lengths = figures["norms"](1.0, 20)
    assert penalised.certificate_.status == "converged"
    assert lengths[-1] == pytest.approx(lengths[-2], rel=1e-3)

    holds = figures["curves"](figures["gaussian_world"], 9, (640,))
    fails = figures["curves"](figures["clustered_world"], 9, (640,))
    assert (holds["Gaussian, shared"][-1] < holds["logistic, C = 1"][-1]).all()
    assert (fails["Gaussian, shared"][-1] > 2 * fails["logistic, C = 1"][-1]).all()
