"""The real sets that benchmarks run on, from the folder that POMMEL_DATA names."""

from __future__ import annotations

import lzma
import os
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import normalize

FILES = {
    "a9a": ("a9a", 123),
    "w8a": ("w8a", 300),
    "news20": ("news20", 62_061),
    "covtype": ("covtype.libsvm.binary.scale", 54),
    "url sample": ("url_sample", 3_231_961),
}
"""File and number of features."""


def load(name: str) -> tuple[sp.csr_array, np.ndarray]:
    """A set with labels -1 and 1; news20 is made binary, classes 1-10 against 11-20, and its rows have unit length."""
    file, features = FILES[name]
    path = Path(os.environ.get("POMMEL_DATA", "")) / f"{file}.xz"
    if "POMMEL_DATA" not in os.environ or not path.exists():
        sys.exit(f"needs {file}.xz, a LIBSVM file compressed by xz, in the folder that POMMEL_DATA names")
    with lzma.open(path) as text:
        X, labels = load_svmlight_file(text, n_features=features)
    if name == "news20":
        X, labels = normalize(X), labels <= 10
    return sp.csr_array(X), np.where(labels == labels.max(), 1.0, -1.0)
