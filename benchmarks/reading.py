"""Data files: LIBSVM text against scikit-learn's reader, CSV against pyarrow's."""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import datasets
from benchmarks.contest import Row
from benchmarks.rows import timed
from benchmarks.startup import program
from benchmarks.tiers import Plan
from benchmarks.timing import run


def items(plan: Plan) -> list[tuple[str, Callable[[], list[Row]]]]:
    repeats = plan.tier.repeats
    words, rows = 20_000 // plan.tier.shrink, 200_000 // plan.tier.shrink
    found = [
        (
            f"LIBSVM text {words:,} × 50,000",
            partial(_svmlight, f"LIBSVM text {words:,} × 50,000", words, repeats),
        ),
        (f"CSV {rows:,} × 20", partial(_csv, f"CSV {rows:,} × 20", rows, repeats)),
    ]
    few, many = (9, 16, 7, 15, 6, 5, 2, 42), (rows // 10,) * 8
    for case, count, different in (
        (f"CSV {rows:,} × 14, 8 of text", rows, few),
        (f"CSV {rows // 2:,} × 14, 8 of many texts", rows // 2, many),
        (f"CSV {rows // 100:,} × 14, 8 of text", rows // 100, few),
    ):
        found.append((case, partial(_texts, case, count, different, repeats)))
    if not plan.small:
        found.append(
            ("compare on a CSV of 10,000 × 20", partial(_compare, "compare on a CSV of 10,000 × 20"))
        )
    return found


def _turns(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {label: [] for label in calls}
    for repeat in range(repeats + 1):
        for label, call in calls.items():
            start = time.perf_counter()
            call()
            if repeat > 0:
                seconds[label].append(time.perf_counter() - start)
    return seconds


def _against(
    case: str, path: Path, repeats: int, ours: Callable[[], Any], name: str, peer: Callable[[], Any]
) -> list[Row]:
    """The row of two readers of one file, in turns."""
    seconds = _turns({"ours": ours, "peer": peer}, repeats)
    size = f"{path.stat().st_size / 1e6:.0f} MB"
    return [timed(case, "read", "read", seconds["ours"], name, seconds["peer"], size=size)]


def _svmlight(case: str, rows: int, repeats: int) -> list[Row]:
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file

    import separatrix as sx

    data = datasets.text_like(rows, 50_000, 2, "zipf")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.svm"
        dump_svmlight_file(data.X, data.y, str(path), zero_based=False)
        read, known = sx.read(path), load_svmlight_file(str(path))
        widest = max(read.X.shape[1], known[0].shape[1])
        difference = abs(_widened(read.X, widest) - _widened(known[0], widest))
        if difference.nnz and difference.max() > 1e-12:
            raise ValueError("the two readers differ")
        return _against(
            case,
            path,
            repeats,
            lambda: sx.read(path),
            "scikit-learn load_svmlight_file",
            lambda: load_svmlight_file(str(path)),
        )


def _widened(X: Any, columns: int) -> Any:
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], columns))


def _write_csv(path: Path, rows: int, features: int) -> None:
    data = datasets.dense(rows, features, 3, "float32")
    names = ",".join(f"x{j}" for j in range(features)) + ",kind"
    np.savetxt(
        path,
        np.column_stack([data.X, data.y]),
        delimiter=",",
        header=names,
        comments="",
        fmt=["%.6g"] * features + ["%d"],
    )


def _csv(case: str, rows: int, repeats: int) -> list[Row]:
    import pyarrow.csv as arrow

    import separatrix as sx

    def peer(path: Path) -> tuple[np.ndarray, np.ndarray]:
        """The same job: features as one array, and the target."""
        table = arrow.read_csv(path)
        *features, target = (column.to_numpy() for column in table.columns)
        return np.column_stack(features), target

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        _write_csv(path, rows, 20)
        if not np.array_equal(sx.read(path, "kind").X, peer(path)[0]):
            raise ValueError("the two readers differ")
        return _against(
            case,
            path,
            repeats,
            lambda: sx.read(path, "kind"),
            "pyarrow read_csv and column_stack",
            lambda: peer(path),
        )


def _write_texts(path: Path, rows: int, different: tuple[int, ...]) -> None:
    """6 columns of numbers, others of so many different texts, and two classes."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 10 ** (1 + j), rows).astype(str) for j in range(6)]
    for j, count in enumerate(different):
        words = np.array([f"kind {j} {'of a longer name ' * (k % 3)}{k}" for k in range(count)])
        columns.append(words[rng.integers(0, count, rows)])
    columns.append(np.array(["no", "yes"])[rng.integers(0, 2, rows)])
    with path.open("w") as file:
        file.write(",".join([*(f"x{j}" for j in range(14)), "kind"]) + "\n")
        file.writelines(
            ",".join(row) + "\n" for row in zip(*(column.tolist() for column in columns), strict=True)
        )


def _texts(case: str, rows: int, different: tuple[int, ...], repeats: int) -> list[Row]:
    import pyarrow as pa
    import pyarrow.csv as arrow

    import separatrix as sx

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        _write_texts(path, rows, different)
        ours, known = sx.read(path, "kind"), arrow.read_csv(path)
        wide = pa.schema([(f"x{j}", pa.float64() if j < 6 else pa.string()) for j in range(14)])
        if (
            ours.X.cast(wide) != known.drop(["kind"]).cast(wide)
            or ours.y.tolist() != known["kind"].to_pylist()
        ):
            raise ValueError("the two readers differ")
        return _against(
            case,
            path,
            repeats,
            lambda: sx.read(path, "kind"),
            "pyarrow read_csv",
            lambda: arrow.read_csv(path),
        )


def _compare(case: str) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        _write_csv(path, 10_000, 20)
        start = time.perf_counter()
        run([*program(), "compare", str(path), "--target", "kind"])
        seconds = [time.perf_counter() - start]
    return [timed(case, "process", "separatrix compare", seconds)]
