"""The table of speeds in the README, made from the results as the page is, so that it cannot grow old."""

import math
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.verdict import UNCOMPARABLE, UNMEASURED

BEGIN = "<!-- speed: made by `python -m benchmarks page` -->"
END = "<!-- end of speed -->"

_BETTER = "the better of LIBSVM (scikit-learn) and intelex"
_LINES = (
    ("svm-each", "`SVC`: fit (RBF, C = 10)", _BETTER),
    ("svm-predict-libsvm", "`SVC`: predict", "LIBSVM"),
    ("svm-predict-intelex", "`SVC`: predict", "intelex"),
    ("svm-tiny", "`SVC`: fit and predict, tiny data", "LIBSVM"),
    ("svm-first", "`SVC`: a fresh process, import included", "LIBSVM"),
    ("svr-each", "`SVR`: fit", _BETTER),
    ("linear-svm-each", "`LinearSVC`", "LIBLINEAR"),
    ("logistic-each", "`LogisticRegression`", "the better of scikit-learn's fastest solver and intelex"),
    ("lda-default", "`LinearDiscriminantAnalysis`", "scikit-learn's default solver"),
    ("lda-fastest", "`LinearDiscriminantAnalysis`", "scikit-learn's fastest solver"),
    ("ridge-default", "`RidgeClassifier`", "scikit-learn's default solver"),
    ("ridge-fastest", "`RidgeClassifier`", "scikit-learn's fastest solver"),
    ("neighbors-sklearn", "`KNeighborsClassifier`", "scikit-learn's brute force"),
    ("neighbors-faiss", "`KNeighborsClassifier`", "faiss's flat index"),
    ("perceptron-pass", "a pass of `Perceptron`", "scikit-learn"),
    ("sgd-pass", "a pass of `SGDClassifier`", "scikit-learn"),
)


def table(judged: Iterable[dict[str, Any]]) -> str:
    """One line for each task: how many data sets, and how many times as fast on them."""
    judged = list(judged)
    lines = ["| task | against | data sets | least | mean | most |", "|---|---|---|---|---|---|"]
    for key, task, peer in _LINES:
        named = [each for each in judged if each["target"] == key]
        found = [each for each in named if each["verdict"] not in (UNCOMPARABLE, UNMEASURED)]
        if found:
            lines.append(f"| {task} | {peer} | {_count(len(found), len(named))} | {_spread(found)} |")
    return "\n".join(lines)


def _count(found: int, named: int) -> str:
    return f"{found}" if found == named else f"{found} of {named}"


def _spread(found: list[dict[str, Any]]) -> str:
    """Least, geometric mean and most; of a peer that was stopped only so much is known."""
    ordered = sorted(found, key=lambda each: each["value"])
    stopped = [each["found"].startswith(">") for each in ordered]
    mean = math.exp(statistics.fmean(math.log(each["value"]) for each in ordered))
    shown = (
        (ordered[0]["value"], stopped[0]),
        (mean, any(stopped)),
        (ordered[-1]["value"], any(stopped)),
    )
    return " | ".join(("> " if more else "") + _number(value) for value, more in shown)


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def renew(path: Path, judged: Iterable[dict[str, Any]]) -> bool:
    """Put the table between its marks; return whether the file has them."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, mark, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        return False
    path.write_text(f"{before}{BEGIN}\n{table(judged)}\n{END}{after}", encoding="utf-8")
    return True
