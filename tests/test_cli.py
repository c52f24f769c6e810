from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib")

from typer.testing import CliRunner

from pommel import cli


def test_demo_prints_its_tables_and_saves_its_picture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, passes in (("robust_risk", 8.0), ("square_auc", 8.0), ("tails", 2.0)):
        monkeypatch.setattr(cli, name, partial(getattr(cli, name), passes=passes))
    picture = tmp_path / "demo.png"
    result = CliRunner().invoke(cli.main, ["demo", "--output", str(picture)], catch_exceptions=False)
    assert result.exit_code == 0
    for words in (
        "RSPD-sc, no tuning",
        "ARSPD, no tuning",
        "PDSG, best of",
        "worst 10 %",
        "synthetic",
        str(picture.name),
    ):
        assert words in result.stdout.replace("\n", "")
    assert picture.stat().st_size > 10_000


def test_help_names_the_command() -> None:
    result = CliRunner().invoke(cli.main, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.stdout


def test_missing_extra_is_named() -> None:
    code = "import sys; sys.modules['typer'] = None; import pommel.cli"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "pip install 'pommel[cli,plot]'" in run.stderr
    assert "Traceback" not in run.stderr
