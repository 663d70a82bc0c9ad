"""Draw the pictures of docs/plots.md, docs/traces.md, docs/quickstart.md and docs/index.md.

    python docs/figures/gallery.py [folder]

Everything comes from fixed seeds; without a folder the pictures in docs/figures/gallery are made anew.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import separatrix as sx
from separatrix import plot
from separatrix.traces import trace

IRIS = load_iris(as_frame=True)
SPECIES = IRIS.target_names[IRIS.target]
SEPALS, PETALS = IRIS.data.iloc[:, :2], IRIS.data.iloc[:, 2:]


def boundary():
    """Regions of three classes, with contours."""
    model = sx.LogisticRegression().fit(PETALS, SPECIES)
    return plot.boundary(model, PETALS, SPECIES, contours=True)


def quickstart():
    """Boundary in thirty dimensions, seen from the side."""
    data = load_breast_cancer(as_frame=True)
    X, new, y, truth = train_test_split(data.data, data.target_names[data.target], random_state=0)
    model = make_pipeline(StandardScaler(), sx.LogisticRegression(C=0.1)).fit(X, y)
    return plot.boundary(model, new, truth)


def margin():
    """Linear margin with slacks."""
    random = np.random.default_rng(0)
    y = np.where(np.arange(80) % 2, "yes", "no")
    X = random.normal(size=(80, 2)) + np.where(np.arange(80) % 2, 1.4, -1.4)[:, None]
    return plot.margin(SVC(kernel="linear", C=1.0).fit(X, y), X, y)


def tube():
    """Regression in its tube."""
    random = np.random.default_rng(0)
    x = np.sort(random.uniform(0, 6, 60))
    y = np.sin(x) + 0.2 * random.normal(size=60)
    return plot.tube(SVR(epsilon=0.2, C=10.0).fit(x[:, None], y), x[:, None], y, names=["time"])


def convergence():
    """Objective and gap."""
    X, y = load_breast_cancer(return_X_y=True)
    return plot.convergence(sx.LogisticRegression(solver="lbfgs").fit(StandardScaler().fit_transform(X), y))


def confusion():
    """Right and wrong, counted."""
    return plot.confusion(sx.LogisticRegression().fit(SEPALS, SPECIES), SEPALS, SPECIES)


def roc():
    """One curve per class."""
    return plot.roc(sx.LogisticRegression().fit(SEPALS, SPECIES), SEPALS, SPECIES)


def precision_recall():
    """One curve per class."""
    return plot.precision_recall(sx.LogisticRegression().fit(SEPALS, SPECIES), SEPALS, SPECIES)


def calibration():
    """Probabilities that mean what they say."""
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 3))
    y = np.where(X.sum(axis=1) + random.logistic(size=3000) > 0, "yes", "no")
    return plot.calibration(sx.LogisticRegression().fit(X, y), X, y)


def kernel_matrix():
    """Three classes as a kernel sees them."""
    return plot.kernel_matrix("rbf", IRIS.data, SPECIES, gamma=0.5)


def codings():
    """Three codings side by side."""
    model = make_pipeline(StandardScaler(), sx.Perceptron(margin=1.0, tol=None, max_iter=100))
    return plot.codings(model, SEPALS, SPECIES)[0]


def perceptron(path):
    """Write a moving picture of a perceptron at work."""
    X, y = make_moons(60, noise=0.1, random_state=4)
    X[y == 1] += [0.3, -0.75]
    model = sx.Perceptron(shuffle=False, tol=None, max_iter=60)
    plot.animate(trace(model, X, np.where(y == 1, "lower", "upper")), path, max_frames=25, fps=2)


PICTURES = (boundary, quickstart, margin, tube, convergence, confusion, roc, precision_recall, calibration,
            kernel_matrix, codings)


def main():
    """Write all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "gallery")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for draw in PICTURES:
            path = folder / f"{draw.__name__.replace('_', '-')}.png"
            # Without the name of the library's version in it, the file changes only with the picture.
            draw().figure.savefig(path, dpi=100, metadata={"Software": None})
        perceptron(folder / "perceptron.gif")


if __name__ == "__main__":
    main()
