"""Compiled code: kept between processes, never out of date, for any loss, in threads, checked, and not compiled."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import pommel as pm
from pommel import _jit
from pommel._jit import NotCompilable, kernel, pointer, state
from pommel.engines.compiled import Compiled
from pommel.engines.engine import GradientStep

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "pommel").rglob("*.py"))
NO_JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
compiled = pytest.mark.skipif(NO_JIT, reason="nothing is compiled here")


def data(rng: np.random.Generator, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((n, 6)), np.array([-1, 1] * (n // 2))


def python(code: str, *, path: Path | None = None, **environment: str | Path | None) -> list[str]:
    """The words a fresh process prints; variables given as None are unset."""
    variables = {**os.environ, **environment}
    if path is not None:
        variables["PYTHONPATH"] = path
    given = {name: str(value) for name, value in variables.items() if value is not None}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=given, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


SOLVE = """
import numpy as np, pommel as pm
from pommel.kernels.gradient_step import gradient_steps
rng = np.random.default_rng(0)
X, labels = rng.standard_normal((20, 4)), np.array([-1, 1] * 10)
try:
    from my_loss import MyLoss
except ImportError:
    MyLoss = pm.Hinge
p = pm.DRO(X, labels, loss=MyLoss(), divergence=pm.Mean(), regularizer=pm.L2(1 / 20))
sol = pm.RSPDsc(primal_step=0.1, dual_step=1e-3, n_stages=2).solve(p, tol=0)
stats = gradient_steps.stats
print(sol.engine, sol.x.tobytes().hex(), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@compiled
def test_a_second_process_compiles_no_kernel_and_gives_the_same_bits() -> None:
    first, second = (python(SOLVE) for _ in range(2))
    assert first[:2] == second[:2]
    assert first[0] == "compiled"
    assert second[2:] == ["1", "0"]  # one hit, no miss


MY_LOSS = """
import numpy as np
import my_helper

class MyLoss:
    lipschitz, smoothness, infimum = 1, np.inf, 0

    def value(self, margin, label):
        return np.maximum(0.0, 1.0 - label * margin)

    def derivative(self, margin, label):
        return my_helper.bend(-label * (label * margin < 1.0) * SLOPE)
"""
MY_HELPER = """
from numba import njit

@njit
def bend(slope):
    return slope * BEND
"""


@compiled
def test_a_loss_and_what_it_imports_can_be_edited(tmp_path: Path) -> None:
    def answer(slope: float, bend: float) -> str:
        (tmp_path / "my_loss.py").write_text(MY_LOSS.replace("SLOPE", str(slope)))
        (tmp_path / "my_helper.py").write_text(MY_HELPER.replace("BEND", str(bend)))
        engine, x, *_ = python(SOLVE, path=tmp_path, PYTHONDONTWRITEBYTECODE="1")
        assert engine == "compiled"
        return x

    assert len({answer(1.0, 1.0), answer(0.5, 1.0), answer(1.0, 0.25)}) == 3


TINY = """
import numpy as np, tiny_kernel, pommel.kernels
from pommel.kernels.rows import row_state
from pommel.kernels.vector import lazy_vector
from pommel.rows import Rows
rows = Rows(np.ones((2, 3)))
x = lazy_vector(np.ones(3), 0, norms=rows.squared_norms, step=1.0, decay=1.0, ball=np.inf, whole=True,
                reach=np.zeros(0), start_ball=np.inf)
total = tiny_kernel.walk(row_state(rows), x)
stats = tiny_kernel.walk.stats
print(total, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), pommel.__file__)
"""
TINY_KERNEL = """
from pommel._jit import kernel
from pommel.kernels.vector import fold

@kernel
def walk(rows, x):
    x.f[0] = 0.5
    fold(x)
    return rows.dot(1, x.vectors, 0)
"""
EDITS = {
    "tiny_kernel.py": ("rows.dot(1, x.vectors, 0)", "rows.dot(1, x.vectors, 0) + 1.0"),  # the kernel itself
    "pommel/kernels/rows.py": ("total += self.X[i, j] * vectors[j, k]", "total += 2.0 * self.X[i, j] * vectors[j, k]"),
    "pommel/kernels/vector.py": ("vectors[j, 0] *= f[S]", "vectors[j, 0] *= 3.0 * f[S]"),  # what it calls
}


def package_copy(folder: Path) -> Path:
    """Where `import pommel` finds a copy, beside a small kernel that uses it."""
    shutil.copytree(ROOT / "src" / "pommel", folder / "pommel", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tiny_kernel.py").write_text(TINY_KERNEL)
    return folder


@compiled
def test_sources_of_the_package_can_be_edited(tmp_path: Path) -> None:
    copy = package_copy(tmp_path)

    def answer() -> list[str]:
        total, *stats, file = python(TINY, path=copy, NUMBA_CACHE_DIR=tmp_path / "cache", PYTHONDONTWRITEBYTECODE="1")
        assert Path(file).parent == copy / "pommel"
        return [total, *stats]

    first = answer()
    totals = {first[0]}
    for name, (old, new) in EDITS.items():
        text = (copy / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, name
        (copy / name).write_text(text.replace(old, new), encoding="utf-8")
        total, hits, _ = answer()
        totals.add(total)
        assert hits == "0"
        (copy / name).write_text(text, encoding="utf-8")
    assert len(totals) == 1 + len(EDITS)


@compiled
def test_no_folder_to_write_to(tmp_path: Path) -> None:
    """Files where the cache folders would have to be: not even root can write there."""
    copy = package_copy(tmp_path)
    for folder in {path.parent for path in copy.rglob("*.py")}:
        (folder / "__pycache__").touch()
    (tmp_path / "file").touch()
    nowhere = tmp_path / "file" / "folder"
    places = dict.fromkeys(("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"), nowhere)
    code = f"{TINY}\nprint(type(tiny_kernel.walk._cache).__name__)"
    total, *_, cache = python(code, path=copy, **places)
    assert cache == "NullCache"
    assert float(total) > 0.0


def test_import_compiles_nothing() -> None:
    code = """
import numba.core.compiler as compiler
def refuse(*args, **kwargs):
    raise AssertionError("compiled")
compiler.compile_extra = compiler.compile_ir = refuse
import importlib, pkgutil, pommel, pommel.kernels, sys
for info in pkgutil.iter_modules(pommel.kernels.__path__):
    importlib.import_module(f"pommel.kernels.{info.name}")
from numba.core.dispatcher import Dispatcher
kernels = [thing for name, module in list(sys.modules.items()) if name.startswith("pommel.")
           for thing in vars(module).values() if isinstance(thing, Dispatcher)]
print(len(kernels), sum(len(kernel.signatures) for kernel in kernels))
"""
    kernels, signatures = map(int, python(code))
    assert signatures == 0
    assert kernels > 10 or NO_JIT


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_only_one_module_imports_numba(path: Path) -> None:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    assert not names & {"numba", "llvmlite"} or path.name == "_jit.py"


class Plain:
    """A user's loss: no dataclass, integers, class attributes, a property, one that raises."""

    lipschitz, smoothness, infimum = 2, np.inf, 0
    edge = 1

    def __init__(self, factor: int = 2) -> None:
        self.factor, self.note, self._seen = factor, "not a number", []

    @property
    def twice(self) -> int:
        return 2 * self.factor

    @property
    def unknown(self) -> float:
        raise RuntimeError("not fitted")

    def value(self, margin: Any, label: Any) -> Any:
        return 0.5 * self.twice * np.maximum(0.0, self.edge - label * margin)

    def derivative(self, margin: Any, label: Any) -> Any:
        return -self.factor * label * (label * margin < self.edge)


class Where(Plain):
    """`np.where` makes an array without axes of numbers."""

    def value(self, margin: Any, label: Any) -> Any:
        return np.where(label * margin < self.edge, self.factor * (self.edge - label * margin), 0.0)


class Static(Plain):
    @staticmethod
    def value(margin: Any, label: Any) -> Any:
        return 2.0 * np.maximum(0.0, 1.0 - label * margin)


class OwnMethod(Plain):
    """Each instance has a method of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.value = lambda margin, label: 3.0 * np.maximum(0.0, 1.0 - label * margin)  # type: ignore[method-assign]


class Odd(Plain):
    """Attributes that no field could be named for."""

    count, index, nothing = 1, 2, 3

    def __init__(self) -> None:
        super().__init__()
        setattr(self, "lambda", 4)

    def value(self, margin: Any, label: Any) -> Any:
        return (self.nothing + self.count - 2) * np.maximum(0.0, 1.0 - label * margin)


@kernel
def call(loss: Any, margin: float, label: float) -> Any:
    return loss(margin, label)


def called(loss: Any, margin: float, label: float) -> Any:
    """Value and derivative, as a kernel gets them."""
    return call(pointer(loss), margin, label)


@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize(
    "loss", [Plain(3), Where(), Static(), OwnMethod(), Odd(), pm.Hinge(), pm.Logistic()], ids=lambda p: type(p).__name__
)
def test_a_pointer_answers_value_and_derivative(loss: Any, label: float, rng: np.random.Generator) -> None:
    for margin in (0.0, label, *rng.uniform(-5.0, 5.0, 10)):
        value, derivative = called(loss, margin, label)
        assert type(value) is type(derivative) is float or NO_JIT
        assert value == pytest.approx(float(loss.value(margin, label)), rel=1e-14)
        assert derivative == pytest.approx(float(loss.derivative(margin, label)), rel=1e-14)


def dro(loss: Any, rng: np.random.Generator) -> pm.DRO:
    X, labels = data(rng)
    n = len(labels)
    return pm.DRO(X, labels, loss=loss, divergence=pm.ChiSquare(1.0 / n), regularizer=pm.L2(1.0 / n))


@pytest.mark.parametrize(
    "loss", [Plain(), Plain(1), Where(), Static(), OwnMethod(), Odd()], ids=lambda p: repr(type(p))
)
def test_a_plain_class_runs_compiled(loss: Any, rng: np.random.Generator) -> None:
    problem = dro(loss, rng)
    ours, theirs = (pm.RSPDsc().solve(problem, tol=0, max_passes=20, engine=e) for e in ("auto", "reference"))
    assert (ours.engine, theirs.engine) == ("compiled", "reference")
    assert ours.message == theirs.message == ours.status.value
    np.testing.assert_allclose(ours.x, theirs.x, rtol=0.0, atol=1e-8 * np.abs(theirs.x).max())


class HoldsObjects(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.table = {"edge": 1.0, "name": object()}

    def value(self, margin: Any, label: Any) -> Any:
        return np.maximum(0.0, self.table["edge"] - label * margin)


class CallsBack(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.positive = lambda z: np.maximum(0.0, z)

    def value(self, margin: Any, label: Any) -> Any:
        return self.positive(1.0 - label * margin)


class ReadsPrivate(Plain):
    def derivative(self, margin: Any, label: Any) -> Any:
        return -label * (label * margin < 1.0) * (1.0 + len(self._seen))


class ReadsFile(Plain):
    def value(self, margin: Any, label: Any) -> Any:
        return np.maximum(0.0, 1.0 - label * margin) + 0.0 * len(os.environ)


class BuiltIn(Plain):
    value = staticmethod(max)  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.value = np.maximum  # type: ignore[method-assign]


REASONS = {
    HoldsObjects: "HoldsObjects.value cannot be compiled: self.table is not a public attribute that holds a number",
    CallsBack: "CallsBack.value cannot be compiled: self.positive is not a public attribute that holds a number",
    ReadsPrivate: "ReadsPrivate.derivative cannot be compiled: self._seen is not a public attribute",
    ReadsFile: "ReadsFile.value cannot be compiled: ",
    BuiltIn: "BuiltIn.value cannot be compiled: it is not a Python function",
}


@compiled
@pytest.mark.parametrize("kind", REASONS)
def test_a_loss_that_cannot_be_compiled_runs_on_the_reference_engine(kind: type, rng: np.random.Generator) -> None:
    problem = dro(kind(), rng)
    solution = pm.RSPDsc().solve(problem, tol=0, max_passes=5)
    assert solution.engine == "reference"
    price = "it ran at the price of the reference engine, O(n + d) a step, as"
    assert re.search(re.escape(f"{solution.status.value}; {price} {REASONS[kind]}"), solution.message)
    assert price not in pm.RSPDsc().solve(problem, tol=0, max_passes=5, engine="reference").message  # as asked for
    with pytest.raises(ValueError, match=re.escape(f'engine="compiled" cannot run this problem: {REASONS[kind]}')) as e:
        pm.RSPDsc().solve(problem, tol=0, max_passes=5, engine="compiled")
    assert "\n" not in str(e.value) and len(str(e.value)) < 300
    with pytest.raises(NotCompilable):
        pointer(problem.loss)


FACTOR = 1.0


@kernel
def helper(z: Any) -> Any:
    return z


class ReadsGlobals(Plain):
    def value(self, margin: Any, label: Any) -> Any:
        return FACTOR * helper(np.maximum(0.0, 1.0 - label * margin))


def test_what_a_loss_reads_may_change_in_a_process(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a notebook, where a helper or a number is defined anew and the class is not."""

    def value(loss: Any) -> float:
        return called(loss, 0.0, 1.0)[0]

    loss = ReadsGlobals()
    assert value(loss) == 1.0
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)
    assert value(loss) == 3.0
    monkeypatch.setattr(sys.modules[__name__], "helper", kernel(lambda z: 5.0 * z))
    assert value(loss) == 15.0
    plain = Plain(2)
    assert value(plain) == 2.0
    plain.factor = 7
    assert value(plain) == 7.0


@compiled
def test_pointers_are_made_once() -> None:
    assert pointer(Plain(2)) is pointer(Plain(2))
    assert pointer(pm.Logistic()) is pointer(pm.Logistic())
    assert pointer(Plain(2)) is not pointer(Plain(1))


@pytest.mark.parametrize("name", ["value", "margin", "draw", "weight"])
def test_a_field_cannot_hide_a_method_that_kernels_call(name: str) -> None:
    assert name in _jit.METHODS
    hidden = NamedTuple("Hidden", [("data", Any), (name, Any)])  # type: ignore[misc]
    with pytest.raises(
        TypeError, match=f"a field of Hidden cannot be named {name}: kernels call a method of that name"
    ):
        state(hidden)


def big_problem(rng: np.random.Generator) -> pm.DRO:
    X = sp.random_array((2000, 300), density=0.05, format="csr", rng=rng)
    labels = np.where(rng.random(2000) < 0.5, -1, 1)
    return pm.DRO(X, labels, divergence=pm.ChiSquare(1 / 2000), regularizer=pm.L2(1 / 2000))


@compiled
def test_threads_give_the_bits_of_serial_solves(rng: np.random.Generator) -> None:
    problem = big_problem(rng)
    X, labels = data(rng, 200)
    auc = pm.AUC(X, labels, constraint=pm.L2Ball(0.3))
    jobs = [(pm.RSPDsc(), problem, 0), (pm.RSPDsc(), problem, 1), (pm.RSPD(dual_radius=0.1), problem, 2)]
    jobs += [(pm.RSPDsc(sampling="mixed"), problem, 3), (pm.ARSPD(), auc, 4), (pm.ARSPD(), auc, 5)]

    def solve(job: tuple[Any, Any, int]) -> tuple[bytes, bytes, int, str]:
        solver, problem, seed = job
        sol = solver.solve(problem, tol=0, max_passes=30, random_state=seed)
        return sol.x.tobytes(), sol.y.tobytes(), sol.n_gradients, sol.engine

    serial = [solve(job) for job in jobs]
    assert all(answer[-1] == "compiled" for answer in serial)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(solve, jobs * 3)) == serial * 3
    assert [solve(job) for job in jobs] == serial


@compiled
def test_kernels_release_the_gil(rng: np.random.Generator) -> None:
    """While one thread is in a single long call, this one goes on counting."""
    problem = big_problem(rng)
    engine = Compiled(problem)
    rule = GradientStep(1e-3, 1e-8, problem.primal_set, problem.dual_set, center=0.0)

    def run(steps: int) -> tuple[float, float]:
        walk = engine.begin(rule, np.zeros(problem.d), problem.y0)
        draws, started = np.random.default_rng(0).random(steps), time.perf_counter()
        engine.advance(rule, walk, draws)
        return started, time.perf_counter()

    run(10)
    steps = 100_000
    while (ends := run(steps))[1] - ends[0] < 0.3:
        steps *= 2
    spans: list[tuple[float, float]] = []
    thread = threading.Thread(target=lambda: spans.append(run(steps)))
    ticks = []
    thread.start()
    while thread.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.005)
    thread.join()
    started, ended = spans[0]
    inside = [tick for tick in ticks if started + 0.05 < tick < ended - 0.05]
    assert len(inside) >= 5


OUT_OF_BOUNDS = """
import numpy as np, tiny_kernel, pommel.kernels
from pommel.kernels.rows import DenseRows
try:
    tiny_kernel.products(DenseRows(np.ones((2, 3)), np.ones(0), 0.0), np.ones((2, 2)))
except IndexError:
    print("refused")
"""
PRODUCTS = """
from pommel._jit import kernel

@kernel
def products(rows, vectors):
    return rows.dot(1, vectors, 0)
"""
SAFETY = """
kernels/test_row_states.py::test_rows_are_those_of_x[csr, unsorted with duplicates-both-2]
kernels/test_vector.py::test_run_is_that_of_a_dense_vector[both, shrinking]
kernels/test_vector.py::test_run_is_that_of_a_dense_vector[ball on w, intervals for t]
kernels/test_vector.py::test_run_is_that_of_a_dense_vector[one column]
kernels/test_heap_simplex.py::test_weights_are_those_of_the_projection[extreme-1]
kernels/test_heap_simplex.py::test_weights_are_those_of_the_projection[rising-2]
kernels/test_heap_simplex.py::test_weights_are_those_of_the_projection[half at zero, noise-10]
kernels/test_tree_simplex.py::test_weights_are_those_of_the_projection[falling-1]
kernels/test_tree_simplex.py::test_weights_are_those_of_the_projection[half at zero, noise-10]
kernels/test_adversary.py::test_a_single_number_is_clipped_to_its_intervals[0.05]
kernels/test_sampling.py::test_draws_are_those_of_the_problem[mixed-zeros at both ends-6]
engines/test_compiled.py::test_both_engines_make_the_same_iterates[mean, ball, weighted]
""".strip().splitlines()


@compiled
def test_kernels_stay_within_their_arrays(tmp_path: Path) -> None:
    """With bounds checks, which raise: first of all in a kernel that goes too far."""
    cache = f"{os.environ['NUMBA_CACHE_DIR']}-bounds"  # what was compiled without them knows none
    (tmp_path / "tiny_kernel.py").write_text(PRODUCTS)
    assert python(OUT_OF_BOUNDS, path=tmp_path, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=cache) == ["refused"]
    safety_run(NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=cache)


@compiled
def test_kernels_are_plain_python() -> None:
    safety_run(NUMBA_DISABLE_JIT="1")


def safety_run(**environment: str) -> None:
    """Tests on tiny problems in a process with other settings; one that is not found is an error, as is none."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/{name}" for name in SAFETY)]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | environment
    run = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(rf"^{len(SAFETY)} passed in ", run.stdout, re.MULTILINE), run.stdout
