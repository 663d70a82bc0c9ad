"""``separatrix svm-train``, ``svm-predict`` and ``svm-scale``: LIBSVM's flags, files and output."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from separatrix.cli.flags import add_commands, choice, number, parse_flags, run_as_original
from separatrix.cli.screen import CommandError, note

Words = Annotated[
    list[str] | None, typer.Argument(metavar="[OPTIONS]... FILES...", help="As LIBSVM's.", show_default=False)
]
_TYPES = ("SVC", "NuSVC", "OneClassSVM", "SVR", "NuSVR")
_KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")


def register(app: typer.Typer, **settings: Any) -> None:
    """Add the commands to the program; `settings` go to ``app.command``."""
    add_commands(app, {"svm-train": svm_train, "svm-predict": svm_predict, "svm-scale": svm_scale}, settings)


def svm_train(context: typer.Context, words: Words = None) -> None:
    """Train a kernel machine as LIBSVM's svm-train does, with its flags and its model file.

    \b
    separatrix svm-train [options] training_set_file [model_file]
      -s 0..4    C-SVC, nu-SVC, one-class SVM, epsilon-SVR, nu-SVR (0)
      -t 0..4    kernel: linear, polynomial, rbf, sigmoid, precomputed (2)
      -d degree (3)  -g gamma (1/number of features)  -r coef0 (0)
      -c cost (1)    -n nu (0.5)                      -p epsilon of the tube (0.1)
      -m cache in MB (100)  -e tolerance (0.001)      -h 0|1 shrinking (1)
      -b 0|1     learn probabilities (0)              -wi weight of class i in C-SVC (1)
      -v n       n-fold cross-validation, no model    -q quiet

    \b
    Examples:
      separatrix svm-train -c 10 -g 0.1 heart_scale
      separatrix svm-train -s 3 -t 0 -p 0.1 -v 5 housing_scale
    """
    run_as_original(context, words, _train, "interrupted before there was a model")


def svm_predict(context: typer.Context, words: Words = None) -> None:
    """Predict as LIBSVM's svm-predict does, from its model files.

    \b
    separatrix svm-predict [options] test_file model_file output_file
      -b 0|1     write probabilities (0)
      -q         quiet

    \b
    Examples:
      separatrix svm-predict heart_test heart_scale.model predictions
    """
    run_as_original(context, words, _predict)


def svm_scale(context: typer.Context, words: Words = None) -> None:
    """Scale features to a range as LIBSVM's svm-scale does, and print the data.

    \b
    separatrix svm-scale [options] data_filename
      -l lower (-1)  -u upper (+1)   range of the features
      -y lower upper                 range of the targets (unchanged)
      -s file                        save what was found in the data
      -r file                        use what was saved

    \b
    Examples:
      separatrix svm-scale -s range train > train.scale
      separatrix svm-scale -r range test > test.scale
    """
    run_as_original(context, words, _scale)


def _scale(words: list[str]) -> None:
    from separatrix.cli.scale import run

    run(words)


def _train(words: list[str]) -> None:
    kinds: dict[str, Any] = {
        "s": choice(*range(5)), "t": choice(*range(5)), "d": int, "g": number, "r": number, "c": number,
        "n": number, "p": number, "m": number, "e": number, "h": choice(0, 1), "b": choice(0, 1), "v": int,
        "q": None,
    }  # fmt: skip
    flags = parse_flags("svm-train", words, kinds, (1, 2), weights=True)
    given = flags.values
    svm_type, kernel = given.get("s", 0), _KERNELS[given.get("t", 2)]
    classes = svm_type < 2
    if given.get("b") and svm_type == 2:
        raise CommandError("svm-train: -b 1 is not supported for a one-class SVM (-s 2): leave it out")

    import numpy as np

    from separatrix.cli import samples as io
    from separatrix.persistence.interchange import export_libsvm

    path = flags.files[0]
    place = None if "v" in given else io.model_place(flags.files)
    X, y = io.read_samples(path, 0 if kernel == "precomputed" else 1)
    if classes:
        y = io.whole_labels(y, path)
    model = _model(svm_type, kernel, given, X.shape[1])
    if svm_type == 0:
        model.set_params(class_weight=io.class_weights(flags.weights, np.unique(y)))
    elif flags.weights:
        note("-wi counts for C-SVC (-s 0) only, as in LIBSVM; 'separatrix fit' has class_weight of NuSVC")
    X, serial = _kernel_matrix(X, path) if kernel == "precomputed" else (io.compact(X), None)
    if place is None:  # with -b 1 too: the class that is predicted has the largest probability
        io.cross_validate(model, X, y, given["v"], svm_type < 3)
        return
    if given.get("b") and classes:
        model.set_params(probability=True)
    with io.fit_errors():
        model.fit(X, y)
    if given.get("b") and not classes:
        model.laplace_scale_ = np.array([_laplace_scale(y - io.held_out(model, X, y, 5, False))])
    if not given.get("q"):
        _tell(model)
    if serial is not None:
        model.support_ = serial[model.support_].astype(np.int32) - 1
    export_libsvm(model, place, io.label_order(y) if classes else None)


def _model(svm_type: int, kernel: str, given: dict[str, Any], features: int) -> Any:
    """Return the estimator of the same problem."""
    import separatrix

    parameters: dict[str, Any] = {
        "kernel": kernel,
        "degree": given.get("d", 3),
        "gamma": given.get("g", 0.0) or 1.0 / features,
        "coef0": given.get("r", 0.0),
        "tol": given.get("e", 1e-3),
        "cache_size": given.get("m", 100.0),
        "shrinking": bool(given.get("h", 1)),
    }
    if svm_type in (0, 3, 4):
        parameters["C"] = given.get("c", 1.0)
    if svm_type in (1, 2, 4):
        parameters["nu"] = given.get("n", 0.5)
    if svm_type == 3:
        parameters["epsilon"] = given.get("p", 0.1)
    return getattr(separatrix, _TYPES[svm_type])(**parameters)


def _tell(model: Any) -> None:
    """Print what LIBSVM prints of a fit."""
    found = model.certificate_
    print(f"optimization finished, #iter = {found.iterations}")
    if found.dual is not None:
        print(f"obj = {-found.dual:g}, rho = {-model.intercept_[0]:g}")
    print(f"Total nSV = {len(model.support_)}")
    if hasattr(model, "laplace_scale_"):
        _tell_noise(float(model.laplace_scale_[0]))


def _laplace_scale(errors: Any) -> float:
    """Return LIBSVM's estimate of the noise of a regression: mean size of errors, without the largest."""
    import numpy as np

    sizes = np.abs(errors)
    return float(sizes[sizes <= 5 * np.sqrt(2) * sizes.mean()].mean())


def _tell_noise(sigma: float) -> None:
    print(
        "Prob. model for test data: target value = predicted value + z,\n"
        f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={sigma:g}"
    )


def _kernel_matrix(X: Any, path: str) -> tuple[Any, Any]:
    """Return the square kernel matrix of the training samples, and their serial numbers."""
    import numpy as np

    dense = X.toarray()
    serial = dense[:, 0]
    if np.any(serial % 1) or serial.min() < 1 or serial.max() >= dense.shape[1]:
        raise CommandError(
            f"{path}: lines of a kernel matrix begin 'label 0:number', the number being that of the sample's "
            f"column, from 1 to {dense.shape[1] - 1}"
        )
    serial = serial.astype(np.int64)
    K = np.ascontiguousarray(dense[:, serial])
    # Numbers in a file are rounded, often to single precision: such differences are no asymmetry.
    if K.shape[0] == K.shape[1] and np.abs(K - K.T).max(initial=0.0) <= 1e-4 * np.abs(K).max(initial=0.0):
        K = (K + K.T) / 2
    return K, serial


def _predict(words: list[str]) -> None:
    flags = parse_flags("svm-predict", words, {"b": choice(0, 1), "q": None}, (3, 3))
    quiet, wanted = flags.values.get("q"), flags.values.get("b")
    data, file, output = flags.files

    import numpy as np

    from separatrix.cli import samples as io
    from separatrix.persistence._libsvm import libsvm_labels
    from separatrix.persistence.interchange import import_libsvm

    io.output_place(output)
    model = import_libsvm(file)
    precomputed = model.kernel == "precomputed"
    X, y = io.read_samples(data, 0 if precomputed else 1)
    # Features that only one of both knows are 0 in the other.
    width = max(X.shape[1] - precomputed, model.n_features_in_)
    if width > model.n_features_in_:
        model = import_libsvm(file, n_features=width)
    X = io.widened(X, width + precomputed)
    X = X.toarray()[:, 1:] if precomputed else io.compact(X)
    classes = hasattr(model, "classes_")
    labels = probabilities = None
    if wanted and hasattr(model, "laplace_scale_"):
        predicted = model.predict(X)
        if not quiet:
            _tell_noise(float(model.laplace_scale_[0]))
    elif wanted:
        if not getattr(model, "probability", False):
            raise CommandError(
                f"{file}: the model has no probabilities; train it with -b 1, or predict with -b 0"
            )
        labels = libsvm_labels(file)
        # There the likeliest class is the one predicted, even where that contradicts the machine's decision.
        p = model._calibrated(model._score_columns(model._check_new(X)))
        probabilities = p[:, np.searchsorted(model.classes_, labels)]
        predicted = np.array(labels)[np.argmax(probabilities, axis=1)]
    else:
        if getattr(model, "probability", False) and not quiet:
            print("Model supports probability estimates, but disabled in prediction.")
        predicted = _votes(model, X, libsvm_labels(file)) if classes else model.predict(X)
    io.write_predictions(output, predicted, labels, probabilities)
    if not quiet:
        io.report(predicted, y, classes or _TYPES.index(type(model).__name__) == 2, " (classification)")
    sys.stdout.flush()


def _votes(model: Any, X: Any, listed: list[int]) -> Any:
    """Return the classes with the most votes; of equals the one that is listed first, as in LIBSVM."""
    import numpy as np

    K = len(model.classes_)
    if K == 2:
        return model.predict(X)
    scores = model.set_params(decision_function_shape="ovo").decision_function(X)
    votes = np.zeros((scores.shape[0], K), dtype=np.int64)
    column = 0
    for i in range(K):
        for j in range(i + 1, K):
            first = scores[:, column] > 0
            votes[:, i] += first
            votes[:, j] += ~first
            column += 1
    order = np.searchsorted(model.classes_, listed)
    return model.classes_[order[np.argmax(votes[:, order], axis=1)]]
