"""The benchmark's cases: what the targets name, what the tiers hold, files of others."""

import itertools

import numpy as np
import pytest
from benchmarks import datasets, families, sources, targets
from benchmarks.tiers import TIERS, Plan

SMALL = Plan(TIERS["small"])


def test_every_case_that_a_target_names_is_in_the_medium_tier(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "of_user", lambda plan: ())
    for name in sources._STORED:
        (tmp_path / f"{name}.npz").touch()
    plan = Plan(TIERS["medium"], tmp_path)
    for target in targets.TARGETS:
        names = {item.name for item in families.items(plan, [target.family])}
        if target.family in families.CONTESTS:
            names = {case.name for case in families.CONTESTS[target.family](plan)}
        assert set(target.cases) <= names, target.key


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("family", list(families.CONTESTS))
def test_every_case_names_models_that_exist_and_pairs_that_it_has(family, tier):
    table = families.CONTESTS[family](Plan(TIERS[tier]))
    assert len({case.name for case in table}) == len(table) > 0
    for case in table:
        assert all(mine in case.ours and theirs in case.peers for mine, theirs, _ in case.versus)
        assert {theirs for _, theirs, _ in case.versus} == set(case.peers)
        for spec in (*case.ours.values(), *(spec for specs in case.peers.values() for spec in specs)):
            if not spec.module.startswith("sklearnex"):
                assert hasattr(spec.make(), "fit")


def test_data_are_loaded_once_for_all_families(monkeypatch):
    found = families.items(SMALL, ["logistic", "closed", "perceptron", "startup", "growth"])
    order = [id(item.data) for item in found if item.data is not None]
    changes = sum(first != second for first, second in itertools.pairwise(order)) + 1
    assert changes == len(set(order))
    assert found[-1].family == "growth"


def test_any_file_becomes_a_case(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    lines = [f"{a:.3f},{b:.3f},{'red' if c > 0 else 'blue'},{'yes' if a > 0 else 'no'}" for a, b, c in X]
    (tmp_path / "some.csv").write_text("\n".join(["a,b,colour,class", *lines]) + "\n")
    (tmp_path / "rows.svm").write_text("".join(f"{i % 2} 1:{i} 3:1\n" for i in range(50)))
    (tmp_path / "broken.csv").write_text("a,b\n1\n")
    (tmp_path / "notes.md").write_text("nothing")
    plan = Plan(TIERS["small"], tmp_path)
    found = {source.name: source for source in sources.of_user(plan)}
    assert set(found) == {"rows.svm", "some.csv"}
    assert "broken.csv is left out" in capsys.readouterr().out
    data = found["some.csv"].data()
    assert data.X.shape == (48, 4)
    assert data.test[0].shape == (12, 4)
    assert data.y.max() == 1
    for family in ("logistic", "svm", "linear-svm", "closed"):
        assert any("some.csv" in case.name for case in families.CONTESTS[family](plan))
    assert families.items(plan, ["logistic"])[-1].name == "some.csv"


def test_held_out_rows_are_not_trained_on():
    data = datasets.bundled_parted("iris")
    assert (data.X.shape, data.test[0].shape) == ((120, 4), (30, 4))
    assert data.X.mean(axis=0) == pytest.approx(0, abs=0.2)
    together = np.vstack([data.X, data.test[0]])
    assert together.mean(axis=0) == pytest.approx(0, abs=1e-12)
    split = datasets.one_against_rest(lambda: data, 2)
    assert set(split.y) == {0, 1} == set(split.test[1])
