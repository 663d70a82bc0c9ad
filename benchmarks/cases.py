"""Which linear and Gaussian models meet on which data. The ratios that are asked for are in targets.py."""

from functools import partial
from typing import Any

from benchmarks import datasets, peers
from benchmarks.contest import IN_MEAN, Case
from benchmarks.sources import Source, sources
from benchmarks.tiers import Plan
from benchmarks.worker import Spec

PEER, INTELEX, SKGLM = "scikit-learn", "intelex", "skglm"

PEERS = {
    "Perceptron": ("sklearn.linear_model", "Perceptron"),
    "LogisticRegression": ("sklearn.linear_model", "LogisticRegression"),
    "RidgeClassifier": ("sklearn.linear_model", "RidgeClassifier"),
    "LeastSquaresClassifier": ("sklearn.linear_model", "RidgeClassifier"),
    "LinearDiscriminantAnalysis": ("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis"),
    "QuadraticDiscriminantAnalysis": ("sklearn.discriminant_analysis", "QuadraticDiscriminantAnalysis"),
    "GaussianClassifier": ("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis"),
    "SVC": ("sklearn.svm", "SVC"),
    "SVR": ("sklearn.svm", "SVR"),
    "LinearSVC": ("sklearn.svm", "LinearSVC"),
    "KNeighborsClassifier": ("sklearn.neighbors", "KNeighborsClassifier"),
    "SGDClassifier": ("sklearn.linear_model", "SGDClassifier"),
}
"""Each estimator of ours, and scikit-learn's that does the same or comes nearest."""


def ours(name: str, **options: Any) -> Spec:
    return Spec("separatrix", name, options)


def peer(name: str, **options: Any) -> Spec:
    return Spec(*PEERS[name], options)


def logistic_cases(plan: Plan) -> list[Case]:
    """Ours as it is against scikit-learn's and Intel's solvers, all at C = 1 and the same tolerance."""
    options = {"C": 1.0, "tol": 1e-4, "max_iter": 1000}
    cases = []
    for source in sources(plan):
        parameters = source.features * (source.classes if source.classes > 2 else 1)
        solvers = ["lbfgs"]
        if source.sparse or parameters <= 3000 or plan.large:  # one more product for each step within a step
            solvers.append("newton-cg")
        if parameters <= 3000:  # the Hessian has so many rows and columns
            solvers.insert(0, "newton-cholesky")  # where it is quick, the others are soon given up
        if source.classes == 2:
            solvers.append("liblinear")
        against = {PEER: tuple(peer("LogisticRegression", solver=solver, **options) for solver in solvers)}
        if peers.has("scikit-learn-intelex") and not source.sparse:  # of sparse rows it does nothing itself
            against[INTELEX] = tuple(
                Spec("sklearnex.linear_model", "LogisticRegression", {"solver": solver, **options})
                for solver in solvers
                if solver in ("lbfgs", "newton-cg")
            )
        cases.append(
            Case(
                source.name,
                source.data,
                {"logistic": ours("LogisticRegression")},
                against,
                tuple(("logistic", label, 8.0 * IN_MEAN) for label in against),
                check="objective",
            )
        )
    return cases


def l1_cases(plan: Plan) -> list[Case]:
    """An L1 penalty, two classes. LIBLINEAR penalises the intercept too, which its objective shows."""
    options = {"C": 1.0, "tol": 1e-4}
    cases = []
    for source in sources(plan):
        if source.classes != 2 or (source.name.startswith("Gaussian") and "float32" in source.name):
            continue
        against = {
            PEER: tuple(
                peer("LogisticRegression", solver=solver, l1_ratio=1.0, max_iter=1000, **options)
                for solver in ("liblinear", "saga")
            )
        }
        # (It compiles itself when first called, and again after it had to be stopped, as on texts.)
        if peers.has("skglm") and not (plan.small and source.sparse):
            against[SKGLM] = (Spec("benchmarks.peers", "SkglmL1", options),)
        cases.append(
            Case(
                source.name,
                source.data,
                {"logistic L1": ours("LogisticRegression", l1_ratio=1.0)},
                against,
                tuple(("logistic L1", label, 2.0) for label in against),
                check="L1 objective",
            )
        )
    return cases


def closed_cases(plan: Plan) -> list[Case]:
    """Linear discriminants, ridge and least squares; their share of the rate of a matrix product."""
    cases = []

    def case(source: Source, label: str, **parts: Any) -> Case:
        rate = not (source.sparse or plan.small)  # on little data the product would take longest of all
        return Case(f"{source.name}: {label}", source.data, product_rate=rate, **parts)

    default, fast = f"{PEER} default", f"{PEER} fastest"
    for source in sources(plan):
        if not source.sparse and not (plan.small and source.classes == 2):
            name = "LinearDiscriminantAnalysis"
            cases.append(
                case(
                    source,
                    "LDA",
                    check="training error",
                    ours={"LDA": ours(name)},
                    peers={
                        default: (peer(name),),
                        fast: tuple(peer(name, solver=solver) for solver in ("lsqr", "eigen")),
                    },
                    versus=(("LDA", default, 10.0), ("LDA", fast, 3.0)),
                )
            )
        # scikit-learn's "auto" is cholesky for dense data and sparse_cg for sparse data with an intercept.
        solvers = ("sparse_cg", "lsqr") if source.sparse else ("cholesky", "lsqr", "sparse_cg")
        against = {
            default: (peer("RidgeClassifier"),),
            fast: tuple(peer("RidgeClassifier", solver=solver) for solver in solvers),
        }
        cases.append(
            case(
                source,
                "ridge",
                check="ridge objective",
                ours={"ridge": ours("RidgeClassifier")},
                peers=against,
                versus=(("ridge", default, 3.0), ("ridge", fast, 3.0)),
            )
        )
        if source.features <= 1000 and not plan.small:  # beyond, the problem without a penalty is another one
            cases.append(
                case(
                    source,
                    "least squares",
                    check="training error",
                    ours={"least squares": ours("LeastSquaresClassifier")},
                    peers=against,
                    versus=(("least squares", default, 3.0), ("least squares", fast, 3.0)),
                )
            )
    return cases


def prediction_cases(plan: Plan) -> list[Case]:
    """Labels and probabilities of fitted models; how well the peer was fitted does not matter for them."""
    cases = []
    for source in sources(plan):
        if plan.small and source.classes == 2:
            continue
        for name, applies, probabilities, options in (
            ("LogisticRegression", True, True, {"max_iter": 20}),
            ("RidgeClassifier", True, False, {"max_iter": 20}),
            ("LinearDiscriminantAnalysis", not source.sparse, True, {}),
            ("QuadraticDiscriminantAnalysis", source.full_rank, True, {}),
        ):
            if applies:
                cases.append(
                    Case(
                        f"{source.name}: {name}",
                        source.data,
                        {name: ours(name)},
                        {PEER: (peer(name, **options),)},
                        ((name, PEER, 1.0),),
                        calls=("predict", "predict_proba") if probabilities else ("predict",),
                    )
                )
    return cases


def pass_cases(plan: Plan) -> list[Case]:
    """One pass of the perceptron, by the difference of a long and a short fit; the best weights are kept.

    Sparse rows without an intercept: scikit-learn's moves by hundredths of a step there, another rule.
    """

    def options(source: Source) -> dict[str, Any]:
        return {"tol": None, "random_state": 0, "fit_intercept": not source.sparse}

    found = list(sources(plan))
    if not plan.small:  # words that are all equally frequent, the other extreme
        found += [
            Source(
                f"evenly filled 50,000 × 50,000, {classes} classes",
                partial(datasets.text_like, 50_000, 50_000, classes, "uniform"),
                50_000,
                classes,
                True,
            )
            for classes in (2, 10)
        ]
    return [
        Case(
            source.name,
            source.data,
            {"Perceptron": ours("Perceptron", **options(source))},
            {PEER: (peer("Perceptron", **options(source)),)},
            (("Perceptron", PEER, 5.0),),
            calls=("pass",),
            check="error after the passes",
        )
        for source in found
    ]


def sgd_cases(plan: Plan) -> list[Case]:
    """One pass of stochastic gradients, likewise."""
    cases = []
    for source in sources(plan):
        for loss in ("hinge", "log_loss"):
            if plan.small and (loss == "hinge") != (source.classes == 2):
                continue
            options = {"loss": loss, "tol": None, "random_state": 0}
            cases.append(
                Case(
                    f"{source.name}: {loss}",
                    source.data,
                    {loss: ours("SGDClassifier", **options)},
                    {PEER: (peer("SGDClassifier", **options),)},
                    ((loss, PEER, 3.0),),
                    calls=("pass",),
                    check=f"{loss} after the passes",
                )
            )
    return cases


def small_cases(plan: Plan) -> list[Case]:
    """Where overhead is all there is: a fit and its predictions on iris and wine, all modules loaded."""
    small = {name: partial(datasets.bundled, name) for name in ("iris", "wine")}
    return [
        Case(
            f"{source}: {name}",
            data,
            {name: ours(name)},
            {PEER: (peer(name),)},
            ((name, PEER, 2.0 if name == "SVC" else 1.0),),
            calls=("fit + predict",),
        )
        for source, data in small.items()
        for name in PEERS
        if not plan.small or source == "iris" or name == "SVC"  # what a target names
    ]
