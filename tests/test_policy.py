"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pommel as pm

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "pommel").rglob("*.py"))
PUBLIC = sorted(getattr(pm, "__all__", [name for name in dir(pm) if not name.startswith("_")]))

source = pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))


def imported(path: Path) -> set[str]:
    """The dotted names of everything a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_import_takes_core_dependencies_only() -> None:
    """scikit-learn itself imports some of these where they are installed; Pommel adds none."""
    heavy = {"clarabel", "cvxpy", "matplotlib", "pandas", "rich", "typer"}
    code = (
        "import sys, sklearn.utils.multiclass, scipy.optimize; before = set(sys.modules); import pommel; "
        f"print(*sorted({heavy!r} & (set(sys.modules) - before)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_version_has_one_source() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert pm.__version__ == importlib.metadata.version("pommel") == project["version"]


@source
def test_source_is_short_and_named_for_what_it_holds(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    assert path.stem not in {"utils", "helpers", "misc", "common"}


@source
def test_source_uses_public_scikit_learn_only(path: Path) -> None:
    private = {name for name in imported(path) if name.startswith("sklearn.") and "._" in name}
    assert not private


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_is_documented(name: str) -> None:
    thing = getattr(pm, name)
    if inspect.isclass(thing) or inspect.isroutine(thing) or inspect.ismodule(thing):
        text = thing.__doc__ or ""
        generated = text.startswith(f"{name}(")  # dataclasses and named tuples write their signature
        assert text.strip() and not generated


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 90


def test_ci_calls_make_test_and_nothing_else() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd ", "export "))]
    assert commands == ["make test"]
