"""Kernels against their formulas, scikit-learn, and themselves in other layouts."""

import json
import math
import pickle
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise

from separatrix import kernels
from separatrix.kernels import (
    RBF,
    AnovaRBF,
    Bessel,
    CallableKernel,
    Laplacian,
    Linear,
    Polynomial,
    Power,
    Precomputed,
    Product,
    Scaled,
    Sigmoid,
    Sum,
    _features,
    check_symmetric,
)
from separatrix.kernels._bessel import spherical_wave
from separatrix.persistence._container import ModelFileError
from separatrix.persistence._values import decode, encode

KERNELS = [
    Linear(),
    Polynomial(),
    Polynomial(degree=2, gamma=0.3, coef0=1.5),
    RBF(),
    RBF(gamma=0.07),
    Sigmoid(),
    Sigmoid(gamma=0.2, coef0=-0.4),
    Laplacian(),
    Laplacian(gamma=0.3),
    Bessel(),
    Bessel(sigma=1.7, order=2.5, degree=3),
    Bessel(sigma=0.4, order=0),
    AnovaRBF(),
    AnovaRBF(sigma=0.4, degree=3),
    RBF(0.1) + 0.5 * Polynomial(3),
    (Linear() + 2 * Laplacian(0.2)) ** 2 * AnovaRBF(0.3),
]
FORMULAS = {
    Linear: lambda kernel, x, z: float(x @ z),
    Polynomial: lambda kernel, x, z: float((kernel.gamma * (x @ z) + kernel.coef0) ** kernel.degree),
    RBF: lambda kernel, x, z: float(np.exp(-kernel.gamma * ((x - z) ** 2).sum())),
    Sigmoid: lambda kernel, x, z: float(np.tanh(kernel.gamma * (x @ z) + kernel.coef0)),
    Laplacian: lambda kernel, x, z: float(np.exp(-kernel.gamma * np.abs(x - z).sum())),
    Bessel: lambda kernel, x, z: wave(kernel.order, kernel.sigma * np.linalg.norm(x - z)) ** kernel.degree,
    AnovaRBF: lambda kernel, x, z: float(np.exp(-kernel.sigma * (x - z) ** 2).sum() ** kernel.degree),
    Sum: lambda kernel, x, z: sum(formula(part, x, z) for part in kernel.terms),
    Product: lambda kernel, x, z: math.prod(formula(part, x, z) for part in kernel.factors),
    Scaled: lambda kernel, x, z: kernel.factor * formula(kernel.kernel, x, z),
    Power: lambda kernel, x, z: formula(kernel.kernel, x, z) ** kernel.exponent,
}


def formula(kernel, x, z):
    return FORMULAS[type(kernel)](kernel, x, z)


def wave(order, t):
    """Gamma(order + 1) (2/t)^order J_order(t), by its power series in rational numbers."""
    quarter, order = Fraction(float(t)) ** 2 / 4, Fraction(order)
    total, term, k = Fraction(0), Fraction(1), 0
    while abs(term) > Fraction(1, 10**40):
        total += term
        k += 1
        # Rounded to 60 digits, or the fractions grow without end.
        term = Fraction(round(-term * quarter / (k * (order + k)) * 10**60), 10**60)
    return float(total)


PEERS = {
    Linear: lambda kernel, A, B: pairwise.linear_kernel(A, B),
    Polynomial: lambda kernel, A, B: pairwise.polynomial_kernel(
        A, B, degree=kernel.degree, gamma=kernel.gamma, coef0=kernel.coef0
    ),
    RBF: lambda kernel, A, B: pairwise.rbf_kernel(A, B, gamma=kernel.gamma),
    Sigmoid: lambda kernel, A, B: pairwise.sigmoid_kernel(A, B, gamma=kernel.gamma, coef0=kernel.coef0),
    Laplacian: lambda kernel, A, B: pairwise.laplacian_kernel(A, B, gamma=kernel.gamma),
}
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}


def brute_force(kernel, A, B):
    A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    return np.array([[formula(kernel, x, z) for z in B] for x in A])


@pytest.fixture
def blocks():
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(7, 4)), rng.normal(size=(5, 4))
    A[rng.random(A.shape) < 0.4] = 0
    B[rng.random(B.shape) < 0.4] = 0
    return A, B


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_blocks_follow_the_formula(kernel, dtype, blocks):
    A, B = (block.astype(dtype) for block in blocks)
    expected = brute_force(kernel, A, B)
    tolerance = TOLERANCE[dtype]
    layouts = [
        np.ascontiguousarray,
        np.asfortranarray,
        sparse.csr_matrix,
        sparse.csr_array,
        sparse.csc_matrix,
    ]
    for first in layouts:
        for second in layouts:
            values = kernel(first(A), second(B))
            assert isinstance(values, np.ndarray)
            assert values.dtype == dtype
            assert values.flags.c_contiguous
            np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)
        own = kernel(first(A))
        assert own.dtype == dtype
        assert own.flags.c_contiguous
        np.testing.assert_allclose(own, brute_force(kernel, A, A), rtol=tolerance, atol=tolerance)
        diagonal = kernel.diag(first(A))
        assert diagonal.dtype == dtype
        np.testing.assert_allclose(diagonal, np.diag(own), rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(own, own.T)


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if type(kernel) in PEERS], ids=repr)
def test_agrees_with_scikit_learn(kernel, blocks):
    A, B = blocks
    np.testing.assert_allclose(kernel(A, B), PEERS[type(kernel)](kernel, A, B), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_integers_lists_and_empty_blocks(kernel):
    A = np.array([[1, 2], [0, 3], [4, 0]])
    for given in (A, A.tolist(), A.astype(np.uint8), sparse.csr_array(A)):
        values = kernel(given)
        assert values.dtype == np.float64
        np.testing.assert_allclose(values, brute_force(kernel, A, A), rtol=1e-12)
    assert kernel(np.empty((0, 2)), A).shape == (0, 3)
    assert kernel(A, np.empty((0, 2))).shape == (3, 0)
    assert kernel.diag(np.empty((0, 2))).shape == (0,)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_input_is_left_alone(kernel, blocks):
    A, B = blocks
    before = A.copy(), B.copy()
    kernel(A, B), kernel(A), kernel.diag(A)
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(B, before[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_rbf_is_exactly_one_on_equal_rows(layout, dtype):
    rng = np.random.default_rng(0)
    A = (rng.normal(size=(60, 37)) * 10.0 ** rng.integers(-6, 6, size=37)).astype(dtype)
    A[rng.random(A.shape) < 0.3] = 0
    A[41] = A[3]
    A[50:52] = 0
    kernel = RBF(gamma=1e4)
    own, other = kernel(layout(A)), kernel(layout(A), layout(A.copy()))
    assert (np.diag(own) == 1).all()
    assert (np.diag(other) == 1).all()
    assert own[41, 3] == own[3, 41] == other[41, 3] == own[50, 51] == 1
    assert (own <= 1).all()
    mixed = kernel(sparse.csr_array(A), A)
    assert (np.diag(mixed) == 1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rbf_far_from_the_origin(dtype):
    rng = np.random.default_rng(1)
    offset = 1e8 if dtype is np.float64 else 1e4
    A = (rng.normal(size=(40, 3)) + offset).astype(dtype)
    B = (rng.normal(size=(30, 3)) + offset).astype(dtype)
    for first, second in [(A, B), (A, A)]:
        expected = brute_force(RBF(0.5), first, second)
        np.testing.assert_allclose(RBF(0.5)(first, second), expected, atol=TOLERANCE[dtype])


def test_rbf_near_pairs_keep_their_digits():
    # 1e-9 apart at distance 1 from the mean: the difference of squares alone would return noise.
    A = np.array([[1.0, 1.0], [1.0 + 1e-9, 1.0], [-1.0, -1.0]])
    for layout in (np.asarray, sparse.csr_array):
        value = RBF(gamma=1e18)(layout(A))[0, 1]
        assert value == pytest.approx(np.exp(-1e18 * (A[1, 0] - A[0, 0]) ** 2), rel=1e-6)


def test_rbf_on_one_point_repeated_stays_within_memory():
    A = np.full((1500, 40), 3.7)
    tracemalloc.start()
    values = RBF()(A)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (values == 1).all()
    assert peak < 10 * values.nbytes


def test_kernels_are_values():
    assert RBF(gamma=2) == RBF(gamma=2.0) != RBF(gamma=3.0)
    assert len({RBF(2), RBF(2.0), Linear(), Linear(), Polynomial(2)}) == 3
    assert Linear() != RBF()
    quadratic = Polynomial(np.int64(2), gamma=np.float32(0.5))
    assert repr(quadratic) == "Polynomial(degree=2, gamma=0.5, coef0=0.0)"
    assert pickle.loads(pickle.dumps(RBF(0.25))) == RBF(0.25)
    with pytest.raises(AttributeError):
        RBF().gamma = 2.0


def test_numpy_scalars_do_not_promote_float32():
    A = np.ones((2, 2), dtype=np.float32)
    assert RBF(np.float64(0.5))(A).dtype == np.float32
    assert Polynomial(coef0=np.float64(1))(A).dtype == np.float32


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RBF(gamma=0), ValueError, "gamma must be positive, not 0"),
        (lambda: RBF(gamma=-1.0), ValueError, "gamma must be positive"),
        (lambda: RBF(gamma=np.nan), ValueError, "gamma must be finite"),
        (lambda: RBF(gamma="scale"), TypeError, "gamma must be a number, not 'scale'"),
        (lambda: Polynomial(degree=2.5), TypeError, "degree must be a whole number"),
        (lambda: Polynomial(degree=-1), ValueError, "degree must be at least 0"),
        (lambda: Polynomial(coef0=np.inf), ValueError, "coef0 must be finite"),
        (lambda: CallableKernel(3), TypeError, "must be callable"),
    ],
)
def test_bad_parameters(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_bad_blocks():
    with pytest.raises(ValueError, match="A has 2, B has 3"):
        Linear()(np.ones((2, 2)), np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"A must have two dimensions.*reshape\(1, -1\)"):
        RBF()(np.ones(3))
    with pytest.raises(TypeError, match="B must hold real numbers, not complex128"):
        RBF()(np.ones((1, 1)), np.ones((1, 1), dtype=complex))
    with pytest.raises(TypeError, match="A must hold real numbers"):
        Linear()(np.array([["a"]]))


LARGE = [Laplacian(0.01), AnovaRBF(0.02, degree=2), Bessel(0.1, order=2), RBF(0.01) * Laplacian(0.02)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", LARGE, ids=repr)
def test_many_tiles_and_blocks(kernel, dtype, monkeypatch):
    """More rows than a tile holds, and sparse rows with duplicates, empty ones and unsorted indices."""
    monkeypatch.setattr(_features, "_SPARSE_NUMBERS", 256)
    rng = np.random.default_rng(8)
    A, B = (np.where(rng.random((n, 9)) < 0.3, rng.normal(size=(n, 9)), 0).astype(dtype) for n in (290, 140))
    A[17] = 0
    B[0] = A[5]
    unsorted = sparse.csr_array(
        (np.r_[B[0, ::-1], B[0]] / 2, np.tile(np.arange(9)[::-1], 2), [0, 18]), shape=(1, 9)
    )
    unsorted.indices[9:] = np.arange(9)
    expected = brute_force(kernel, A[::29], B)
    tolerance = TOLERANCE[dtype]
    for first in (np.asarray, sparse.csr_array):
        own = kernel(first(A))
        np.testing.assert_array_equal(own, own.T)
        np.testing.assert_allclose(np.diag(own), kernel.diag(A), rtol=tolerance)
        np.testing.assert_allclose(own, kernel(A, A.copy()), rtol=tolerance, atol=tolerance)
        for second in (np.asarray, sparse.csr_array):
            values = kernel(first(A), second(B))
            np.testing.assert_allclose(values[::29], expected, rtol=tolerance, atol=tolerance)
            assert values[5, 0] == kernel.diag(A)[5]
        np.testing.assert_allclose(kernel(first(A), unsorted)[:, 0], values[:, 0], rtol=tolerance)


@pytest.mark.parametrize("kernel", LARGE[:3], ids=repr)
def test_scratch_memory_is_bounded(kernel):
    A = np.random.default_rng(0).normal(size=(700, 500))
    tracemalloc.start()
    values = kernel(A)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < values.nbytes + A.nbytes + 64e6


@pytest.mark.parametrize("order", [0, 0.5, 1, 4.5, 30, 391, 2000])
def test_bessel_at_every_distance(order):
    t = np.r_[0.0, 10.0 ** np.arange(-160, 0, 20), np.linspace(0.01, 3, 40), np.geomspace(3, 150, 60)]
    values = spherical_wave(order, t)
    assert values[0] == 1
    assert np.abs(values).max() == 1
    np.testing.assert_allclose(values, [wave(order, x) for x in t], rtol=1e-11, atol=3e-14)


def test_bessel_far_away_and_between_equal_rows():
    far = spherical_wave(1.0, np.array([1e8, 1e100, 1e300]))
    assert np.isfinite(far).all()
    assert np.abs(far).max() < 1e-9
    A = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32) * 1e3
    A[3] = A[11]
    for layout in (np.asarray, sparse.csr_array):
        values = Bessel(50.0)(layout(A))
        assert values[3, 11] == values[7, 7] == 1
        assert np.abs(values).max() == 1


def test_bessel_is_positive_semidefinite_where_it_says_so():
    X = np.random.default_rng(2).normal(size=(80, 4))
    assert np.linalg.eigvalsh(Bessel(3.0, order=1)(X))[0] > -1e-12
    assert np.linalg.eigvalsh(Bessel(3.0, order=0)(X))[0] < -0.01


@pytest.mark.parametrize("kernel", [Laplacian(0.7), AnovaRBF(0.7, 2), RBF(0.3) + 0.5 * Polynomial(2)])
def test_valid_kernels_are_positive_semidefinite(kernel):
    X = np.random.default_rng(2).normal(size=(60, 3))
    eigenvalues = np.linalg.eigvalsh(kernel(X))
    assert eigenvalues[0] > -1e-13 * eigenvalues[-1]


def test_anova_tells_when_it_cannot_be_represented():
    with pytest.raises(ValueError, match=r"reaches 100\^20 on 100 features, too large for float32"):
        AnovaRBF(degree=20)(np.ones((2, 100), dtype=np.float32))
    with pytest.raises(ValueError, match="choose a smaller degree"):
        AnovaRBF(degree=200).diag(np.ones((2, 100)))


def test_composition_laws(blocks):
    A, B = blocks
    a, b, c = RBF(0.1), Polynomial(3), Laplacian(2)
    assert (a + b) + c == a + (b + c) == Sum((a, b, c))
    assert (a * b) * c == a * (b * c) == Product((a, b, c))
    assert 2 * a == a * 2 == Scaled(a, 2.0) == 4 * (0.5 * a)
    assert (2 * a) * (3 * b) == 6 * (a * b)
    assert sum([a, b]) == a + b
    assert np.float64(2) * a == np.int64(2) * a == a * np.float32(2) == 2 * a
    assert hash(a + 0.5 * b) == hash(RBF(0.1) + 0.5 * Polynomial(3))
    assert a + b != b + a  # as values; as functions they agree
    np.testing.assert_allclose(((a + b) * c)(A, B), (a * c + b * c)(A, B), rtol=1e-12)
    np.testing.assert_allclose((a**3)(A, B), (a * a * a)(A, B), rtol=1e-12)
    np.testing.assert_allclose(((2 * a + b) ** 2).diag(A), (2 * a.diag(A) + b.diag(A)) ** 2, rtol=1e-12)
    assert (a + b)(A.astype(np.float32)).dtype == np.float32
    assert pickle.loads(pickle.dumps((a + b) ** 2)) == (a + b) ** 2


COMPOSED = [
    RBF(0.1) + 0.5 * Polynomial(3),
    (Linear() + RBF(2)) * Laplacian(),
    ((Linear() * RBF(1)) ** 2 + 3 * (Linear() + RBF())) ** 4,
    (2 * Linear()) ** 2 * (Linear() ** 2) ** 3,
]


@pytest.mark.parametrize("kernel", COMPOSED, ids=repr)
def test_what_is_printed_can_be_typed(kernel):
    assert eval(repr(kernel)) == kernel


def test_a_composition_leaves_its_parts_alone():
    kept = np.eye(3)
    given = CallableKernel(lambda A, B: kept)
    A = np.ones((3, 1))
    linear = Linear()
    for kernel in (given + linear + linear, given * linear * linear, 2 * given, given**2, Sum((given,))):
        kernel(A)
        np.testing.assert_array_equal(kept, np.eye(3))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: -1.0 * RBF(), ValueError, "the factor of a kernel must be positive, not -1.0"),
        (lambda: RBF() * np.inf, ValueError, "the factor of a kernel must be finite"),
        (lambda: RBF() * True, TypeError, "the factor of a kernel must be a number"),
        (lambda: RBF() ** 0, ValueError, "the exponent of a kernel must be at least 1"),
        (lambda: RBF() ** 0.5, TypeError, "the exponent of a kernel must be a whole number"),
        (lambda: RBF() + 1, TypeError, "unsupported operand"),
        (lambda: 1 + RBF(), TypeError, "unsupported operand"),
        (lambda: RBF() * "x", TypeError, "can't multiply"),
        (lambda: RBF() * np.ones(3), TypeError, "unsupported operand|does not support"),
        (lambda: np.ones(3) * RBF(), TypeError, "unsupported operand|does not support"),
        (lambda: RBF() ** "x", TypeError, "unsupported operand"),
        (lambda: Sum(()), ValueError, "at least one kernel"),
        (lambda: Sum((RBF(), 3)), TypeError, "only kernels can be composed, not 3"),
        (lambda: RBF() + Precomputed(), TypeError, "compose the matrices themselves"),
        (lambda: 2 * Precomputed(), TypeError, "compose the matrices themselves"),
        (lambda: Bessel(order=-0.5), ValueError, "order must be at least 0, not -0.5"),
        (lambda: Bessel(degree=0), ValueError, "degree must be at least 1"),
        (lambda: AnovaRBF(sigma=0), ValueError, "sigma must be positive"),
        (lambda: Laplacian(gamma=-2), ValueError, "gamma must be positive"),
        (lambda: Sigmoid(coef0=np.nan), ValueError, "coef0 must be finite"),
    ],
)
def test_bad_compositions_and_parameters(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_precomputed():
    K = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.0], [0.5, 0.0, 1.0]])
    kernel = Precomputed()
    assert kernel.precomputed
    assert not RBF().precomputed
    assert kernel(K) is K
    np.testing.assert_array_equal(kernel(K[:2], np.array([2, 0])), K[:2][:, [2, 0]])
    np.testing.assert_array_equal(kernel(sparse.csr_array(K)), K)
    np.testing.assert_array_equal(kernel.diag(K), [2, 3, 1])
    assert kernel(K.astype(np.float32)).dtype == np.float32
    assert kernel(np.eye(2, dtype=int)).dtype == np.float64
    assert kernel == Precomputed()
    with pytest.raises(ValueError, match=r"must be square, not of shape \(2, 3\)"):
        kernel.diag(K[:2])
    with pytest.raises(ValueError, match=r"returned nan at row 0, column 1 .*compute the matrix again"):
        kernel(np.array([[1.0, np.nan], [np.nan, 1.0]]))
    with pytest.raises(TypeError, match="must hold real numbers, not text such as 'a'"):
        kernel(["a", "b"])
    with pytest.raises(TypeError, match="by number"):
        kernel(K, K)
    with pytest.raises(ValueError, match="from 0 to 2"):
        kernel(K, np.array([3]))


def test_asymmetry_is_named():
    K = np.eye(1500)
    assert check_symmetric(K) is K
    check_symmetric(K + 1e-15 * np.random.default_rng(0).random(K.shape))
    K[1400, 3] = 0.25
    with pytest.raises(ValueError, match=r"entry \(3, 1400\) is 0, entry \(1400, 3\) is 0.25"):
        check_symmetric(K)
    K[1400, 3] = 0
    K[1400, 1399] = 0.25
    with pytest.raises(ValueError, match=r"entry \(1399, 1400\) is 0, entry \(1400, 1399\) is 0.25"):
        check_symmetric(K)
    with pytest.raises(ValueError, match="must be square"):
        check_symmetric(K[:3])


@pytest.mark.parametrize("kernel", [*KERNELS, *COMPOSED, Precomputed()], ids=repr)
def test_model_files_keep_every_kernel(kernel):
    tensors = {}
    described = json.loads(json.dumps(encode(kernel, "kernel", tensors)))
    assert decode(described, tensors) == kernel


def test_model_files_refuse_functions_inside_kernels():
    with pytest.raises(ModelFileError, match=r"is a function, and model files hold no code.*kernels"):
        encode(RBF() + 2 * CallableKernel(lambda A, B: A @ B.T), "kernel", {})


def test_names_come_when_asked_for():
    assert dir(kernels) == sorted(kernels.__all__)
    for name in kernels.__all__:
        assert getattr(kernels, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Gauss'"):
        kernels.Gauss  # noqa: B018
