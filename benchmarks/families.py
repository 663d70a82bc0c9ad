"""All case tables by the name on the command line, and what some promise over all of their cases."""

from collections.abc import Callable
from pathlib import Path

from benchmarks import cases, machines
from benchmarks.contest import Case

FAMILIES: dict[str, Callable[[Path | None, bool], list[Case]]] = {
    "logistic": cases.logistic_cases, "closed": cases.closed_cases, "prediction": cases.prediction_cases,
    "small": cases.small_cases, "svm": machines.svm_cases, "svm-hard": machines.hard_cases,
    "svm-predict": machines.svm_prediction_cases, "svr": machines.svr_cases,
    "linear-svm": machines.linear_cases, "neighbors": machines.neighbor_cases, "sgd": machines.sgd_cases}

PROMISES = {"logistic": (8.0, cases.SMALLEST), "svm": (6.0, 3.0), "linear-svm": (8.0, 1.5)}
"""What families promise: geometric mean and smallest of the ratios to the better peer of each case."""
