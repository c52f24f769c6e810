"""Parts are found by looking into their folder, so that a new one is a new file and nothing else."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def discover(package: dict[str, Any]) -> dict[str, Any]:
    """Import every public module of a package, export the names in its `__all__`, and return them."""
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(package["__path__"]):
        if not info.name.startswith("_"):
            module = importlib.import_module(f"{package['__name__']}.{info.name}")
            found |= {name: getattr(module, name) for name in module.__all__}
    package.update(found)
    package["__all__"] = sorted(found)
    return found


def examples(package: dict[str, Any]) -> list[Any]:
    """One or more instances of every part in a package: what the property tests run over."""
    modules = [importlib.import_module(part.__module__) for part in package.values()]
    return [example for module in dict.fromkeys(modules) for example in getattr(module, "EXAMPLES", ())]
