"""Draw the figures of docs/generative-vs-discriminative.md.

    python docs/figures/generative_vs_discriminative.py [folder] [--repeats N]

Everything is drawn from fixed seeds; without a folder the pictures beside this file are made anew.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from matplotlib.lines import Line2D
from scipy.special import entr, expit
from sklearn.exceptions import ConvergenceWarning

import separatrix as sx
from separatrix import plot
from separatrix.plot._canvas import DASHES, INK, MARKERS, PALETTE, class_style, new_figure

# Colours for models: none of the two that stand for the classes.
GREEN, PINK, VERMILION, SKY = PALETTE[2], PALETTE[3], PALETTE[5], PALETTE[4]
FEATURES = 10
SIZES = (20, 40, 80, 160, 320, 640, 1280, 2560)


def two_clouds(far=0):
    """Return two round clouds, and `far` points beyond the second one, on its own side of the boundary."""
    random = np.random.default_rng(3)
    y = np.repeat([0, 1], 60)
    X = random.normal(scale=0.75, size=(120, 2)) + np.where(y == 1, 1.5, -1.5)[:, None] * [1.0, 0.35]
    if far:
        X = np.vstack([X, random.normal(loc=(9.5, -7.0), scale=0.5, size=(far, 2))])
        y = np.append(y, np.ones(far, dtype=int))
    return X, y


def outlier_models():
    """Return the three linear models of the outlier figure, with name, colour, dash and width of the line."""
    return (
        ("least squares", sx.LeastSquaresClassifier(), PINK, DASHES[0], 4.5),
        ("Gaussian, shared covariance", sx.GaussianClassifier("shared"), INK, DASHES[2], 1.8),
        ("logistic, C = 1", sx.LogisticRegression(C=1.0, tol=1e-8), GREEN, DASHES[1], 2.4),
    )


def outliers():
    """Least squares, Gaussian and logistic boundary, without and with far-away points of the right class."""
    figure = new_figure(9.0, 4.1)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    handles = []
    for ax, far in zip(panels, (0, 30), strict=True):
        X, y = two_clouds(far)
        for label in (0, 1):
            style = class_style(label)
            ax.scatter(
                *X[y == label].T,
                s=20,
                c=style.colour,
                marker=style.marker,
                edgecolors=INK,
                linewidths=0.3,
                zorder=2,
            )
        handles = [
            Line2D(
                [],
                [],
                linestyle="none",
                marker=class_style(k).marker,
                color=class_style(k).colour,
                markeredgecolor=INK,
                markeredgewidth=0.3,
                label=f"class {k}",
            )
            for k in (0, 1)
        ]
        wrong = []
        heights = np.array([-10.0, 6.0])
        for name, model, colour, dash, width in outlier_models():
            model.fit(X, y)
            (across, up), offset = model.coef_[0], model.intercept_[0]
            ax.plot(
                -(offset + up * heights) / across,
                heights,
                color=colour,
                linestyle=dash,
                linewidth=width,
                zorder=3,
            )
            handles.append(Line2D([], [], color=colour, linestyle=dash, linewidth=width, label=name))
            wrong.append(f"{int((model.predict(X) != y).sum())}")
        title = "two clouds" if far == 0 else f"and {far} far-away points of class 1, all on the right side"
        ax.set_title(
            f"{title}\nwrong: {wrong[0]} least squares, {wrong[1]} Gaussian, {wrong[2]} logistic",
            fontsize="medium",
        )
        ax.set_xlim(-4.5, 11.0)
        ax.set_ylim(-9.0, 4.5)
        ax.set_xlabel("feature 0")
    panels[0].set_ylabel("feature 1")
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize="small")
    return figure


def separable_line():
    """Return two classes on a line with a gap between them."""
    random = np.random.default_rng(5)
    x = np.concatenate([random.uniform(-4.0, -0.6, 15), random.uniform(0.4, 4.0, 15)])
    return x[:, None], np.repeat([0, 1], 15)


def norms(C, most):
    """Return the last model, and ‖w‖ after 1, 2, … iterations, until the fit ends by itself."""
    X, y = separable_line()
    lengths = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for count in range(1, most + 1):
            model = sx.LogisticRegression(C=C, solver="newton", tol=1e-10, max_iter=count).fit(X, y)
            lengths.append(float(np.linalg.norm(model.coef_)))
            if model.certificate_.status != "max_iter":
                break
    return model, np.array(lengths)


def separable():
    """‖w‖ against iterations on separable data, and how σ turns into a step as the penalty vanishes."""
    X, y = separable_line()
    figure = new_figure(9.0, 3.9)
    left, right = figure.subplots(1, 2)

    runs = (
        (1e15, "penalty of next to nothing, C = 1e15", VERMILION, DASHES[1], None),
        (1.0, "penalised, C = 1", GREEN, DASHES[0], MARKERS[2]),
        (np.inf, "maximum likelihood, C = inf", INK, DASHES[0], MARKERS[0]),
    )
    for C, label, colour, dash, marker in runs:
        model, lengths = norms(C, 20)
        count = np.arange(1, len(lengths) + 1)
        left.plot(
            count,
            lengths,
            color=colour,
            linestyle=dash,
            linewidth=1.8,
            marker=marker,
            markersize=5,
            label=label,
        )
        if model.certificate_.status == "separable":
            left.annotate(
                "separation proven:\nthe fit ends",
                (count[-1], lengths[-1]),
                xytext=(1.2, 17.0),
                fontsize="small",
                color=INK,
                arrowprops={"arrowstyle": "->", "color": INK},
            )
        elif model.certificate_.status == "converged":
            left.annotate(
                "converged",
                (count[-1], lengths[-1]),
                xytext=(8, -4),
                textcoords="offset points",
                fontsize="small",
                color=colour,
            )
    left.set_xlim(0.3, 20.7)
    left.set_xlabel("Newton iterations")
    left.set_ylabel("‖w‖")
    left.legend(loc="upper left", frameon=False, fontsize="small")
    left.set_ylim(0.0, 40.0)
    left.set_xticks(range(2, 21, 2))

    grid = np.linspace(-4.2, 4.2, 1201)
    for index, (C, written) in enumerate(((0.1, "0.1"), (1.0, "1"), (100.0, "100"), (1e6, "10⁶"))):
        model = sx.LogisticRegression(C=C, tol=1e-8).fit(X, y)
        right.plot(
            grid,
            model.predict_proba(grid[:, None])[:, 1],
            color=(SKY, GREEN, PINK, VERMILION)[index],
            linestyle=DASHES[index],
            linewidth=1.8,
            label=f"C = {written}:  ‖w‖ = {np.linalg.norm(model.coef_):.3g}",
        )
    for label in (0, 1):
        style = class_style(label)
        right.scatter(
            X[y == label, 0],
            np.full((y == label).sum(), label),
            s=24,
            c=style.colour,
            marker=style.marker,
            edgecolors=INK,
            linewidths=0.3,
            zorder=3,
            clip_on=False,
        )
    right.set_xlim(grid[0], grid[-1])
    right.set_ylim(-0.04, 1.04)
    right.set_xlabel("x")
    right.set_ylabel("σ(w x + b) = P(class 1)")
    right.legend(loc="center left", bbox_to_anchor=(0.0, 0.68), frameon=False, fontsize="small")
    return figure


def gaussian_world(count, random, features=FEATURES):
    """Draw from two Gaussians with one covariance: the generative model holds. Return X, y, P(1 | x)."""
    distance = np.full(features, 3.0 / np.sqrt(features))
    mixing = np.eye(features) + 0.5 * np.tri(features, k=-1) / np.sqrt(features)
    y = (random.random(count) < 0.5).astype(int)
    white = random.normal(size=(count, features)) + (y - 0.5)[:, None] * distance
    return white @ mixing.T, y, expit(white @ distance)


def clustered_world(count, random, features=FEATURES):
    """Draw samples, a fifth of them far off, and labels by a logistic posterior. Return X, y, P(1 | x)."""
    weights = np.full(features, 0.5)
    weights[0] = 2.0
    far = np.zeros(features)
    far[:2] = 6.0, -6.0
    X = random.normal(size=(count, features)) + np.outer(random.random(count) < 0.2, far)
    chances = expit(X @ weights)
    return X, (random.random(count) < chances).astype(int), chances


WORLDS = (("the classes are Gaussian", gaussian_world), ("the classes are not Gaussian", clustered_world))


def boundaries():
    """Boundaries of three models where the Gaussian assumption holds and where it fails."""
    figure = new_figure(9.6, 6.0)
    panels = figure.subplots(2, 3, sharex="row", sharey="row")
    handles = []
    for row, (name, world) in zip(panels, WORLDS, strict=True):
        random = np.random.default_rng(1)
        X, y, _ = world(200, random, 2)
        fresh, _, chances = world(20_000, random, 2)
        best = np.maximum(chances, 1.0 - chances).mean()
        models = (
            ("Gaussian, shared", sx.GaussianClassifier("shared")),
            ("Gaussian, full", sx.GaussianClassifier("full")),
            ("logistic, C = 1", sx.LogisticRegression(C=1.0)),
        )
        for ax, (kind, model) in zip(row, models, strict=True):
            model.fit(X, y)
            plot.boundary(model, X, y, ax=ax)
            handles = [
                handle
                for handle in ax.get_legend().legend_handles
                if not handle.get_label().startswith("misclassified")
            ]
            ax.get_legend().remove()
            right = np.where(model.predict(fresh) == 1, chances, 1.0 - chances).mean()
            ax.set_title(f"{kind}: {right:.1%} right", fontsize="medium")
            ax.set_xlabel("")
            ax.set_ylabel("")
        row[0].set_ylabel(f"{name}\n(best possible: {best:.1%})")
    rings = Line2D(
        [], [], linestyle="none", marker="o", markersize=9, markerfacecolor="none", markeredgecolor=INK
    )
    figure.legend(
        handles=[*handles, rings],
        labels=["class 0", "class 1", "boundary", "misclassified"],
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    return figure


def curve_models():
    """Return the models of the learning curves, by name: each kind as it is, and held back."""
    return {
        "Gaussian, shared": sx.GaussianClassifier("shared"),
        "the same, shrunk": sx.GaussianClassifier("shared", shrinkage="ledoit-wolf"),
        "logistic, C = 1000": sx.LogisticRegression(C=1000.0),
        "logistic, C = 1": sx.LogisticRegression(C=1.0),
    }


def excess(model, X, chances):
    """Return log-loss and error above the least possible, in expectation over the labels of `X`."""
    logs = model.predict_log_proba(X)
    entropy = entr(chances) + entr(1.0 - chances)
    loss = -(1.0 - chances) * logs[:, 0] - chances * logs[:, 1]
    wrong = np.where(logs[:, 1] >= logs[:, 0], 1.0 - chances, chances)
    return float((loss - entropy).mean()), float((wrong - np.minimum(chances, 1.0 - chances)).mean())


def curves(world, repeats, sizes=SIZES):
    """Return for each model, by name, the medians of excess log-loss and error for each size."""
    random = np.random.default_rng(11)
    fresh, _, chances = world(10_000, random)
    found = {name: [] for name in curve_models()}
    for size in sizes:
        values = {name: [] for name in found}
        for _ in range(repeats):
            X, y, _ = world(size, random)
            for name, model in curve_models().items():
                values[name].append(excess(model.fit(X, y), fresh, chances))
        for name, pairs in values.items():
            found[name].append(np.median(pairs, axis=0))
    return {name: np.array(pairs) for name, pairs in found.items()}


def learning_curves(repeats):
    """Excess of log-loss and error against the number of training samples."""
    figure = new_figure(9.0, 6.2)
    panels = figure.subplots(2, 2, sharex=True, sharey="row")
    looks = (
        (PALETTE[0], DASHES[0], MARKERS[0]),
        (SKY, DASHES[1], MARKERS[3]),
        (VERMILION, DASHES[0], MARKERS[1]),
        (PINK, DASHES[1], MARKERS[2]),
    )
    handles = []
    for column, (name, world) in zip(panels.T, WORLDS, strict=True):
        found = curves(world, repeats)
        for which, ax in enumerate(column):
            handles = [
                ax.plot(
                    SIZES,
                    pairs[:, which],
                    color=colour,
                    linestyle=dash,
                    marker=marker,
                    markersize=5,
                    linewidth=1.7,
                    label=label,
                )[0]
                for (label, pairs), (colour, dash, marker) in zip(found.items(), looks, strict=True)
            ]
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xticks(SIZES, [str(size) for size in SIZES], fontsize="small")
            ax.tick_params(axis="x", which="minor", bottom=False)
            ax.grid(axis="y", color="#dddddd", linewidth=0.6)
        column[0].set_title(name, fontsize="medium")
        column[1].set_xlabel("training samples")
    panels[0, 0].set_ylabel("log-loss above the least possible")
    panels[1, 0].set_ylabel("error above the least possible")
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    return figure


def main():
    """Write all figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent)
    parser.add_argument("--repeats", type=int, default=40, help="training sets for each point of a curve")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    drawings = {
        "outliers": outliers,
        "separable": separable,
        "boundaries": boundaries,
        "learning-curves": lambda: learning_curves(options.repeats),
    }
    for name, draw in drawings.items():
        # Without the name of the library's version in it, the file changes only with the picture.
        draw().savefig(options.folder / f"{name}.png", dpi=120, metadata={"Software": None})


if __name__ == "__main__":
    main()
