from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.image import imread

from pommel.experiments.demo import Curve, Race, Tail
from pommel.plot.demo import draw

PASSES = np.array([1.0, 3.0, 9.0])


def test_picture_shows_every_curve(tmp_path: Path) -> None:
    curves = tuple(Curve(label, PASSES, np.outer([1.0, 2.0], 1.0 / PASSES)) for label in ("ours", "theirs"))
    tail = Tail("ERM", np.arange(100.0), worst_group_loss=3.0, worst_group_accuracy=0.5, accuracy=0.9)
    figure = draw([Race("title", "data", "optimum", 9.0, curves)], [tail])
    left, right = figure.axes
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["ours", "theirs"]
    assert left.lines[0].get_ydata() == pytest.approx(1.5 / PASSES)
    assert right.lines[0].get_ydata()[-1] == pytest.approx(tail.losses.mean())
    figure.savefig(tmp_path / "demo.png")
    assert imread(tmp_path / "demo.png").std() > 0.0
