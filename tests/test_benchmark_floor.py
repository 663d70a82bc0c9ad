"""The floor under the hot loops: instructions counted and compared."""

import json
import shutil
import sys

from benchmarks import floor, loops


def test_the_floor_holds_unless_a_loop_grows_by_a_fifth():
    kept = {"a": 1000, "b": 1000}
    assert floor.compare(kept, {"a": 1199, "b": 500}) == []
    assert "1.31 times" in floor.compare(kept, {"a": 1310, "b": 1000})[0]
    assert "no count is kept" in floor.compare(kept, {**kept, "c": 1})[0]
    assert "not run any more" in floor.compare(kept, {"a": 1000})[0]


def test_counts_of_the_core_are_read_from_the_dumps(tmp_path):
    (tmp_path / "0.1").write_text(
        "desc: Trigger: Client Request: two words\n"
        "ob=(1) /x/_hot.so\nfl=(1) a.cpp\nfn=(1) loop\n0 100\ncob=(2) /x/libpython.so\ncfn=(2) p\n"
        "calls=1 0\n0 999\n0 20\nob=(2)\nfn=(2)\n0 5000\nob=(1)\nfn=(3) tail\n0 3\ntotals: 6122\n"
    )
    (tmp_path / "0").write_text("desc: Trigger: Program termination\ntotals: 9\n")
    assert floor.read_dumps(tmp_path) == {"two words": 123}


def test_every_loop_has_a_kept_count_and_runs():
    assert set(json.loads(floor.KEPT.read_text())) == set(loops.LOOPS)
    for name in ("svmlight", "subsequences", "kernel scores"):
        loops.on_one_thread(loops.LOOPS[name]())


def test_the_floor_is_left_out_without_valgrind(monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["floor"])
    floor.main()
    assert "left out: valgrind counts instructions: apt install valgrind" in capsys.readouterr().out
