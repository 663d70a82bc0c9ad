"""Visits of dual coordinate descent and its extrapolation, against their formulas sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from separatrix import LinearSVC
from separatrix.data.memory import view_of
from separatrix.losses import LOSSES
from separatrix.problem import Problem
from separatrix.solvers import _box_group
from separatrix.solvers._box_dual import LOSS_NAMES
from separatrix.solvers._loop import Control
from separatrix.solvers.box_coordinate import BoxCoordinate


def _solver(loss: str, columns: int, dtype: Any, csr: bool, scaling: float | None = 1.5) -> BoxCoordinate:
    random = np.random.default_rng(columns)
    X = random.normal(size=(60, 9)) * np.geomspace(1.0, 30.0, 9)
    classes = random.integers(0, max(2, columns), size=60).astype(np.int32)
    loss_object = LOSSES[loss]
    targets = None
    codes = np.where(np.eye(columns, dtype=bool), 1, -1) if columns > 1 else np.array([[-1], [1]])
    if "epsilon" in loss:
        targets, classes, codes = X @ random.normal(size=9), np.zeros(60, dtype=np.int32), np.ones((1, 1))
        loss_object = loss_object.with_epsilon(0.2)
    rows = X * (np.abs(X) > 1) if csr else X
    problem = Problem(
        view_of(sparse.csr_array(rows) if csr else rows),
        classes,
        codes.astype(np.int8),
        targets=targets,
        loss=loss_object,
        weights=random.uniform(0.5, 2.0, size=60),
    )
    return BoxCoordinate(
        problem,
        C=0.7,
        scaling=scaling,
        coef=np.zeros((problem.columns, 9)),
        intercept=np.zeros(problem.columns),
        tol=1e-4 if dtype == np.float32 else 1e-9,
        seed=3,
    )


def _dual(solver: BoxCoordinate, V: Any, multiplier: Any) -> Any:
    """The dual of each column as its formula has it, with the multiplier of a free intercept."""
    rows = solver.view.read(slice(0, 60))
    rows = rows.toarray() if sparse.issparse(rows) else rows
    linear, square = solver.dual.sums(V.T)
    W = V.T @ rows
    sums = V.sum(axis=0)
    return linear - square - 0.5 * (W * W).sum(axis=1) - 0.5 * solver.constant * sums**2 - multiplier * sums


CASES = [
    (loss, 1 if "epsilon" in loss else k)
    for loss in LOSS_NAMES
    for k in ((1,) if "epsilon" in loss else (1, 3))
]


@pytest.mark.parametrize(("loss", "columns"), CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("scaling", [1.5, None])
def test_the_point_is_the_best_of_the_plane_or_none(loss, columns, dtype, csr, scaling, monkeypatch):
    monkeypatch.setattr(_box_group, "_CREEPING", 10**9)
    solver = _solver(loss, columns, dtype, csr, scaling)
    group, own = solver.groups[0], solver.problem.columns
    assert group.dtype == dtype
    control = Control(None)
    taken = 0
    for _ in range(12):
        for _ in range(2):
            group.epoch(control)
        past = [v.astype(np.float64)[:, :own] for v, _ in group.extrapolation.past]
        before, reach = group.v[:, :own].astype(np.float64), group.extrapolation.reach[:own].copy()
        multiplier = group.offsets[:own] - solver.constant * before.sum(axis=0)
        gain = group.extrapolation.step()
        after = group.v[:, :own].astype(np.float64)
        old, new = _dual(solver, before, multiplier), _dual(solver, after, multiplier)
        precision = 1e-4 if dtype == np.float32 else 1e-9
        assert_allclose(new.sum() - old.sum(), gain, atol=precision * max(1.0, np.abs(old).sum()))
        assert gain >= 0
        # Weights and offsets are those of the dual variables.
        assert_allclose(group.weights[:, :own], solver.view.transposed(after).astype(dtype), rtol=1e-3,
                        atol=1e-4 * np.abs(group.weights).max())  # fmt: skip
        if len(past) < 2:
            assert_array_equal(after, before)
            continue
        for k in range(own):
            if (after[:, k] == before[:, k]).all():
                continue
            taken += 1
            best = _plane(solver, [p[:, k] for p in past], before[:, k], k, multiplier[k])
            expected = _clipped(solver, k, before[:, k], reach[k] * best, past)
            close = 1e-2 if dtype == np.float32 else 1e-5
            assert_allclose(after[:, k], expected, rtol=close, atol=close * np.abs(before - past[1]).max())
    assert taken > 0


def _plane(solver, past, now, k, multiplier):
    """The multiples of both directions with the largest quadratic part of the dual, by its matrix."""
    rows = solver.view.read(slice(0, 60))
    rows = rows.toarray() if sparse.issparse(rows) else rows
    upper = solver.dual.upper
    Q = rows @ rows.T + solver.constant
    if solver.dual.squared:
        Q = Q + np.diag(0.5 / upper)
    codes = solver.dual.codes(np.arange(solver.problem.columns))
    target = solver.dual.numbers if codes is None else codes[k]
    slope = target - solver.dual.epsilon * np.sign(now) - Q @ now - multiplier
    directions = np.stack([now - past[0], past[0] - past[1]])
    curvature = directions @ Q @ directions.T
    if np.linalg.det(curvature) <= 1e-8 * curvature[0, 0] * curvature[1, 1]:
        return np.array([directions[0] @ slope / curvature[0, 0], 0.0])
    return np.linalg.solve(curvature, directions @ slope)


def _clipped(solver, k, now, tau, past):
    z = now + tau[0] * (now - past[0][:, k]) + tau[1] * (past[0][:, k] - past[1][:, k])
    codes, end = solver.dual.codes(np.arange(solver.problem.columns)), solver.dual.upper
    end = np.full(60, np.inf) if solver.dual.squared else end
    low, high = (
        (-end, end)
        if codes is None
        else (np.where(codes[k] < 0, -end, 0.0), np.where(codes[k] > 0, end, 0.0))
    )
    z = np.clip(z, low, high)
    return np.where(z * now < 0, 0.0, z) if solver.dual.epsilon > 0 else z


@pytest.mark.parametrize(("loss", "columns"), CASES)
@pytest.mark.parametrize("csr", [False, True])
def test_visits_tell_the_gap_before_their_steps(loss, columns, csr, monkeypatch):
    """An epoch of steps that change nothing finds the gap sample by sample: φ(f) + φ*(v) + v f."""
    monkeypatch.setattr(
        _box_group, "_FAR", np.inf
    )  # visits know the weights as they are, no multiple of them
    solver = _solver(loss, columns, np.float64, csr)
    group, control = solver.groups[0], Control(None)
    for _ in range(40):
        group.epoch(control)
    group._check()
    gap = float((group.primal - _dual(solver, group.v[:, : solver.problem.columns], 0.0)).sum())
    # With nothing worth a step, visits only look.
    group.asleep[:], group.tally[:] = 0, 0.0
    before, group.state.negligible = group.v.copy(), np.inf
    _box_group.visit(group.state, solver.view, group.order.copy(), group.padded, control)
    assert_array_equal(group.v, before)
    assert group.tally[1] == 60
    assert_allclose(group.tally[2], gap, rtol=1e-6, atol=1e-10 * group.level)
    assert group.tally[0] == 0


def _uneven() -> tuple[Any, Any]:
    """Return sparse samples so uneven that coordinate descent creeps."""
    random = np.random.default_rng(5)
    X = sparse.random(800, 1500, 0.01, format="csr", random_state=0)
    X.data = random.geometric(0.1, X.data.shape[0]).astype(float)
    return X, random.integers(0, 2, 800)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("penalised", [True, False])
def test_creeping_descent_ends_sooner(loss, penalised, monkeypatch):
    X, y = _uneven()
    X = sparse.csr_array(X[:, :200])
    model = LinearSVC(loss=loss, solver="dual", C=0.1, max_iter=20000, penalize_intercept=penalised)
    quick = model.fit(X, y).n_iter_
    assert model.certificate_.status == "converged"
    primal = model.certificate_.primal
    monkeypatch.setattr(_box_group, "_CREEPING", 10**9)
    assert model.fit(X, y).n_iter_ > 1.5 * quick
    assert primal == pytest.approx(model.certificate_.primal, rel=2e-4)
