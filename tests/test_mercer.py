"""Mercer's condition: verdicts, witnesses, and what cannot be judged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from separatrix.kernels import (
    RBF,
    AnovaRBF,
    Bessel,
    CallableKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    Spectrum,
    Subsequence,
    mercer,
)

X = np.random.default_rng(0).normal(size=(60, 3))
VALID = [Linear(), Polynomial(2, 1.0, 1.0), RBF(0.5), Laplacian(), Bessel(2.0, 1), AnovaRBF(0.4, 2)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [*VALID, RBF(1e-9), 1e200 * RBF(0.1), RBF(0.1) * Linear()], ids=repr)
def test_valid_kernels_pass(kernel, dtype):
    given_ = X.astype(dtype)
    for samples in (given_, sparse.csr_array(given_), np.repeat(given_, 2, axis=0)):
        verdict = mercer(kernel, samples)
        assert verdict.valid
        assert verdict.witness is None
        assert verdict.value is None
        assert str(verdict).startswith(f"positive semidefinite on these {samples.shape[0]} samples")
        assert str(verdict).count("\n") == 1


@pytest.mark.parametrize(
    "kernel", [Sigmoid(1.0, -1.0), Polynomial(2, 1.0, -1.0), Bessel(3.0, 0.0), Sigmoid() + Sigmoid(1, -2)]
)
def test_a_witness_convicts_the_others(kernel):
    verdict = mercer(kernel, X)
    assert not verdict.valid
    c = verdict.witness
    assert np.linalg.norm(c) == pytest.approx(1)
    assert c @ kernel(X) @ c == pytest.approx(verdict.value)
    assert verdict.value < -verdict.tolerance < 0
    assert verdict.smallest == pytest.approx(np.linalg.eigvalsh(kernel(X))[0])
    assert str(verdict).startswith("not positive semidefinite on these 60 samples: smallest eigenvalue -")
    assert "c'Kc = -" in str(verdict).splitlines()[1]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6), st.integers(0, 10**6))
@example([0.0, 2.2250738585e-313, 2.2250738585e-313], 242)  # subnormal
def test_verdicts_on_matrices_with_known_eigenvalues(eigenvalues, seed):
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(eigenvalues),) * 2))[0]
    K = (Q * eigenvalues) @ Q.T
    verdict = mercer("precomputed", 0.5 * (K + K.T))
    assert verdict.smallest == pytest.approx(min(eigenvalues), abs=verdict.tolerance)
    assert verdict.tolerance < 1e-13
    if min(eigenvalues) < -1e-12:
        assert not verdict.valid
    if min(eigenvalues) >= 0:
        assert verdict.valid


def test_every_kind_of_samples_and_kernels():
    texts = ["cat", "car", "bar", "", "banana"]
    assert mercer(Spectrum(2), texts).valid
    assert mercer(Subsequence(2, 0.5, normalize=False), texts).valid
    assert mercer("rbf", X, gamma="auto").kernel == RBF(1 / 3)
    assert mercer(lambda A, B: A @ B.T, X).valid
    assert not mercer(lambda A, B: -np.ones((len(A), len(B)), dtype=np.float32), X).valid
    assert mercer(lambda A, B: np.array([[float(len(set(a) & set(b))) for b in B] for a in A]), texts).valid
    assert mercer(Precomputed(), sparse.eye_array(4).tocsr()).valid


@pytest.mark.parametrize(
    ("kernel", "samples", "error", "message"),
    [
        (lambda A, B: A @ (2 * B + 1).T, X, ValueError, r"not symmetric: entry \(\d+, \d+\) is"),
        ("precomputed", [[1.0, 2.0], [0.0, 1.0]], ValueError, r"entry \(0, 1\) is 2, entry \(1, 0\) is 0"),
        ("precomputed", np.ones((2, 3)), ValueError, "must be square"),
        (Polynomial(300), 1e3 * X, ValueError, "returned inf .*scale the features"),
        (CallableKernel(lambda A, B: np.full((60, 60), np.nan)), X, ValueError, "returned nan"),
        (RBF(), ["cat"], TypeError, "not text such as 'cat'"),
        (RBF(), X[:0], ValueError, "no sample"),
        ("gauss", X, ValueError, "unknown kernel 'gauss'"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_what_cannot_be_judged(kernel, samples, error, message):
    with pytest.raises(error, match=message):
        mercer(kernel, samples)
