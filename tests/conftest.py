"""Fixtures all tests share. `POMMEL_SEED=7 make test` runs them with another seed: they must hold for any."""

from __future__ import annotations

import hashlib
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

ROOT = Path(__file__).parents[1]


def cache_folder() -> Path:
    """A folder for compiled kernels that changes with any source file: what Numba keeps can never be out of date."""
    sources = sorted((ROOT / "src").rglob("*.py"))
    version = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    return ROOT / ".pytest_cache" / "d" / f"numba-{version}"


os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder()))  # before anything imports Numba

settings.register_profile("pommel", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("pommel")


@pytest.fixture
def seed() -> int:
    return int(os.environ.get("POMMEL_SEED", "0"))


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="session")
def a9a() -> tuple[csr_array, np.ndarray]:
    return load_real("a9a", n_features=123)


def load_real(name: str, n_features: int) -> tuple[csr_array, np.ndarray]:
    """A LIBSVM file from the folder that POMMEL_DATA names; the test is skipped where there is none."""
    path = Path(os.environ.get("POMMEL_DATA", "")) / f"{name}.xz"
    if "POMMEL_DATA" not in os.environ or not path.exists():
        pytest.skip(f"needs the data set {name}.xz in the folder that POMMEL_DATA names")
    with lzma.open(path) as file:
        X, labels = load_svmlight_file(file, n_features=n_features)
    return csr_array(X), labels
