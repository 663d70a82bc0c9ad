"""``separatrix evaluate``: how a saved model fares on rows whose classes are known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.cli import metrics
from separatrix.cli.inputs import DataOptions, load_model, model_blocks, noted
from separatrix.cli.outputs import check_picture, write_picture
from separatrix.cli.prepare import nameless
from separatrix.cli.screen import CommandError, class_table, facts, note, print_json, table

KINDS = ("roc", "precision-recall", "calibration", "confusion")
_WIDEST = 12


@dataclass(frozen=True)
class EvaluateRequest:
    """What the user asked for."""

    model: Path
    data: DataOptions
    plot: Path | None
    kind: str
    json: bool


@dataclass
class _Tally:
    """What is added up over the blocks; scores are kept where a number or a picture needs all of them."""

    counts: NDArray[np.int64]
    log_loss: float | None
    truth: list[NDArray[Any]]
    scores: list[NDArray[Any]]


def run(request: EvaluateRequest) -> None:
    """Predict block by block, count, report."""
    if request.kind not in ("auto", *KINDS):
        raise CommandError(f"--kind must be one of auto, {', '.join(KINDS)}; got {request.kind!r}")
    check_picture("--plot", request.plot, request.data.path, request.model)
    model = load_model(request.model, request.data.path)
    if not hasattr(model, "classes_"):
        raise CommandError(f"{request.model}: holds no classifier; evaluate compares classes")
    classes = np.asarray(model.classes_)
    with noted():
        blocks, target = model_blocks(model, request.data, labelled=True)
        tally = _count(model, classes, blocks, request)
    report = _report(request, classes, target, tally)
    if request.plot is not None:
        _draw(request, classes, tally, request.plot)
    if request.json:
        print_json(report)
    else:
        _print(request, report, classes, tally)


def draw(request: EvaluateRequest) -> None:
    """Draw the picture and print nothing."""
    model = load_model(request.model, request.data.path)
    classes = np.asarray(model.classes_)
    with noted():
        blocks, _ = model_blocks(model, request.data, labelled=True)
        tally = _count(model, classes, blocks, request)
    assert request.plot is not None
    _draw(request, classes, tally, request.plot)


def _count(model: Any, classes: NDArray[Any], blocks: Any, request: EvaluateRequest) -> _Tally:
    size, kind = len(classes), _kind(request, len(classes))
    probable = hasattr(model, "predict_proba")
    if kind == "calibration" and not probable:
        raise CommandError("--kind calibration needs probabilities, and this model gives none")
    tally = _Tally(np.zeros((size + 1, size), dtype=np.int64), 0.0 if probable else None, [], [])
    for block in blocks:
        if block.y is None:
            raise CommandError(f"{request.data.path}: the file holds no classes to compare with")
        truth = metrics.match_labels(block.y, classes)
        with nameless():
            predicted = metrics.match_labels(np.asarray(model.predict(block.X)), classes)
            tally.counts += metrics.confusion(truth, predicted, size)
            probabilities = model.predict_proba(block.X) if probable else None
            if probabilities is not None:
                tally.log_loss = (tally.log_loss or 0.0) + metrics.log_losses(truth, probabilities)
            if size == 2 or kind in ("roc", "precision-recall", "calibration"):
                known = probabilities if kind == "calibration" or size > 2 else None
                tally.truth.append(truth)
                tally.scores.append(_ordering(model, block.X) if known is None else known)
    return tally


def _ordering(model: Any, X: Any) -> NDArray[Any]:
    """Return what orders rows: the scores of two classes, or one for each class as the displays take them."""
    if len(model.classes_) == 2:
        scored = hasattr(model, "decision_function")
        return np.asarray(model.decision_function(X) if scored else model.predict_proba(X))
    from separatrix.plot._curves import class_scores

    try:
        return class_scores(model, X)[1]
    except ValueError as error:
        raise CommandError(str(error)) from None


def _kind(request: EvaluateRequest, n_classes: int) -> str | None:
    """Return which picture is drawn, if any."""
    if request.plot is None:
        return None
    if request.kind == "auto":
        return "roc" if n_classes == 2 else "confusion"
    return request.kind


def _report(
    request: EvaluateRequest, classes: NDArray[Any], target: str | None, tally: _Tally
) -> dict[str, Any]:
    unknown = int(tally.counts[-1].sum())
    if unknown:
        note(f"{unknown:,} rows have a class that the model does not know; they count as errors")
    report: dict[str, Any] = {"model": str(request.model), "data": str(request.data.path)}
    report |= {"target": target, "classes": classes}
    report |= metrics.summary(tally.counts, tally.log_loss)
    report["roc_auc"] = None
    if tally.truth:
        truth, scores = np.concatenate(tally.truth), np.concatenate(tally.scores)
        if len(classes) == 2:
            scores = scores[:, 1] if scores.ndim == 2 else scores
            report["roc_auc"] = metrics.roc_auc(truth[truth >= 0] == 1, scores[truth >= 0])
    report |= {"unknown_classes": unknown, "confusion": tally.counts[:-1]}
    report["per_class"] = metrics.per_class(tally.counts, classes)
    report["picture"] = None if request.plot is None else str(request.plot)
    return report


def _print(request: EvaluateRequest, report: dict[str, Any], classes: NDArray[Any], tally: _Tally) -> None:
    share = f"{report['accuracy']:.4f} ({report['correct']:,} of {report['rows']:,} rows right)"
    named = "" if report["target"] is None else f", target {report['target']}"
    lines = [("data", f"{request.data.path}: {report['rows']:,} rows{named}"), ("accuracy", share)]
    lines.append(("balanced accuracy", f"{report['balanced_accuracy']:.4f} (mean recall of the classes)"))
    if report["log_loss"] is not None:
        lines.append(("log-loss", f"{report['log_loss']:.4f}"))
    if report["roc_auc"] is not None:
        lines.append(("ROC AUC", f"{report['roc_auc']:.4f}"))
    if report["picture"]:
        lines.append(("picture", report["picture"]))
    facts(lines)
    print()
    class_table(report["per_class"])
    print("\nconfusion matrix: a row for each true class, a column for each predicted one")
    if len(classes) > _WIDEST:
        _print_confusions(classes, tally.counts)
        return
    labels = [str(label) for label in classes]
    table(
        ("true", *labels),
        [(label, *(f"{n:,}" for n in row)) for label, row in zip(labels, tally.counts, strict=False)],
    )


def _print_confusions(classes: NDArray[Any], counts: NDArray[np.int64]) -> None:
    """Print the most frequent errors where the whole matrix would not fit a screen."""
    wrong = counts[:-1].copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(wrong, axis=None, kind="stable")[::-1][:15]
    print(f"with {len(classes)} classes the most frequent errors are shown; --json has all")
    pairs = [divmod(int(number), len(classes)) for number in order if wrong.flat[number]]
    rows = [(str(classes[true]), str(classes[named]), f"{wrong[true, named]:,}") for true, named in pairs]
    table(("true", "predicted", "rows"), rows)


class _Scored:
    """A model whose answers are known: the displays ask it as they ask any other."""

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes_ = classes

    def decision_function(self, scores: NDArray[Any]) -> NDArray[Any]:
        return scores

    def predict_proba(self, probabilities: NDArray[Any]) -> NDArray[Any]:
        return probabilities


def _draw(request: EvaluateRequest, classes: NDArray[Any], tally: _Tally, path: Path) -> None:
    from separatrix import plot

    kind = _kind(request, len(classes))
    if kind == "confusion":
        axes = plot.ConfusionMatrixDisplay(tally.counts[:-1], list(classes)).plot().ax_
    else:
        codes, scores = np.concatenate(tally.truth), np.concatenate(tally.scores)
        functions: dict[str, Any] = {
            "roc": plot.roc,
            "precision-recall": plot.precision_recall,
            "calibration": plot.calibration,
        }
        try:
            axes = functions[str(kind)](_Scored(classes), scores[codes >= 0], classes[codes[codes >= 0]])
        except ValueError as error:
            raise CommandError(f"--kind {kind}: {error}") from None
    rows = int(tally.counts.sum())
    axes.set_title(f"{request.model.name} on {request.data.path.name}, {rows:,} rows", fontsize="medium")
    write_picture(axes, path)
