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
import re
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

from llvmlite import ir
from numba import cfunc, config, njit, types
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic, overload, overload_method, typeof_impl

__all__ = ["NotCompilable", "inlined", "kernel", "pointer", "prefetch", "protocol", "state", "summing"]

OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}

SOURCES = sorted(Path(__file__).parent.rglob("*.py"))
VERSION = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()[:12]
"""Numba's cache looks at the file of a kernel only; this one changes with any file a kernel may call."""

METHODS: set[str] = set()
"""Names that kernels call on states."""

Class = TypeVar("Class", bound=type)


class NotCompilable(TypeError):
    """A loss uses something that Numba cannot compile."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A hot loop: compiled at its first call, cached on disk where that is possible, runs without the GIL."""
    return _cached(function, OPTIONS)


def summing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose sums may be taken in any order, that is by vector instructions: five to ten times as fast.

    NaN and infinity are kept, which full fast-math would not do. The order is fixed by compilation.
    """
    return _cached(function, OPTIONS | {"fastmath": {"reassoc", "nsz", "contract"}})


def _cached(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    try:
        return njit(function, cache=True, **options)
    except RuntimeError:  # no folder to write to
        return njit(function, **options)


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
    hidden = METHODS.intersection(cls._fields)  # type: ignore[attr-defined]
    if hidden:
        raise TypeError(
            f"a field of {cls.__name__} cannot be named {', '.join(sorted(hidden))}: kernels call a method of that "
            "name, and would find the field instead"
        )
    typeof_impl.register(cls)(lambda value, c: StateType([typeof_impl(field, c) for field in value], cls))
    return cls


def protocol(cls: Class) -> Class:
    """Class decorator: kernels may call the methods declared here on any state that has them."""
    for name, stub in inspect.getmembers(cls, inspect.isfunction):
        METHODS.add(name)

        def resolve(self: Any, *args: Any, name: str = name) -> Any:
            return getattr(self.instance_class, name, None)

        resolve.__signature__ = inspect.signature(stub)  # type: ignore[attr-defined]
        overload_method(StateType, name, jit_options=OPTIONS | {"forceinline": True}, strict=False)(resolve)
    return cls


def pointer(part: Any) -> Any:
    """Value and derivative of a loss as one function pointer, (margin, label) -> (float, float).

    Without compilation it is a Python function. What the methods read from `self` are numbers, fixed at this moment.
    """
    if config.DISABLE_JIT:
        return lambda margin, label: (part.value(margin, label), part.derivative(margin, label))
    functions, bound = [], []
    for name in ("value", "derivative"):
        method = getattr(part, name)  # may be static, or the instance's own
        function = getattr(method, "__func__", method)
        function = getattr(function, "py_func", function)
        if not inspect.isfunction(function):
            raise NotCompilable(f"{type(part).__name__}.{name} cannot be compiled: it is not a Python function")
        functions.append(function)
        bound.append(inspect.ismethod(method))
    reads = tuple(read for function in functions for read in _reads(function))
    return _pointer(*functions, *bound, tuple(_numbers(part)), reads)


@functools.lru_cache(maxsize=64)
def _pointer(
    value: Callable[..., float],
    derivative: Callable[..., float],
    binds_value: bool,
    binds_derivative: bool,
    numbers: tuple[tuple[str, float], ...],
    reads: tuple[Any, ...],
) -> Any:
    # A tuple without fields cannot be compiled; names that would not do are not those of attributes the loss can read.
    this = namedtuple("this", [name for name, _ in numbers] + ["nothing"], rename=True)(*(x for _, x in numbers), 0.0)
    of, slope = (
        _compiled(value, this if binds_value else None),
        _compiled(derivative, this if binds_derivative else None),
    )
    return cfunc(types.UniTuple(types.f8, 2)(types.f8, types.f8))(
        lambda margin, label: (of(margin, label), slope(margin, label))
    )


def _compiled(function: Callable[..., float], this: Any) -> Any:
    """A method as a compiled function of margin and label alone, or the reason why it cannot be one."""
    compiled = njit(function, error_model="numpy")
    numeric = (
        njit(lambda margin, label: float(_number(compiled(margin, label))))
        if this is None
        else njit(lambda margin, label: float(_number(compiled(this, margin, label))))
    )
    try:
        numeric.compile((types.f8, types.f8))
    except Exception as error:  # mostly, but not always, one of Numba's own
        raise NotCompilable(f"{function.__qualname__} cannot be compiled: {_reason(error)}") from error
    return numeric


def _numbers(part: Any) -> Iterator[tuple[str, float]]:
    """The public attributes that hold numbers."""
    for name in dir(part):
        with suppress(Exception):  # a property may raise
            if not name.startswith("_") and isinstance(value := getattr(part, name), Real):
                yield name, float(value)


def _number(value: Any) -> Any:
    """A number as it is; an array without axes, which `np.where` makes of numbers, as a number."""


@overload(_number, strict=False)
def _compiled_number(value: Any) -> Any:
    if isinstance(value, types.Array) and value.ndim == 0:
        return lambda value: value[()]
    return lambda value: value


def _reason(error: Exception) -> str:
    """The one line of Numba's many that says what it met."""
    lines = (line.strip() for line in str(error).splitlines())
    reason = next((line for line in lines if line and not line.startswith("Failed in ")), type(error).__name__)
    attribute = re.match(r"Unknown attribute '(\w+)' of type this\(", reason)
    return f"self.{attribute[1]} is not a public attribute that holds a number" if attribute else reason.rstrip(".")


def _reads(function: Any) -> Iterator[Any]:
    """What a function reads besides its arguments, and what those it calls read: while that stays, so do its values.

    In a process that has compiled a function, all this may be given other values, or be defined anew.
    """
    functions = [function]
    for caller in functions:
        scopes = [caller.__globals__]
        values = [cell.cell_contents for cell in caller.__closure__ or ()]
        for scope in scopes:
            for value in (scope[name] for name in caller.__code__.co_names if name in scope):
                if not inspect.ismodule(value):
                    values.append(value)
                elif all(vars(value) is not known for known in scopes):
                    scopes.append(vars(value))
        for value in values:
            called = getattr(value, "py_func", value)
            if inspect.isfunction(called) and called not in functions:
                functions.append(called)
            try:
                hash(value)
            except TypeError:
                yield object()  # like nothing else: it may have changed inside
            else:
                yield type(value), value


def prefetch(array: Any, index: int) -> None:
    """Ask for the cache line of an entry of an array, counted from its first, before it is needed. Reads nothing."""


@intrinsic
def _prefetch(context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(function, [place, number(0), number(3), number(1)])  # to read, to be kept, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


if not config.DISABLE_JIT:
    prefetch = _prefetch
