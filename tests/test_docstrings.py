"""Docstrings tell the truth: their examples run, and the parameters they document are the parameters there are."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pommel as pm

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", re.MULTILINE | re.DOTALL)
NAMES = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: :|$)", re.MULTILINE)


@pytest.fixture(params=["pommel", *(info.name for info in pkgutil.walk_packages(pm.__path__, "pommel."))])
def module(request: pytest.FixtureRequest) -> ModuleType:
    try:
        return importlib.import_module(request.param)
    except ModuleNotFoundError as error:
        if error.name in ("matplotlib", "rich", "typer"):
            pytest.skip(f"{error.name} is not installed")
        raise


def test_examples_run(module: ModuleType) -> None:
    """Examples may use `np`, `pm` and what their own module defines."""
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    report: list[str] = []
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, extraglobs={"np": np, "pm": pm}):
        runner.run(example, out=report.append)
    assert not report, "".join(report)


def test_documented_parameters_are_those_of_the_signature(module: ModuleType) -> None:
    wrong = {}
    for name, thing in documented(module):
        section = PARAMETERS.search(inspect.cleandoc(thing.__doc__))
        if section:
            names = [each for line in NAMES.findall(section[1]) for each in line.replace("*", "").split(", ")]
            actual = [parameter for parameter in inspect.signature(thing).parameters if parameter != "self"]
            if names != actual:
                wrong[name] = {"documented": names, "actual": actual}
    assert not wrong


def documented(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Every function, class and method of a module that has a docstring of its own."""
    for name, thing in vars(module).items():
        if getattr(thing, "__module__", None) == module.__name__ and (
            inspect.isclass(thing) or inspect.isroutine(thing)
        ):
            members = vars(thing).items() if inspect.isclass(thing) else ()
            inner = [(f"{name}.{key}", getattr(thing, key)) for key, value in members if hasattr(value, "__get__")]
            yield from (
                (key, value) for key, value in [(name, thing), *inner] if callable(value) and value.__doc__ is not None
            )
