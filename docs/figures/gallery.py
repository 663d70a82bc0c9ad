"""Draw the pictures that the pages in docs/ show from figures/gallery.

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

import separatrix as sx
from separatrix import plot
from separatrix.plot._canvas import DASHES, PALETTE, new_figure, outside_legend
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
    return plot.margin(sx.SVC(kernel="linear", C=1.0).fit(X, y), X, y)


def tube():
    """Regression in its tube."""
    random = np.random.default_rng(0)
    x = np.sort(random.uniform(0, 6, 60))
    y = np.sin(x) + 0.2 * random.normal(size=60)
    return plot.tube(sx.SVR(epsilon=0.2, C=10.0).fit(x[:, None], y), x[:, None], y, names=["time"])


def convergence():
    """Objective and gap."""
    X, y = load_breast_cancer(return_X_y=True)
    return plot.convergence(sx.LogisticRegression(solver="lbfgs").fit(StandardScaler().fit_transform(X), y))


def c_path():
    """Weights and margin width of a linear support vector machine."""
    data = load_breast_cancer(as_frame=True)
    X = StandardScaler().set_output(transform="pandas").fit_transform(data.data.iloc[:, :10])
    return plot.path(sx.LinearSVC.path(X, data.target, np.logspace(-4, 2, 25)))


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


def side_by_side(models, X, y, **settings):
    """Draw several models of the same data in one row, with one legend."""
    figure = new_figure(3.3 * len(models), 3.7)
    panels = figure.subplots(1, len(models), sharex=True, sharey=True)
    legend = {}
    for ax, (title, model) in zip(panels, models.items(), strict=True):
        plot.boundary(model.fit(X, y), X, y, ax=ax, **settings)
        for handle in ax.get_legend().legend_handles:
            label = handle.get_label()
            legend["misclassified" if label.startswith("misclassified") else label] = handle
        ax.get_legend().remove()
        wrong = int(np.sum(model.predict(X) != y))
        ax.set_title(f"{title}\n{wrong} wrong" if wrong else f"{title}\nnone wrong", fontsize="medium")
        ax.set_ylabel(ax.get_ylabel() if ax is panels[0] else "")
    figure.legend(
        handles=list(legend.values()),
        labels=list(legend),
        loc="outside lower center",
        ncols=len(legend),
        frameon=False,
        fontsize="small",
    )
    return panels[0]


def perceptron_margin():
    """Boundaries of perceptrons with a growing margin."""
    random = np.random.default_rng(2)
    y = np.repeat(["low", "high"], 25)
    X = random.normal(scale=0.6, size=(50, 2)) + np.where(y == "high", 1.6, -1.6)[:, None] * [1.0, 0.6]
    models = {f"margin = {m}": sx.Perceptron(margin=m, shuffle=False, tol=None) for m in (0, 10, 100)}
    return side_by_side(models, X, y)


def gaussian_forms():
    """Boundaries of the four forms of covariance."""
    forms = ("shared", "full", "diagonal", "spherical")
    return side_by_side({form: sx.GaussianClassifier(form) for form in forms}, SEPALS, SPECIES)


def logistic_penalty():
    """Lines of equal score for three strengths of the penalty."""
    levels = np.log([1 / 99, 1 / 9, 1, 9, 99])  # probabilities of 1, 10, 50, 90, 99 %
    models = {f"C = {C:g}": sx.LogisticRegression(C=C) for C in (0.1, 1.0, 100.0)}
    return side_by_side(models, PETALS[50:], SPECIES[50:], contours=levels.round(1))


def sgd_steps():
    """Distance to the minimum, pass by pass, for several step rules."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    alpha, passes = 1e-3, 60
    exact = sx.LogisticRegression(C=1 / (alpha * len(y)), tol=1e-12).fit(X, y)
    least = exact.certificate_.primal * alpha

    def objective(model):
        f = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
        return np.logaddexp(0.0, -f).mean() + 0.5 * alpha * float(np.sum(model.coef_**2))

    rules = {
        "optimal": {},
        "optimal, averaged": {"average": True},
        "pegasos": {"learning_rate": "pegasos"},
        "constant, 0.01": {"learning_rate": "constant", "eta0": 0.01},
        "invscaling, 0.1": {"learning_rate": "invscaling", "eta0": 0.1},
    }
    ax = new_figure(6.8, 3.8).subplots()
    for index, (name, rule) in enumerate(rules.items()):
        model = sx.SGDClassifier("log_loss", alpha=alpha, random_state=0, **rule)
        heights = []
        for _ in range(passes):
            model.partial_fit(X, y, classes=[0, 1])
            heights.append((objective(model) - least) / least)
        ax.plot(
            range(1, passes + 1),
            heights,
            color=PALETTE[index],
            linestyle=DASHES[index],
            linewidth=1.7,
            label=name,
        )
    ax.set_yscale("log")
    ax.set_xlabel("pass")
    ax.set_ylabel("distance to the minimum, relative")
    outside_legend(ax, list(ax.get_lines()))
    return ax


def losses():
    """Draw the table of losses, and their slopes."""
    return plot.losses()


def neighbors():
    """Regions of one, nine and forty neighbours."""
    X, y = make_moons(200, noise=0.3, random_state=0)
    models = {f"k = {k}": sx.KNeighborsClassifier(k) for k in (1, 9, 40)}
    return side_by_side(models, X, np.where(y == 1, "lower", "upper"))


def hard_margin():
    """Draw the widest margin between two classes."""
    X, y = PETALS[:100], SPECIES[:100]
    return plot.margin(sx.SVC(kernel="linear", C=np.inf).fit(X, y), X, y)


def svm_width():
    """Draw a kernel machine with three widths of its kernel."""
    X, y = make_moons(120, noise=0.25, random_state=1)
    models = {f"gamma = {gamma:g}": sx.SVC(gamma=gamma, C=10.0) for gamma in (0.1, 1.0, 30.0)}
    return side_by_side(models, X, np.where(y == 1, "lower", "upper"))


def perceptron(path):
    """Write a moving picture of a perceptron at work."""
    X, y = make_moons(60, noise=0.1, random_state=4)
    X[y == 1] += [0.3, -0.75]
    model = sx.Perceptron(shuffle=False, tol=None, max_iter=60)
    plot.animate(trace(model, X, np.where(y == 1, "lower", "upper")), path, max_frames=25, fps=2)


PICTURES = (
    boundary,
    quickstart,
    margin,
    tube,
    c_path,
    convergence,
    confusion,
    roc,
    precision_recall,
    calibration,
    kernel_matrix,
    codings,
    perceptron_margin,
    gaussian_forms,
    logistic_penalty,
    sgd_steps,
    losses,
    neighbors,
    hard_margin,
    svm_width,
)


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
