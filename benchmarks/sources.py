"""The data sets of a run by name. All families share them, so that each is loaded once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from benchmarks import datasets
from benchmarks.datasets import Dataset
from benchmarks.tiers import Plan

KNOWN = {
    "covtype": (54, 7, False, datasets.standardised),
    "fashion_mnist": (784, 10, False, datasets.bytes_to_unit),
    "a9a": (123, 2, True, None),
    "sector": (55_197, 105, True, None),
    "newsgroups20_bow": (42_280, 20, True, None),
}
"""Sets that targets name: features, classes, whether sparse, and how they are prepared."""

KERNEL_SETS = (
    "letter",
    "satimage",
    "usps",
    "a9a 15,000",
    "cod_rna 20,000",
    "covtype 20,000",
    "fashion_mnist 10,000",
)
"""Sets of the kernel machines' targets."""

_STORED = (*KNOWN, "letter", "satimage", "usps", "cod_rna")
_SUFFIXES = (
    ".csv",
    ".tsv",
    ".parquet",
    ".arrow",
    ".feather",
    ".jsonl",
    ".npz",
    ".npy",
    ".svm",
    ".libsvm",
    ".txt",
    ".gz",
    ".zst",
    ".bz2",
)


@dataclass(frozen=True)
class Source:
    """A data set by name, and what decides which solvers can be tried on it."""

    name: str
    data: Callable[[], Dataset | None]
    features: int
    classes: int
    sparse: bool = False
    full_rank: bool = False  # in each class, as quadratic discriminants need it
    of_user: bool = False  # from a file that no target names


@cache
def sources(plan: Plan) -> tuple[Source, ...]:
    """Data sets of the linear models and of all that scale like them."""
    shrink = plan.tier.shrink
    rows, wide, words = 200_000 // shrink, 60_000 // shrink, 50_000 // shrink
    kinds = ("float64", 2), ("float32", 10)
    found = [
        Source(
            f"Gaussian {rows:,} × 100 {dtype}, {classes} classes",
            partial(datasets.dense, rows, 100, classes, dtype),
            100,
            classes,
            full_rank=True,
        )
        for dtype, classes in (kinds if plan.small else (*kinds, ("float64", 10), ("float32", 2)))
    ]
    if not plan.small:  # half a minute, which a run below five has not
        found.append(
            Source(
                f"Gaussian {wide:,} × 784 float32, 10 classes",
                partial(datasets.dense, wide, 784, 10, "float32"),
                784,
                10,
            )
        )
    found += [
        Source(
            f"text {words:,} × {words:,}, {classes} classes",
            partial(datasets.text_like, words, words, classes, "zipf"),
            words,
            classes,
            sparse=True,
        )
        for classes in (2, 10)
    ]
    if plan.small:
        found += [
            Source(name, partial(datasets.bundled_parted, name), features, classes)
            for name, features, classes in (("digits", 64, 10), ("breast_cancer", 30, 2))
        ]
    elif plan.folder is not None:
        found += [
            Source(name, partial(datasets.real, plan.folder, name, prepare), features, classes, sparse)
            for name, (features, classes, sparse, prepare) in KNOWN.items()
            if (plan.folder / f"{name}.npz").exists()
        ]
    return (*found, *of_user(plan))


@cache
def of_user(plan: Plan) -> tuple[Source, ...]:
    """A source for each file of the folder that no target names and that the library can read.

    Its shape is known only once it has been read, so that each is read here once.
    """
    found = []
    for path in files(plan.folder, plan.small):
        try:
            data = datasets.file(path, plan.tier.most)
        except Exception as problem:  # whatever a file may hold, the others are still there
            print(f"{path.name} is left out: {' '.join(str(problem).split())[:160]}")
            continue
        classes = len(set(data.y.tolist()))
        if not 2 <= classes <= 200:
            print(f"{path.name} is left out: its target has {classes} values, which are no classes")
            continue
        found.append(
            Source(
                path.name,
                partial(datasets.file, path, plan.tier.most),
                data.X.shape[1],
                classes,
                hasattr(data.X, "indptr"),
                of_user=True,
            )
        )
    return tuple(found)


def files(folder: Path | None, small: bool) -> list[Path]:
    """Files that the library may be able to read; at full size those of the targets are sources already."""
    if folder is None:
        return []
    return [
        path
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in _SUFFIXES
        and path.is_file()
        and (small or path.name.removesuffix(".npz") not in _STORED)
    ]


@cache
def kernel_sources(plan: Plan) -> tuple[Source, ...]:
    """Data sets of the kernel machines."""
    many, some = 10_000 // plan.tier.shrink, 5_000 // plan.tier.shrink
    found = [
        Source(f"Gaussian {many:,} × 20, 2 classes", partial(datasets.dense, many, 20, 2, "float64"), 20, 2),
        Source(f"Gaussian {some:,} × 50, 5 classes", partial(datasets.dense, some, 50, 5, "float32"), 50, 5),
    ]
    if plan.small:  # several classes are those of the digits
        found[1:] = [source for source in sources(plan) if source.name in ("digits", "breast_cancer")]
    elif plan.folder is not None:
        real = partial(datasets.real, plan.folder)
        standardised = datasets.standardised
        stored = [
            Source("letter", partial(real, "letter", standardised), 16, 26),
            Source("satimage", partial(real, "satimage", standardised), 36, 6),
            Source("usps", partial(real, "usps"), 256, 10),
            Source("a9a 15,000", partial(real, "a9a", most=15_000), 123, 2, sparse=True),
            Source("cod_rna 20,000", partial(real, "cod_rna", standardised, most=20_000), 8, 2),
            Source(
                "covtype 20,000",
                partial(datasets.one_against_rest, partial(real, "covtype", standardised, most=20_000), 1),
                54,
                2,
            ),
            Source(
                "fashion_mnist 10,000",
                partial(real, "fashion_mnist", datasets.bytes_to_unit, most=10_000),
                784,
                10,
            ),
        ]
        found = [
            source for source in stored if (plan.folder / f"{source.name.split()[0]}.npz").exists()
        ] + found
    return (*found, *(source for source in of_user(plan) if not source.sparse or source.features < 10_000))
