"""The benchmarks run on tiny data, judge rows and write their page; no time is judged."""

import dataclasses
import importlib
import json
import math
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from benchmarks import (
    checks,
    contest,
    datasets,
    families,
    growth,
    judge,
    memory,
    page,
    peers,
    reading,
    readme,
    report,
    results,
    rows,
    run,
    strings,
    targets,
    timing,
    verdict,
)
from benchmarks.tiers import TIERS, Plan
from benchmarks.verdict import Range
from benchmarks.worker import BrokenError, Spec, TooSlowError, Worker, Workers, _Bench
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

TINY = partial(datasets.dense, 60, 3, 2, "float64")


@pytest.fixture(scope="module")
def workers():
    with closing(Workers()) as found:
        yield found


@pytest.mark.parametrize(("busy", "rested"), [(0.0, 0.01), (0.1, 0.12), (math.inf, 1.01)])
def test_a_process_rests_until_its_threads_stop_spinning_but_not_forever(busy, rested, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(time, "process_time", lambda: min(now[0], busy))
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    _Bench(TINY).rest()
    assert now[0] == pytest.approx(rested, abs=0.011)


def test_a_worker_fits_checks_and_says_what_is_wrong(workers):
    spec = Spec("separatrix", "RidgeClassifier")
    worker = workers.worker(spec, TINY)
    assert worker.describe()["shape"] == (60, 3)
    assert worker.seconds(spec, "fit + predict", 60.0) > 0
    assert worker.seconds(spec, "predict", 60.0) > 0
    assert 0 <= worker.check(spec, "training error") < 0.5
    assert 0.5 < worker.accuracy(spec, 10_000, 60.0) <= 1
    assert worker.growth(spec) is None or worker.growth(spec) >= 0
    with pytest.raises(BrokenError, match="AttributeError"):
        worker.seconds(spec, "predict_proba", 60.0)


def test_a_pass_is_timed_by_a_difference_and_checked_after_four(monkeypatch):
    monkeypatch.setattr("benchmarks.worker._CHECK_SECONDS", 0.0)
    bench = _Bench(partial(datasets.dense, 5000, 20, 2, "float64"))
    spec = Spec("separatrix", "Perceptron", {"tol": None})
    assert 0 < bench.seconds(spec, "pass") < 10
    assert bench.models[repr(spec)].n_iter_ == 4
    assert bench.passes[repr(spec)] >= 4
    errors = [
        checks.training_error(
            Spec("separatrix", "Perceptron", {"tol": None, "max_iter": 4, "random_state": seed})
            .make()
            .fit(bench.data.X, bench.data.y),
            bench.data.X,
            bench.data.y,
        )
        for seed in range(5)
    ]
    assert bench.check(spec, "error after the passes") == pytest.approx(np.mean(errors))


def test_orders_that_differ_much_ask_for_more():
    names = ("hinge after the passes", "error after the passes", "objective")
    relative, absolute, once = (checks.CHECKS[name] for name in names)
    assert relative.known([100.0, 101.0] * 5)
    assert not relative.known([100.0, 130.0] * 5)
    assert absolute.known([0.2, 0.21] * 5)
    assert not absolute.known([0.2, 0.3] * 5)
    assert once.known([1.0])


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


def test_workers_that_stay_go_on_with_other_data():
    spec = Spec("separatrix", "RidgeClassifier")
    with closing(Workers(stay=True)) as found:
        first = found.worker(spec, TINY)
        assert first.seconds(spec, "fit", 60.0) > 0
        second = found.worker(spec, partial(datasets.dense, 40, 5, 3, "float32"))
        assert second is first
        assert second.describe() == {"shape": (40, 5), "classes": 3, "about": second.describe()["about"]}
        with pytest.raises(BrokenError, match="KeyError"):
            second.check(spec, "training error")


RIDGE = contest.Case(
    "tiny",
    TINY,
    {"ridge": Spec("separatrix", "RidgeClassifier")},
    {
        "scikit-learn": (
            Spec("sklearn.linear_model", "RidgeClassifier", {"solver": "nonesuch"}),
            Spec("sklearn.linear_model", "RidgeClassifier", {"solver": "cholesky"}),
        )
    },
    (("ridge", "scikit-learn", 3.0),),
    check="ridge objective",
)


@pytest.fixture(scope="module")
def ridge_row(workers):
    (row,) = contest.run_case(RIDGE, workers, TIERS["small"])
    return row


def test_a_contest_gives_a_row_for_each_pair(workers, ridge_row):
    row = ridge_row
    assert row["peer"] == "scikit-learn cholesky"
    assert row["notes"][0].startswith("nonesuch failed: InvalidParameterError")
    assert row["reason"] is None
    assert row["ratio"] == pytest.approx(row["peer_seconds"] / row["seconds"])
    assert row["low"] < row["ratio"] < row["high"]
    assert abs(row["excess"]) < 1e-9
    assert row["accuracy"] == row["peer_accuracy"] > 0.5
    assert report.family_table("closed", [row]).row_count == 1
    missing = dataclasses.replace(RIDGE, data=partial(datasets.real, None, "covtype"))
    assert contest.run_case(missing, workers, TIERS["small"]) == []


def _entry(seconds, value, limit=None):
    entry = contest._Entry("m", Spec("", ""), Worker(TINY), first=seconds, value=value, limit=limit)
    entry.seconds = [] if seconds is None else [seconds] * 3
    entry.notes = [] if limit is None else [f"> {limit} s"]
    return entry


@pytest.mark.parametrize("most", [12, 1000, None])
def test_a_stopped_peer_is_judged_by_the_iterations_that_its_time_allows(workers, most):
    spec = Spec("sklearn.linear_model", "LogisticRegression", {} if most is None else {"max_iter": most})
    entry = contest._Entry("m", spec, workers.worker(spec, TINY), limit=20.0, notes=["> 20 s"])
    entry.value_when_stopped("fit", "objective")
    if most is None:
        assert entry.value is None
        return
    data = TINY()
    expected = checks.logistic(LogisticRegression(max_iter=10).fit(data.X, data.y), data.X, data.y)
    assert entry.value <= expected * (1 + 1e-12)
    assert "its objective: after " in entry.notes[0]


@pytest.mark.parametrize(
    ("ours", "peer", "stopped", "reason"),
    [
        ((1.0, 10.0), (2.0, 10.0), False, None),
        ((1.0, 10.01), (2.0, 10.0), False, "not comparable: objective higher by 1.0e-03"),
        ((1.0, 9.0), (2.0, 10.0), False, None),
        ((1.0, math.nan), (2.0, 10.0), False, "not comparable: objective higher by nan"),
        ((1.0, None), (2.0, 10.0), False, "not comparable: objective unknown"),
        ((1.0, 10.0), (None, None, 5.0), True, None),
        ((1.0, 10.0), (None, 10.5, 5.0), True, None),
        ((1.0, 10.0), (None, 9.9, 5.0), True, "not comparable: objective higher by 1.0e-02"),
        ((None, None, 5.0), (2.0, 10.0), False, "> 5.0 s"),
    ],
)
def test_a_row_counts_only_at_an_equal_objective(ours, peer, stopped, reason):
    case = contest.Case("c", TINY, {}, {}, (), check="objective")
    data = {"shape": (60, 3), "classes": 2, "about": ""}
    row = contest._row(case, "fit", data, _entry(*ours), "p", _entry(*peer), [], 1000.0)
    assert (row["stopped"], row["reason"]) == (stopped, reason)
    # 60 rows: 3 · 4 flops of the symmetric product and 2 · 3 · 2 of the other, in one second.
    assert row["product_share"] == (None if ours[0] is None else pytest.approx(60 * 24 / 1000.0))


def test_predictions_of_a_peer_whose_fit_never_ended_are_not_compared():
    case, data = contest.Case("c", TINY, {}, {}, ()), {"shape": (60, 3), "classes": 2, "about": ""}
    row = contest._row(case, "predict", data, _entry(1.0, None), "p", _entry(None, None, 300.0), [], None)
    assert (row["stopped"], row["reason"]) == (False, "not comparable: the peer's fit did not end")


@pytest.mark.parametrize(
    ("theirs", "ours", "bound", "expected"),
    [
        ([3.0, 3.1, 3.2], [1.0, 1.0, 1.0], 2.5, "met"),
        ([3.0, 3.1, 3.2], [1.0, 1.0, 1.0], 3.0, "too close to call"),
        ([3.0, 3.1, 3.2], [1.0, 1.0, 1.0], 4.0, "not met"),
        ([1.0, 3.1, 9.0], [1.0, 1.0, 1.0], 4.0, "too close to call"),
        ([3.3], [1.0], 3.0, "too close to call"),
        ([3.5], [1.0], 3.0, "met"),
    ],
)
def test_a_verdict_needs_distance_from_its_target(theirs, ours, bound, expected):
    found = verdict.ratio_of(theirs, ours)
    assert verdict.at_least(found, bound) == expected
    # The same numbers as an upper bound on the inverse give the same verdict.
    assert verdict.at_most(Range(1 / found.value, 1 / found.high, 1 / found.low), 1 / bound) == expected


def test_a_stopped_peer_is_never_ahead():
    assert verdict.at_least(Range(3.0, 2.9, 3.1), 5.0, stopped=True) == "too close to call"
    assert verdict.at_least(Range(9.0, 8.0, 10.0), 5.0, stopped=True) == "met"


def test_verdicts_of_two_noisy_runs_never_contradict():
    rng = np.random.default_rng(0)
    for true in (2.0, 2.7, 2.9, 3.0, 3.1, 3.3, 4.0):
        seen = set()
        for _ in range(200):
            theirs, ours = (scale * np.exp(0.03 * rng.normal(size=5)) for scale in (true, 1.0))
            seen.add(verdict.at_least(verdict.ratio_of(theirs, ours), 3.0))
        assert not {"met", "not met"} <= seen


def test_a_mean_has_a_narrower_range_than_its_parts():
    found = verdict.mean_of([Range(2.0, 1.0, 4.0), Range(8.0, 4.0, 16.0)])
    assert found.value == pytest.approx(4.0)
    # Half the deviations of the logarithms, ln 2 each, added in squares.
    assert found.low == pytest.approx(4.0 / 2 ** (2**0.5 / 2))
    assert found.high == pytest.approx(4.0 * 2 ** (2**0.5 / 2))


def _row(case, ratio, library="LIBSVM", reason=None, stopped=False, **more):
    low, high = (None, None) if ratio is None else (ratio / 1.1, ratio * 1.1)
    found = rows.timed(case, "fit", "m", [1.0], library, [ratio or 1.0])
    return found | {"ratio": ratio, "low": low, "high": high, "reason": reason, "stopped": stopped} | more


def test_every_target_is_listed_and_the_unmet_come_first():
    judged = judge.judge({})
    assert {each["verdict"] for each in judged} == {"not measured"}
    assert {each["target"] for each in judged} == {target.key for target in targets.TARGETS}
    assert len(judge.grouped(judged)) == len(targets.TARGETS)
    svm = [
        _row("letter", 9.0),
        _row("letter", 2.0, "intelex"),
        _row("satimage", 8.0),
        _row("usps", 8.0),
        _row("a9a 15,000", 3.0),
        _row("cod_rna 20,000", 4.0, reason="not comparable: higher"),
        _row("covtype 20,000", 2.0, stopped=True),
    ]
    found = {each["case"]: each for each in judge.judge({"svm": svm}) if each["target"] == "svm-each"}
    assert {case: each["verdict"] for case, each in found.items()} == {
        "letter": "not met",
        "satimage": "met",
        "usps": "met",
        "a9a 15,000": "too close to call",
        "cod_rna 20,000": "not comparable",
        "covtype 20,000": "too close to call",
        "fashion_mnist 10,000": "not measured",
    }
    assert found["letter"]["peer"] == "intelex"
    assert found["letter"]["why"]
    order = [each["verdict"] for each in judge.judge({"svm": svm})]
    assert order == sorted(order, key=verdict.ORDER.index)
    assert order[0] == "not met"
    (mean,) = [each for each in judge.judge({"svm": svm}) if each["target"] == "svm-mean"]
    assert mean["case"] == "5 of 7 sets"
    assert mean["value"] == pytest.approx((2 * 8 * 8 * 3 * 2) ** 0.2)
    assert report.targets_table(judge.judge({"svm": svm})).row_count > 10


def test_bytes_seconds_and_shares_are_judged():
    case = "1,000,000 × 100 float32: RidgeClassifier"
    found = judge.judge(
        {
            "memory": [{"case": case, "call": "memory", "growth": 3e8, "input": 4e8, "peer": None}],
            "startup": [_row("separatrix --help", 1 / 3, None)],
            "reading": [rows.timed("compare on a CSV of 10,000 × 20", "process", "compare", [20.0])],
            "strings": [
                rows.timed(
                    "125 texts of 1,000 characters, DNA: Subsequence(5, 0.5)",
                    "Gram matrix",
                    "s",
                    [1.0],
                    rate=2e9,
                )
            ],
        }
    )
    by = {(each["target"], each["case"]): (each["verdict"], each["found"]) for each in found}
    assert by["memory-closed", case] == ("not met", "300 MB")
    assert by["help", "separatrix --help"][0] == "met"
    assert by["compare", "compare on a CSV of 10,000 × 20"] == ("met", "20 s")
    assert by["subsequence", "125 texts of 1,000 characters, DNA: Subsequence(5, 0.5)"][0] == "met"


def test_results_survive_a_stop_and_merge(tmp_path, monkeypatch, ridge_row):
    machine = {"cpu": "c", "revision": "r1", "date": "2026-01-01"}
    first = results.Kept(tmp_path, "small", "closed", machine)
    first.add("tiny", [ridge_row], 1.0)
    again = results.Kept(tmp_path, "small", "closed", machine | {"revision": "r2"})
    assert again.has("tiny")
    assert not again.has("other")
    again.add("other", [ridge_row | {"case": "other"}], 1.0)
    later = results.Kept(tmp_path, "medium", "closed", machine | {"date": "2026-02-01"})
    monkeypatch.setattr(results.time, "strftime", lambda *_: "2100-01-01 00:00:00")
    later.add("tiny", [ridge_row | {"seconds": 7.0}], 1.0)
    found = results.load([tmp_path])
    assert {row["case"]: (row["tier"], row["seconds"] == 7.0) for row in found["families"]["closed"]} == {
        "tiny": ("medium", True),
        "other": ("small", False),
    }
    assert found["machine"]["date"] == "2026-02-01"
    assert found["revisions"] == ["r1", "r2"]
    assert not list(tmp_path.glob("*.part"))


def test_a_run_keeps_rows_resumes_and_judges(tmp_path, capsys, monkeypatch):
    made = []

    def items(plan, chosen, only):
        def item(name):
            def measured(workers):
                made.append(name)
                if name == "broken":
                    raise ValueError("no such luck")
                return [rows.timed(name, "process", "separatrix --help", [0.1] * 3, "pass", [0.05] * 3)]

            return families.Item("startup", name, None, measured)

        return [item("separatrix --help"), item("broken"), item("another")]

    monkeypatch.setattr(run, "items", items)
    arguments = ["startup", "--save", str(tmp_path)]
    assert run.main(arguments) == 0
    said = capsys.readouterr().out
    assert "no such luck" in said
    assert "another: 0.5× pass" in said
    kept = json.loads((tmp_path / "small-startup.json").read_text())
    assert set(kept["items"]) == {"separatrix --help", "another"}
    assert {"cpu", "cores", "cache", "memory", "blas", "threads", "scikit-learn"} <= set(kept["machine"])
    verdicts = results.read_verdicts(tmp_path)
    assert verdicts["help", "separatrix --help"] == "met"
    made.clear()
    run.main([*arguments, "--resume", "--minutes", "0"])
    assert made == []
    assert "1 parts were not begun" in capsys.readouterr().out
    assert run.main(["agree", str(tmp_path), str(tmp_path)]) == 0
    other = json.loads((tmp_path / "verdicts.json").read_text())
    next(each for each in other["targets"] if each["target"] == "help")["verdict"] = "not met"
    (tmp_path / "other.json").write_text(json.dumps(other))
    assert run.main(["agree", str(tmp_path), str(tmp_path / "other.json")]) == 1
    assert "CONTRADICTION: help" in capsys.readouterr().out


def test_the_page_is_made_from_the_results(tmp_path, ridge_row):
    machine = {"cpu": "a | b", "revision": "r", "date": "2026-01-01", "load": "3.0 before", "cores": "2"}
    kept = results.Kept(tmp_path / "results", "medium", "svm", machine)
    lost = ridge_row | _row("letter", 1.2) | {"notes": ["auto_x"]}
    kept.add("letter", [lost], 1.0)
    points = [
        {
            "case": "SVC",
            "call": "growth",
            "group": "few",
            "rows": n,
            "features": d,
            "side": side,
            "seconds": n * d / 1e6,
            "megabytes": 1.0 * n,
        }
        for side in ("separatrix", "scikit-learn")
        for n, d in ((100, 10), (200, 10), (100, 20))
    ]
    results.Kept(tmp_path / "results", "medium", "growth", machine).add("few", points, 1.0)
    assert page.main(["--results", str(tmp_path / "results"), "--docs", str(tmp_path)]) == 0
    text = (tmp_path / "benchmarks.md").read_text()
    assert text.index("### Not met") < text.index("### Not measured")
    assert "a \\| b" in text
    assert "The machine was busy" in text
    assert not page.busy(machine | {"load": "0.4 before"})
    assert "1.2× (" in text
    assert "auto\\_x" in text
    assert "| SVC | rows | separatrix |" in text
    for name in ("ratios", "growth"):
        assert f"figures/benchmarks/{name}.png" in text
        assert (tmp_path / "figures" / "benchmarks" / f"{name}.png").stat().st_size > 1000
    with pytest.raises(SystemExit, match="no results"):
        page.main(["--results", str(tmp_path / "nothing"), "--docs", str(tmp_path)])


def test_the_readme_has_the_spread_of_each_task(tmp_path):
    values = ((2.0, "2×", "met"), (8.0, "> 8×", "met"), (None, "–", "not measured"))
    judged = [
        {"target": "svm-each", "value": value, "found": found, "verdict": verdict}
        for value, found, verdict in values
    ]
    path = tmp_path / "README.md"
    path.write_text(f"before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n", encoding="utf-8")
    assert readme.renew(path, judged)
    before, *lines, after = path.read_text(encoding="utf-8").splitlines()
    assert (before, after) == ("before", "after")
    assert len(lines) == 5
    assert "`SVC`: fit" in lines[3]
    assert lines[3].endswith("| 2 of 3 | 2 | > 4 | > 8 |")
    path.write_text("no marks", encoding="utf-8")
    assert not readme.renew(path, judged)
    assert path.read_text(encoding="utf-8") == "no marks"


def test_the_command_line_says_what_is_wrong(capsys, tmp_path):
    assert run.arguments_of(["closed", "--tier", "medium"]).tier == "medium"
    for words, message in (
        (["nonesuch"], "no family is called nonesuch"),
        (["--data", str(tmp_path / "no")], "there is no folder"),
    ):
        with pytest.raises(SystemExit):
            run.arguments_of(words)
        assert message in capsys.readouterr().err


def test_peers_that_are_missing_are_told():
    assert set(peers.missing()) | {name for name in peers.PACKAGES if peers.has(name)} == set(peers.PACKAGES)
    assert peers.has("scikit-learn")
    assert peers.versions()["scikit-learn"][0].isdigit()


@pytest.mark.parametrize("classes", [2, 3])
def test_the_official_libraries_solve_the_same_problems(classes):
    data = datasets.dense(90, 4, classes, "float64")
    if peers.has("libsvm-official"):
        model = peers.LibsvmSVC(C=2.0, tol=1e-6).fit(data.X, data.y)
        same = checks.support_vector_dual(SVC(C=2.0, tol=1e-6).fit(data.X, data.y), data.X, data.y)
        assert checks.support_vector_dual(model, data.X, data.y) == pytest.approx(same, rel=1e-6)
    if peers.has("liblinear-official"):
        linear = peers.LiblinearSVC(tol=1e-8).fit(data.X, data.y)
        other = LinearSVC(tol=1e-8, max_iter=100_000, random_state=0).fit(data.X, data.y)
        assert linear.coef_ == pytest.approx(other.coef_, abs=1e-4)
    if not (peers.has("libsvm-official") or peers.has("liblinear-official")):
        pytest.skip("neither library is installed")


def test_growth_is_the_slope_of_the_logarithms():
    assert growth.exponent([1, 2, 4], [3.0, 12.0, 48.0]) == pytest.approx(2.0)
    assert growth.exponent([1, 2, 4], [3.0, None, 3.0]) == pytest.approx(0.0)
    assert growth.exponent([1, 2, 4], [3.0, None, None]) is None
    for group in growth.groups(Plan(TIERS["medium"])):
        assert len(group.sizes()) == 5


def test_points_are_measured_and_become_curves(workers):
    group = growth.Group("g", {"ridge": growth._pair("RidgeClassifier")}, (300, 600), (2, 3), growth._dense)
    measured = growth._points(group, 300, 3, dataclasses.replace(TIERS["small"], budget=60.0), workers)
    assert [point["side"] for point in measured] == ["separatrix", "scikit-learn"]
    assert all(point["seconds"] > 0 for point in measured)
    points = [
        point | {"rows": n, "features": d, "seconds": n**2 * d, "megabytes": 1.0}
        for n, d in group.sizes()
        for point in measured
    ]
    found = growth.curves(points)
    assert {(curve["axis"], curve["side"], tuple(curve["sizes"])) for curve in found} == {
        (axis, side, sizes)
        for side in ("separatrix", "scikit-learn")
        for axis, sizes in (("rows", (300, 600)), ("features", (2, 3)))
    }
    assert {(curve["axis"], round(curve["exponent"], 9)) for curve in found} == {("rows", 2), ("features", 1)}
    assert report.growth_table(points).row_count == 4


def test_other_families_give_rows(monkeypatch):
    (row,) = strings.measure("c", "DNA", "Subsequence(3, 0.5)", 6, 1)
    assert row["cells"] > 0
    assert row["rate"] == pytest.approx(row["cells"] / row["core_seconds"])
    (read,) = reading._csv("c", 200, 1)
    assert read["ratio"] > 0
    (text,) = reading._svmlight("c", 50, 1)
    assert text["ratio"] > 0
    assert timing.process_seconds({"a": [sys.executable, "-c", "pass"]}, 1)["a"][0] > 0
    with pytest.raises(RuntimeError, match="nonsense"):
        timing.run_python(["-c", "nonsense"])
    (grown,) = memory._pair("c", "RidgeClassifier", 300, "float32", "C", {}, with_peer=False, features=5)
    assert grown["input"] == 300 * 5 * 4
    assert report.memory_table([grown]).row_count == 1
    assert report.one_line("n", [grown], 1.0).startswith("n: ")


def test_the_wheel_brings_the_benchmarks_along(root):
    package = importlib.import_module("separatrix")
    assert any(Path(folder, "_bench", "benchmarks", "__main__.py").exists() for folder in package.__path__)
    # Nothing but the package itself is searched for its modules.
    assert {Path(folder).name for folder in package.__path__} == {"separatrix"}
    assert importlib.import_module("separatrix.cli.bench").home() == Path(root)
