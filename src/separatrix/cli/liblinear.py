"""``separatrix liblinear-train`` and ``liblinear-predict``: LIBLINEAR's flags, files and output."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.cli.flags import add_commands, choice, number, parse_flags, run_as_original
from separatrix.cli.screen import CommandError

if TYPE_CHECKING:
    from separatrix.persistence._liblinear import LiblinearModel

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[OPTIONS]... FILES...", help="As LIBLINEAR's.", show_default=False),
]
#: Numbers of LIBLINEAR's solvers.
_SOLVERS = {
    0: "L2R_LR", 1: "L2R_L2LOSS_SVC_DUAL", 2: "L2R_L2LOSS_SVC", 3: "L2R_L1LOSS_SVC_DUAL", 4: "MCSVM_CS",
    5: "L1R_L2LOSS_SVC", 6: "L1R_LR", 7: "L2R_LR_DUAL", 11: "L2R_L2LOSS_SVR", 12: "L2R_L2LOSS_SVR_DUAL",
    13: "L2R_L1LOSS_SVR_DUAL", 21: "ONECLASS_SVM",
}  # fmt: skip
#: Relative duality gap to which models are trained, unless -e asks for less.
_TOL = 1e-4
#: Where the search for C ends, of classifiers and of regressions, and how many tubes are tried.
_LARGEST_C, _LARGEST_C_SVR, _TUBES = 1024.0, 2.0**20, 20


def register(app: typer.Typer, **settings: Any) -> None:
    """Add the commands to the program; `settings` go to ``app.command``."""
    add_commands(app, {"liblinear-train": train, "liblinear-predict": predict}, settings)


def train(context: typer.Context, words: Words = None) -> None:
    """Train a linear model as LIBLINEAR's train does, with its flags and its model file.

    \b
    separatrix liblinear-train [options] training_set_file [model_file]
      -s 0..7,11..13  L2 logistic (0, 7), L2 squared hinge (1, 2), L2 hinge (3), Crammer-Singer (4),
                      L1 squared hinge (5), L1 logistic (6), SVR (11, 12 squared, 13) (1)
      -s 21           one-class SVM; labels are not looked at
      -c cost (1)     -p epsilon of the tube (0.1)     -n nu of the one-class SVM (0.5)
      -e tolerance    the duality gap is at most 0.0001, or this if it is less
      -B bias         a constant feature of that value, if not negative (-1)
      -R              its weight is not regularised; needs -B 1 (-s 0, 2, 5, 6, 11)
      -wi weight of class i (1)  -v n  n-fold cross-validation, no model  -q quiet
      -C              find a good cost by cross-validation (-s 0, 2), cost and tube (-s 11), no model
      -M 0            several classes one-vs-rest; -M 1, one-vs-one, has no model file: svm-train -t 0
      -m threads      accepted, as is -n threads (but for -s 21); threads are chosen by themselves

    \b
    Examples:
      separatrix liblinear-train -s 0 -c 10 -B 1 heart_scale
      separatrix liblinear-train -s 5 -v 5 heart_scale
    """
    run_as_original(context, words, _train, "interrupted before there was a model")


def predict(context: typer.Context, words: Words = None) -> None:
    """Predict as LIBLINEAR's predict does, from its model files.

    \b
    separatrix liblinear-predict [options] test_file model_file output_file
      -b 0|1     write probabilities, for logistic regression (0)
      -q         quiet

    \b
    Examples:
      separatrix liblinear-predict heart_test heart_scale.model predictions
    """
    run_as_original(context, words, _predict)


def _train(words: list[str]) -> None:
    kinds: dict[str, Any] = {
        "s": choice(*_SOLVERS), "c": number, "p": number, "e": number, "B": number, "R": None, "v": int,
        "q": None, "C": None, "m": int, "n": number, "M": choice(0, 1),
    }  # fmt: skip
    flags = parse_flags("liblinear-train", words, kinds, (1, 2), weights=True)
    given = flags.values
    kind, bias = given.get("s", 1), given.get("B", -1.0)
    free = bool(given.get("R"))
    if free and (bias != 1 or kind not in (0, 2, 5, 6, 11)):
        raise CommandError("liblinear-train: -R needs -B 1 and -s 0, 2, 5, 6 or 11")
    search = bool(given.get("C"))
    kind = given.get("s", 2) if search else kind
    if search and kind not in (0, 2, 11):
        raise CommandError("liblinear-train: -C searches for -s 0, -s 2 and -s 11 only")
    if given.get("M"):
        raise CommandError(
            "liblinear-train: -M 1: LIBLINEAR's model file has no place for pairs of classes; leave it out "
            "(one-vs-rest), or train one-vs-one with 'separatrix svm-train -t 0'"
        )
    if kind == 21 and bias >= 0:
        raise CommandError("liblinear-train: -B is not for one class (-s 21), which has a threshold instead")

    import numpy as np
    from scipy import sparse

    from separatrix.cli import samples as io

    path = flags.files[0]
    place = None if search or "v" in given else io.model_place(flags.files)
    X, y = io.read_samples(path)
    features, classes = X.shape[1], kind < 11
    if classes:
        y = io.whole_labels(y, path)
    if bias >= 0 and not free:
        X = sparse.csr_array(sparse.hstack([X, np.full((X.shape[0], 1), bias)]))
    X = io.compact(X)
    model = _model(kind, given, free, io.class_weights(flags.weights, np.unique(y)) if classes else None)
    if search:
        _search(model, kind, X, y, given)
        return
    if place is None:
        io.cross_validate(model, X, y, given["v"], classes or kind == 21)
        return
    with io.fit_errors():
        model.fit(X, y)
    if not given.get("q"):
        _tell(model, kind)
    _as_written(model, kind, features, bias, free, io.label_order(y) if classes else None).write(place)


def _tell(model: Any, kind: int) -> None:
    """Print what LIBLINEAR prints of a fit; instead of its counts of dual steps, the certificate."""
    found = model.certificate_
    print(f"optimization finished, #iter = {found.iterations}")
    if found.primal is not None:
        print(f"Objective value = {found.primal:g}")
    sparse_weights = kind in (5, 6)
    print(f"nSV = {int((model.coef_ != 0).sum())}" if sparse_weights else f"{found.status}: {found.message}")


def _as_written(
    model: Any, kind: int, features: int, bias: float, free: bool, listed: list[int] | None
) -> LiblinearModel:
    """Return a fitted model as LIBLINEAR writes it, the classes in the order `listed`."""
    import numpy as np
    from scipy import sparse

    from separatrix.persistence._liblinear import LiblinearModel, as_liblinear

    if kind == 21:
        w = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
        return LiblinearModel(_SOLVERS[kind], None, w, np.zeros(1), -1.0, -float(model.intercept_[0]))
    linear = as_liblinear(model)
    coef, constant = linear.coef, linear.constant
    if kind == 4 and coef.shape[0] == 1:  # the joint problem's columns sum up to 0
        coef, constant = np.concatenate([coef, -coef]) / 2, np.concatenate([constant, -constant]) / 2
    if bias >= 0 and not free:
        constant = coef[:, features]
    written = LiblinearModel(_SOLVERS[kind], linear.labels, coef[:, :features], constant, bias)
    return written if listed is None else written.listed(listed)


def _start(kind: int, X: Any, y: Any, tube: float) -> float:
    """Return the ``C`` from which LIBLINEAR's search starts: so small that it hardly fits anything."""
    square = float((X.multiply(X) if hasattr(X, "multiply") else X * X).sum(axis=1).max()) or 1.0
    if kind == 11:
        outside = float((abs(y) - tube).clip(min=0.0) @ (abs(y) - tube).clip(min=0.0))
        least = 0.01 * outside / (8 * (float(abs(y).sum()) or 1.0) ** 2 * square)
        return float(2.0 ** math.floor(math.log2(least))) if least > 0 else math.inf
    least = 1.0 / ((1 if kind == 0 else 2) * X.shape[0] * square)
    return float(2.0 ** math.floor(math.log2(least)))


def _search(model: Any, kind: int, X: Any, y: Any, given: dict[str, Any]) -> None:
    """Double ``C``, for a regression with each of 20 tubes, and print what predicts held-out samples best."""
    from separatrix.cli.samples import held_out

    folds = given.get("v", 5)
    print(f"Doing parameter search with {folds}-fold cross validation.")
    regression = kind == 11
    tubes, most = [0.0], _LARGEST_C
    if regression:
        width, most = float(abs(y).max()) / _TUBES, _LARGEST_C_SVR
        first = min(_TUBES - 1, int(given["p"] / width)) if given.get("p") and width else _TUBES - 1
        tubes = [number * width for number in range(first, -1, -1)]
    best, found = (math.nan, math.nan), -math.inf
    for tube in tubes:
        C = min(given.get("c") or _start(kind, X, y, tube), most)
        last, same = -math.inf, 0
        while most >= C and same < 5:  # as many doublings without a change: it fits as well as it can
            model.set_params(C=C, **({"epsilon": tube} if regression else {}))
            guesses = held_out(model, X, y, folds, not regression)
            score = -float(((guesses - y) ** 2).mean()) if regression else float((guesses == y).mean())
            if not given.get("q"):
                error = f"p={tube:7.2f}\tMean squared error={-score:g}"
                print(f"log2c={math.log2(C):7.2f}\t{error if regression else f'rate={100 * score:g}'}")
            if score > found:
                best, found = (C, tube), score
            same = same + 1 if regression and math.isclose(score, last, rel_tol=1e-6) else 0
            last, C = score, 2 * C
        if most < C and not given.get("q"):
            print("warning: maximum C reached.")
    if regression:
        print(f"Best C = {best[0]:g} Best p = {best[1]:g}  CV MSE = {-found:g}")
    else:
        print(f"Best C = {best[0]:g}  CV accuracy = {100 * found:g}%")


def _model(kind: int, given: dict[str, Any], free: bool, weights: dict[int, float] | None) -> Any:
    """Return the estimator of the same problem. The constant feature is one of the samples' columns."""
    import separatrix

    if kind == 21:
        return separatrix.OneClassSVM(
            kernel="linear", nu=given.get("n", 0.5), tol=min(given.get("e", _TOL), _TOL)
        )
    common = {"C": given.get("c", 1.0), "tol": min(given.get("e", _TOL), _TOL), "fit_intercept": free}
    if kind >= 11:
        loss = "epsilon_insensitive" if kind == 13 else "squared_epsilon_insensitive"
        return separatrix.LinearSVR(
            loss=loss, epsilon=given.get("p", 0.1), penalize_intercept=not free, **common
        )
    if kind in (0, 6, 7):
        l1 = float(kind == 6)
        return separatrix.LogisticRegression(multiclass="ovr", l1_ratio=l1, class_weight=weights, **common)
    return separatrix.LinearSVC(
        penalty="l1" if kind == 5 else "l2",
        loss="hinge" if kind in (3, 4) else "squared_hinge",
        multi_class="crammer_singer" if kind == 4 else "ovr",
        penalize_intercept=not free,
        class_weight=weights,
        **common,
    )


def _predict(words: list[str]) -> None:
    flags = parse_flags("liblinear-predict", words, {"b": choice(0, 1), "q": None}, (3, 3))
    data, file, output = flags.files

    from separatrix.cli import samples as io
    from separatrix.persistence._liblinear import read_liblinear

    io.output_place(output)
    model = read_liblinear(file)
    if flags.values.get("b") and not model.probabilistic:
        raise CommandError(f"{file}: probability output is only supported for logistic regression; use -b 0")
    X, y = io.read_samples(data)
    scores = model.scores(X)
    predicted = model.decide(scores)
    probabilities = model.probabilities(scores) if flags.values.get("b") else None
    io.write_predictions(output, predicted, model.labels, probabilities)
    if not flags.values.get("q"):
        io.report(predicted, y, model.labels is not None or model.one_class, "")
