"""All families of the benchmark, and what one run of them consists of."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks import cases, contest, growth, machines, memory, reading, startup, strings
from benchmarks.contest import Case, Row
from benchmarks.sources import of_user
from benchmarks.tiers import Plan
from benchmarks.worker import Workers

CONTESTS: dict[str, Callable[[Plan], list[Case]]] = {
    "perceptron": cases.pass_cases,
    "logistic": cases.logistic_cases,
    "closed": cases.closed_cases,
    "svm": machines.svm_cases,
    "svm-predict": machines.svm_prediction_cases,
    "svm-hard": machines.hard_cases,
    "svr": machines.svr_cases,
    "linear-svm": machines.linear_cases,
    "neighbors": machines.neighbor_cases,
    "sgd": cases.sgd_cases,
    "small": cases.small_cases,
    "prediction": cases.prediction_cases,
    "l1": cases.l1_cases,
}

OTHERS: dict[str, Callable[[Plan], list[tuple[str, Callable[[], list[Row]]]]]] = {
    "startup": startup.items,
    "reading": reading.items,
    "strings": strings.items,
    "memory": memory.items,
}

FAMILIES = (*CONTESTS, *OTHERS, "growth")

ABOUT = {
    "perceptron": "One pass of the perceptron",
    "logistic": "Logistic and softmax regression, L2 penalty, C = 1, tolerance 1e-4",
    "l1": "Logistic regression, L1 penalty, C = 1, two classes",
    "closed": "Linear discriminants, ridge and least squares",
    "prediction": "Predictions of linear and Gaussian models",
    "small": "Fit and predict on tiny data, modules loaded",
    "svm": "SVC, Gaussian kernel, C = 10, tolerance 1e-3, fit",
    "svm-predict": "SVC, Gaussian kernel, predict",
    "svm-hard": "SVC at C = 1000, and at tolerance 1e-6",
    "svr": "SVR, Gaussian kernel, C = 10",
    "linear-svm": "LinearSVC, C = 1, penalised intercept",
    "neighbors": "Five nearest neighbours, exact",
    "sgd": "One pass of stochastic gradient descent",
    "startup": "First call in a fresh process, import included",
    "reading": "Data files and the program",
    "strings": "Gram matrices of string kernels",
    "memory": "Growth of peak memory during a fit, in a fresh process",
    "growth": "Growth with rows and features",
}


@dataclass(frozen=True)
class Item:
    """The smallest part of a run: once done its rows are kept."""

    family: str
    name: str
    data: Any  # items of the same data stand together, so that these are loaded once
    run: Callable[[Workers], list[Row]]


def items(plan: Plan, chosen: Iterable[str], only: str = "") -> list[Item]:
    """What a run consists of, in its order: data that targets name before a user's own."""
    found: list[Item] = []
    for family in chosen:
        if family in CONTESTS:
            found += [
                Item(family, case.name, case.data, _contest(case, plan)) for case in CONTESTS[family](plan)
            ]
        elif family == "growth":
            found += [Item(family, name, None, run) for name, run in growth.items(plan)]
        else:
            found += [Item(family, name, None, _alone(run)) for name, run in OTHERS[family](plan)]
    found = [item for item in found if only in item.name]
    users = {id(source.data) for source in of_user(plan)}
    place: dict[int, int] = {}
    for item in found:
        if item.data is not None:
            place.setdefault(id(item.data), len(place))
    ordinary = [item for item in found if id(item.data) not in users and item.family != "growth"]
    last = [item for item in found if item.family == "growth"]
    theirs = [item for item in found if id(item.data) in users]
    return [
        *sorted(ordinary, key=lambda item: -1 if item.data is None else place[id(item.data)]),
        *last,
        *sorted(theirs, key=lambda item: place[id(item.data)]),
    ]


def _contest(case: Case, plan: Plan) -> Callable[[Workers], list[Row]]:
    return lambda workers: contest.run_case(case, workers, plan.tier)


def _alone(run: Callable[[], list[Row]]) -> Callable[[Workers], list[Row]]:
    def alone(workers: Workers) -> list[Row]:
        workers.close()  # nobody else holds memory or threads meanwhile
        return run()

    return alone
