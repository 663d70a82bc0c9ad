"""The benchmarks run on tiny data, and their neutral values are those of the formulas; no time is judged."""

import copy
import dataclasses
import itertools
from contextlib import closing
from functools import partial

import numpy as np
import pytest
from benchmarks import checks, contest, datasets, floor, growth, report, strings, timing
from benchmarks.__main__ import SUITES, arguments_of
from benchmarks.families import FAMILIES
from benchmarks.worker import BrokenError, Spec, TooSlowError, Worker, Workers
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR, LinearSVC

TINY = partial(datasets.dense, 60, 3, 2, "float64")


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_the_logistic_objective_is_the_log_loss_plus_the_penalty(classes, as_sparse):
    data = datasets.dense(80, 5, classes, "float64")
    X = sparse.csr_matrix(data.X) if as_sparse else data.X
    model = LogisticRegression(C=0.7).fit(X, data.y)
    expected = 0.7 * log_loss(data.y, model.predict_proba(X), normalize=False) + np.sum(model.coef_**2) / 2
    assert checks.logistic(model, X, data.y) == pytest.approx(expected, rel=1e-12)
    other = LogisticRegression(C=0.7, max_iter=1, tol=1e9).fit(X, data.y)
    other.coef_ = model.coef_ * 1.3
    other.intercept_ = model.intercept_
    assert checks.logistic(other, X, data.y) > checks.logistic(model, X, data.y)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_ridge_objective_is_that_of_the_regression_on_signs(classes):
    data = datasets.dense(80, 5, classes, "float64")
    model = RidgeClassifier(alpha=2.0).fit(data.X, data.y)
    signs = np.where(data.y[:, None] == (np.arange(classes) if classes > 2 else [1]), 1.0, -1.0)
    same = Ridge(alpha=2.0).fit(data.X, signs)
    residuals = signs - same.predict(data.X).reshape(signs.shape)
    expected = np.sum(residuals**2) + 2.0 * np.sum(same.coef_**2)
    assert checks.ridge(model, data.X, data.y) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_the_dual_of_a_machine_is_the_sum_over_its_pairs(classes, as_sparse):
    data = datasets.dense(120, 4, classes, "float64")
    X = sparse.csr_matrix(data.X) if as_sparse else data.X
    gamma = 1.0 / (4 * data.X.var())
    expected = 0.0
    for first, second in itertools.combinations(range(classes), 2):
        rows = np.flatnonzero((data.y == first) | (data.y == second))
        model = SVC(C=2.0, gamma=gamma, tol=1e-9).fit(data.X[rows], data.y[rows])
        coef = model.dual_coef_.ravel()
        K = rbf_kernel(model.support_vectors_, gamma=gamma)
        expected += coef @ K @ coef / 2 - np.abs(coef).sum()
    model = SVC(C=2.0, tol=1e-9).fit(X, data.y)
    assert checks.support_vector_dual(model, X, data.y) == pytest.approx(expected, rel=1e-6)


def test_the_dual_of_a_regression_lies_below_its_primal():
    X, y = datasets.dense(90, 4, 2, "float64").X, np.linspace(-1, 1, 90)
    model = SVR(C=2.0, epsilon=0.05, tol=1e-9).fit(X, y)
    coef, K = model.dual_coef_.ravel(), rbf_kernel(X, X[model.support_], gamma=1.0 / (4 * X.var()))
    penalty = coef @ K[model.support_] @ coef / 2
    primal = penalty + 2.0 * np.maximum(np.abs(y - K @ coef - model.intercept_) - 0.05, 0.0).sum()
    assert -checks.regression_dual(model, X, y) == pytest.approx(primal, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_hinge_objective_is_least_at_the_solution(loss, classes):
    data = datasets.dense(80, 5, classes, "float64")
    model = LinearSVC(loss=loss, C=0.5, tol=1e-8, max_iter=100_000, random_state=0).fit(data.X, data.y)
    least = checks.CHECKS[f"{loss} objective"].value(model, data.X, data.y)
    for coef in (model.coef_ * 1.02, model.coef_ * 0.98):
        other = copy.copy(model)
        other.coef_ = coef
        assert checks.CHECKS[f"{loss} objective"].value(other, data.X, data.y) > least


@pytest.fixture(scope="module")
def workers():
    with closing(Workers()) as found:
        yield found


def test_a_worker_fits_checks_and_says_what_is_wrong(workers):
    spec = Spec("separatrix", "RidgeClassifier")
    worker = workers.worker(spec, TINY)
    assert worker.describe()["shape"] == (60, 3)
    assert worker.seconds(spec, "fit + predict", 60.0) > 0
    assert worker.seconds(spec, "predict", 60.0) > 0
    assert 0 <= worker.check(spec, "training error") < 0.5
    with pytest.raises(BrokenError, match="AttributeError"):
        worker.seconds(spec, "predict_proba", 60.0)


def test_a_worker_that_takes_too_long_is_ended_and_starts_anew():
    spec = Spec("benchmarks.worker", "SquareProduct")
    with closing(Worker(TINY)) as worker:
        with pytest.raises(TooSlowError, match="> 0 s"):
            worker.seconds(spec, "fit", 0.0)
        assert worker.seconds(spec, "fit", 60.0) > 0


def test_workers_end_with_their_data():
    spec = Spec("benchmarks.worker", "SquareProduct")
    with closing(Workers()) as found:
        first = found.worker(spec, TINY)
        assert found.worker(spec, TINY) is first
        missing = partial(datasets.real, None, "covtype")
        assert found.worker(spec, missing) is not first


def test_a_contest_gives_a_row_for_each_pair_and_the_tables_show_it(workers, tmp_path):
    case = contest.Case(
        "tiny", TINY, {"ridge": Spec("separatrix", "RidgeClassifier")},
        {"scikit-learn": (Spec("sklearn.linear_model", "RidgeClassifier", {"solver": "nonesuch"}),
                          Spec("sklearn.linear_model", "RidgeClassifier", {"solver": "cholesky"}))},
        (("ridge", "scikit-learn", 1e9),), check="ridge objective")
    (row,) = contest.run_case(case, workers, repeats=2, budget=60.0)
    assert row["peer"] == "scikit-learn cholesky"
    assert row["notes"][0].startswith("nonesuch failed: InvalidParameterError")
    assert row["reason"] is None
    assert row["ratio"] == row["peer_seconds"] / row["seconds"]
    assert row["best_ratio"] > 0
    assert abs(row["excess"]) < 1e-9
    assert not row["met"]
    assert report.contest_table([row], "tiny").row_count == 1
    machine = {"cpu": "", "cores": "", "instruction set": "", "scikit-learn": ""}
    written = report.save(tmp_path / "run.json", {"machine": machine, "families": {"closed": [row]}})
    assert [path.name for path in written] == ["run.json", "run.png"]
    assert all(path.stat().st_size > 0 for path in written)
    missing = dataclasses.replace(case, data=partial(datasets.real, None, "covtype"))
    assert contest.run_case(missing, workers, repeats=1, budget=60.0) == []


def _entry(seconds, value, limit=None):
    entry = contest._Entry("m", Spec("", ""), Worker(TINY), first=seconds, value=value, limit=limit)
    entry.seconds = [] if seconds is None else [seconds]
    return entry


@pytest.mark.parametrize(("ours", "peer", "met", "at_least", "reason"), [
    ((1.0, 10.0), (2.0, 10.0), True, False, None),
    ((1.0, 10.0), (1.4, 10.0), False, False, None),
    ((1.0, 10.01), (2.0, 10.0), False, False, "not comparable: objective higher by 1.0e-03"),
    ((1.0, 9.0), (2.0, 10.0), True, False, None),
    ((1.0, 10.0), (None, None, 5.0), True, True, None),
    ((None, None, 5.0), (2.0, 10.0), False, False, ""),
])
def test_a_row_counts_only_at_an_equal_objective(ours, peer, met, at_least, reason):
    case = contest.Case("c", TINY, {}, {}, (), check="objective")
    data = {"shape": (60, 3), "classes": 2, "about": ""}
    row = contest._row(case, "fit", data, _entry(*ours), _entry(*peer), [], 1.5, 1000.0)
    assert (row["met"], row["at_least"], row["reason"]) == (met, at_least, reason)
    # 60 rows: 3 · 4 flops of the symmetric product and 2 · 3 · 2 of the other, in one second.
    assert row["product_share"] == (None if ours[0] is None else pytest.approx(60 * 24 / 1000.0))


def test_the_summary_takes_the_better_peer_of_each_case():
    def row(case, ratio, reason=None):
        return {"case": case, "ratio": ratio, "peer": "p", "reason": reason}

    lines = report.summary([row("a", 20.0), row("a", 8.0), row("b", 2.0), row("c", 3.0, "not comparable"),
                            row("c", 9.0)], 8.0, 1.5)
    assert lines[0].startswith("geometric mean over 2 cases, 1 not comparable")
    assert "4.00×, target 8: NOT met" in lines[0]
    assert lines[1] == "smallest, b to p: 2.00×, target 1.5: met"


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_case_names_models_that_exist_and_pairs_that_it_has(family, quick):
    table = FAMILIES[family](None, quick)
    assert len({case.name for case in table}) == len(table)
    for case in table:
        assert all(mine in case.ours and theirs in case.peers for mine, theirs, _ in case.versus)
        for spec in (*case.ours.values(), *(spec for specs in case.peers.values() for spec in specs)):
            if not spec.module.startswith("sklearnex"):
                assert hasattr(spec.make(), "fit")


def test_every_suite_is_on_the_command_line():
    assert {*FAMILIES, "perceptron", "import", "memory", "growth"} == set(SUITES)
    assert {"logistic", "svm", "linear-svm", "neighbors"} < set(FAMILIES)
    assert arguments_of(["closed", "--budget", "5"]).budget == 5.0


def test_passes_are_timed_by_a_difference():
    from separatrix import Perceptron

    data = TINY()
    models = {"ours": lambda passes: Perceptron(max_iter=passes, tol=None)}
    found = timing.seconds_per_pass(models, data.X, data.y, (1, 3), repeats=1)
    assert found["ours"].passes == 3


def test_growth_is_the_slope_of_the_logarithms():
    assert growth.exponent([1, 2, 4], [3.0, 12.0, 48.0]) == pytest.approx(2.0)
    assert growth.exponent([1, 2, 4], [3.0, None, 3.0]) == pytest.approx(0.0)
    assert growth.exponent([1, 2, 4], [3.0, None, None]) is None
    for curve in growth.curves(quick=True):
        assert {axis: len(sizes) for axis, sizes in curve.sizes().items()} == {"rows": 4, "features": 4}


def test_a_curve_is_measured(monkeypatch):
    curve = growth.Curve("ridge", Spec("separatrix", "RidgeClassifier"),
                         Spec("sklearn.linear_model", "RidgeClassifier"), (300, 600), (2, 3),
                         partial(growth._dense, classes=2))
    monkeypatch.setattr(growth, "curves", lambda quick: [curve])
    rows = growth.measure(quick=True, only="", budget=60.0)
    assert [(row["axis"], row["side"]) for row in rows] == [
        ("rows", "separatrix"), ("rows", "scikit-learn"),
        ("features", "separatrix"), ("features", "scikit-learn")]
    assert all(seconds > 0 for row in rows for seconds in row["seconds"])
    assert report.growth_table(rows).row_count == 4


def test_the_floor_holds_unless_a_loop_grows_by_a_third():
    kept = {"a": 1000, "b": 1000}
    assert floor.compare(kept, {"a": 1299, "b": 500}) == []
    assert "1.31 times" in floor.compare(kept, {"a": 1310, "b": 1000})[0]
    assert "no count is kept" in floor.compare(kept, {**kept, "c": 1})[0]
    assert "not run any more" in floor.compare(kept, {"a": 1000})[0]


def test_counts_are_read_from_the_dumps(tmp_path):
    (tmp_path / "counts.1").write_text("desc: Trigger: dump two_words\nsummary: 5\ntotals: 123\n")
    (tmp_path / "counts").write_text("desc: Trigger: Program termination\ntotals: 9\n")
    assert floor._read(tmp_path) == {"two words": 123}


def test_string_kernels_are_measured():
    rows = strings.measure(count=8, repeats=1)
    assert {row["data"] for row in rows} == {"DNA", "letters"}
    assert all(row["seconds"] > 0 for row in rows)
    assert all((row["cells"] is not None) == ("Subsequence" in row["kernel"]) for row in rows)
