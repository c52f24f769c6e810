"""The only module that imports numba: kernels, the states they work on, and losses as function pointers.

A *kernel* is a hot loop. It works on *states*, NamedTuples whose methods it may call: which class a state has is known
when a kernel is compiled, so one kernel serves dense and sparse rows, simplex and point, at no cost. *Losses*, which
users write too, come as function pointers: one compiled kernel serves all of them, and a loss is compiled anew in every
process, so that editing it, or anything it imports, can never leave an old answer in a cache.

Kernels allocate nothing, so Numba's reference counting is off for them (`_nrt`): it took nine tenths of a step's time,
as each use of a state's arrays was counted.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections import namedtuple
from collections.abc import Callable
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

from numba import cfunc, config, njit, types
from numba.core.datamodel import models, register_default
from numba.core.errors import NumbaError
from numba.extending import overload_method, typeof_impl

__all__ = ["NotCompilable", "kernel", "pointer", "protocol", "state"]

OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}

SOURCES = sorted(Path(__file__).parent.rglob("*.py"))
VERSION = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()[:12]
"""Numba's cache looks at the file of a kernel only; this one changes with any file a kernel may call."""

Class = TypeVar("Class", bound=type)


class NotCompilable(TypeError):
    """A loss uses something that Numba cannot compile."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A hot loop: compiled at its first call, cached on disk where that is possible, runs without the GIL."""
    try:
        return njit(function, cache=True, **OPTIONS)
    except RuntimeError:  # no folder to write to
        return njit(function, **OPTIONS)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A piece of a kernel, compiled into each that calls it: passing a state with many arrays on is not free."""
    return njit(function, forceinline=True, **OPTIONS)


class StateType(types.NamedTuple):
    """The Numba type of a state. Its key has the hash of all sources, so that a change in any of them recompiles."""

    def __init__(self, fields: list[Any], cls: type) -> None:
        self.version = VERSION  # stored, so that a type read back from an old cache keeps its old version
        super().__init__(fields, cls)
        self.name = f"{self.name}#{VERSION}"

    @property
    def key(self) -> tuple[Any, ...]:
        return self.instance_class, self.types, self.version


register_default(StateType)(models.TupleModel)


def state(cls: Class) -> Class:
    """Class decorator: values of this NamedTuple are states."""
    typeof_impl.register(cls)(lambda value, c: StateType([typeof_impl(field, c) for field in value], cls))
    return cls


def protocol(cls: Class) -> Class:
    """Class decorator: kernels may call the methods declared here on any state that has them."""
    for name, stub in inspect.getmembers(cls, inspect.isfunction):

        def resolve(self: Any, *args: Any, name: str = name) -> Any:
            return getattr(self.instance_class, name, None)

        resolve.__signature__ = inspect.signature(stub)  # type: ignore[attr-defined]
        overload_method(StateType, name, jit_options=OPTIONS | {"forceinline": True}, strict=False)(resolve)
    return cls


def pointer(part: Any, method: str) -> Any:
    """A method (margin, label) -> float of a loss as a function pointer; as it is where compilation is turned off.

    What it reads from `self` are numbers, fixed at this moment.
    """
    if config.DISABLE_JIT:
        return getattr(part, method)
    names = (name for name in dir(part) if not name.startswith("_"))
    numbers = {name: getattr(part, name) for name in names}
    numbers = {name: float(value) for name, value in numbers.items() if isinstance(value, Real)}
    return _pointer(getattr(type(part), method), tuple(numbers.items()))


@functools.lru_cache(maxsize=64)
def _pointer(function: Callable[..., float], numbers: tuple[tuple[str, float], ...]) -> Any:
    # A tuple without fields cannot be compiled.
    this = namedtuple("this", [name for name, _ in numbers] + ["nothing"])(*(value for _, value in numbers), 0.0)
    compiled = njit(function, error_model="numpy")
    try:
        return cfunc("f8(f8, f8)")(lambda margin, label: compiled(this, margin, label))
    except NumbaError as error:
        reason = str(error).strip().splitlines()[0]
        raise NotCompilable(f"{function.__qualname__} cannot be compiled: {reason}") from error
