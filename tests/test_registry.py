"""A part is found by lying in its folder: shown on a package made for the test, and held against the real ones."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import pommel as pm
from pommel import divergences, losses, problems, regularizers, sets, solvers
from pommel._registry import discover, examples

FOLDERS = {
    losses: losses.LOSSES,
    divergences: divergences.DIVERGENCES,
    regularizers: regularizers.REGULARIZERS,
    sets: sets.SETS,
    problems: problems.PROBLEMS,
    solvers: solvers.SOLVERS,
}
FILES = {
    "__init__": "from pommel._registry import discover\nPARTS = discover(globals())\n",
    "square": '__all__ = ["Square", "Cube"]\nclass Square: ...\nclass Cube: ...\nclass Hidden: ...\n'
    "EXAMPLES = (Square(), Cube(), Square())\n",
    "arch": '__all__ = ["Arch"]\nclass Arch: ...\n',
    "_private": "raise AssertionError('private modules are not looked into')\n",
}


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    folder = tmp_path / "pommel_shapes"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    (folder / "notes.txt").write_text("no module", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("pommel_shapes")
    for name in [name for name in sys.modules if name.startswith("pommel_shapes")]:
        del sys.modules[name]


def test_every_public_name_of_every_public_module_is_found(shapes: ModuleType) -> None:
    assert sorted(shapes.PARTS) == shapes.__all__ == ["Arch", "Cube", "Square"]
    assert shapes.Arch is shapes.PARTS["Arch"] is sys.modules["pommel_shapes.arch"].Arch
    assert not hasattr(shapes, "Hidden")


def test_a_new_file_is_all_a_new_part_needs(shapes: ModuleType) -> None:
    path = Path(shapes.__path__[0]) / "tower.py"
    path.write_text('__all__ = ["Tower"]\nclass Tower: ...\nEXAMPLES = (Tower(),)\n', encoding="utf-8")
    importlib.invalidate_caches()
    found = discover(vars(shapes))
    assert found["Tower"] is shapes.Tower and "Tower" in shapes.__all__


def test_a_module_that_exports_nothing_is_a_mistake(shapes: ModuleType) -> None:
    (Path(shapes.__path__[0]) / "forgotten.py").write_text("class Forgotten: ...\n", encoding="utf-8")
    importlib.invalidate_caches()
    with pytest.raises(AttributeError, match="__all__"):
        discover(vars(shapes))


def test_examples_are_those_of_each_module_once(shapes: ModuleType) -> None:
    """A module of two parts is asked once, one without examples is passed over."""
    assert [type(example).__name__ for example in examples(shapes.PARTS)] == ["Square", "Cube", "Square"]
    assert examples({}) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.__name__)
def test_every_public_file_of_a_folder_is_among_the_parts(folder: ModuleType) -> None:
    files = {path.stem for path in Path(folder.__path__[0]).glob("[!_]*.py")}
    parts = FOLDERS[folder]
    assert {part.__module__.rpartition(".")[2] for part in parts.values()} == files
    assert folder.__all__ == sorted(parts)
    for name, part in parts.items():
        assert part is getattr(folder, name) is getattr(pm, name)
        assert name in pm.__all__
