"""A kernel's view of the samples."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from separatrix.plot._canvas import INK, class_names, class_style, final_step
from separatrix.plot._display import Display
from separatrix.plot._points import check_labels, choose_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More rows than this would share pixels.
_MOST_ROWS = 800
# Share of the entries that a cut scale still covers.
_USUAL = 0.98
_LONG_NUMBER = re.compile(r"\d+\.\d{4,}(e[-+]?\d+)?")


@dataclass(eq=False)
class KernelMatrixDisplay(Display):
    """``K_ij = k(x_i, x_j)`` with the samples ordered by class: diagonal blocks are classes that cohere.

    Made by :meth:`from_estimator` or :meth:`from_kernel`; `kernel_matrix` is the short form.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        Kernel values of the samples drawn, in the order drawn.
    rows : ndarray of int of shape (m,)
        Which samples these are.
    labels : ndarray of shape (m,)
        Their classes.
    title : str
        The kernel.
    total : int
        Number of samples, of which large sets are drawn in part.

    Examples
    --------
    >>> from separatrix.plot import KernelMatrixDisplay
    >>> from separatrix.kernels import Linear
    >>> display = KernelMatrixDisplay.from_kernel(Linear(), [[2.0], [1.0], [3.0]], ["b", "a", "b"])
    >>> display.labels.tolist()
    ['a', 'b', 'b']
    """

    matrix: NDArray[Any]
    rows: NDArray[np.intp]
    labels: NDArray[Any]
    title: str = ""
    total: int = 0

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: "Axes | None" = None
    ) -> "KernelMatrixDisplay":
        """Draw the kernel of an estimator, fitted or not; see `kernel_matrix` for the parameters.

        Returns
        -------
        KernelMatrixDisplay
        """
        final = final_step(estimator)
        if not hasattr(final, "kernel"):
            raise ValueError(
                f"{type(final).__name__} has no kernel; give one of separatrix.kernels instead of it"
            )
        steps = getattr(estimator, "steps", None)
        features = estimator[:-1].transform(X) if isinstance(steps, list) and len(steps) > 1 else X
        known = ("gamma", "degree", "coef0")
        settings = {name: getattr(final, name) for name in known if hasattr(final, name)}
        # A fitted model knows the number behind gamma="scale", and ours the kernel itself.
        number = getattr(final, "_gamma", None)
        if isinstance(number, float) and number > 0:
            settings["gamma"] = number
        given = isinstance(final.kernel, str) and final.kernel == "precomputed"
        kernel = final.kernel if given else getattr(final, "kernel_", final.kernel)
        return cls.from_kernel(kernel, features, y, ax=ax, **settings)

    @classmethod
    def from_kernel(
        cls, kernel: Any, X: Any, y: Any, *, ax: "Axes | None" = None, **settings: Any
    ) -> "KernelMatrixDisplay":
        """Draw a kernel.

        Parameters
        ----------
        kernel : str, Kernel, callable or "precomputed"
            As estimators take it; "precomputed": `X` is the kernel matrix.
        X : array or sparse matrix of shape (n, d)
            Samples.
        y : array of shape (n,)
            Their classes.
        ax : matplotlib Axes, optional
            Where to draw; a new figure without it.
        **settings
            ``gamma``, ``degree`` and ``coef0`` for a kernel given by its name.

        Returns
        -------
        KernelMatrixDisplay
        """
        from separatrix.kernels import resolve_kernel

        if sparse.issparse(X):
            X = X.tocsr()
        elif hasattr(X, "columns"):
            X = np.asarray(X, dtype=np.float64)
        elif isinstance(X, list):
            X = np.asarray(X) if not isinstance(X[0], str) else np.asarray(X, dtype=object)
        total = X.shape[0]
        truth = check_labels(y, total)
        if total == 0:
            raise ValueError("X has no samples to draw")
        rows = choose_points(truth, total, _MOST_ROWS)
        if isinstance(kernel, str) and kernel == "precomputed":
            if X.shape != (total, total):
                raise ValueError(f"a precomputed kernel matrix must be square, not of shape {X.shape}")
            values, title = np.asarray(X)[np.ix_(rows, rows)], "precomputed kernel"
        else:
            found = resolve_kernel(kernel, X=X, **settings)
            values, title = np.asarray(found(X[rows])), str(found)
        order = _order(values, truth[rows])
        return cls(values[np.ix_(order, order)], rows[order], truth[rows[order]], title, total).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "KernelMatrixDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure without it.

        Returns
        -------
        KernelMatrixDisplay
        """
        names, beside = class_names(np.unique(self.labels))
        ax = self._axes(ax, 6.0 + beside, 4.7, square=True)
        values, count = self.matrix, len(self.rows)
        # A kernel that is never negative goes from light to dark; one with a sign has white at 0.
        signed = bool(values.min() < 0)
        most = float(np.abs(values).max()) or 1.0
        usual = float(np.quantile(np.abs(values), _USUAL))
        beyond = 0 < usual < most / 3  # few samples would take all the contrast: cut the scale
        if beyond:
            most = usual
        image = ax.imshow(
            values,
            cmap="RdBu" if signed else "viridis",
            interpolation="nearest",
            vmin=-most if signed else min(0.0, float(values.min())),
            vmax=most,
            extent=(0, count, count, 0),
        )
        _, starts, sizes = np.unique(self.labels, return_index=True, return_counts=True)
        for edge in starts[1:]:
            for draw in (ax.axhline, ax.axvline):
                draw(edge, color="white", linewidth=2.2)
                draw(edge, color=INK, linewidth=0.9)
        ax.set_xticks([])
        shown = sizes >= count / 30  # a name needs the height of a line
        ax.set_yticks((starts + sizes / 2)[shown], np.array(names)[shown], fontsize="small")
        ax.tick_params(axis="y", length=0, pad=9)
        from matplotlib.patches import Rectangle

        for index, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            ax.add_patch(
                Rectangle(
                    (-0.022 * count, start),
                    0.016 * count,
                    size,
                    clip_on=False,
                    linewidth=0,
                    facecolor=class_style(index).colour,
                )
            )
        self.figure_.colorbar(
            image,
            ax=ax,
            label="k(x, x')",
            shrink=0.9,
            extend=("both" if signed else "max") if beyond else "neither",
        )
        part = f"{count:,} of {self.total:,}" if count < self.total else f"{count:,}"
        ax.set_xlabel(f"{part} samples, ordered by class")
        ax.set_title(_LONG_NUMBER.sub(lambda found: f"{float(found[0]):.4g}", self.title), fontsize="small")
        return self


def _order(values: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return classes one after the other, each from its most typical sample to its least."""
    typical = np.empty(len(labels))
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        typical[own] = values[np.ix_(own, own)].mean(axis=1)
    numbers = np.unique(labels, return_inverse=True)[1]
    return np.lexsort((-typical, numbers))


def kernel_matrix(kernel: Any, X: Any, y: Any, *, ax: "Axes | None" = None, **settings: Any) -> "Axes":
    """Draw the kernel matrix of samples ordered by class.

    Bright blocks on the diagonal are classes that cohere; a matrix without contrast tells that the kernel
    cannot tell the classes apart (its ``gamma`` is too small), one with nothing but its diagonal that all
    samples are strangers to it (too large).

    Parameters
    ----------
    kernel : estimator, Kernel, str or callable
        A kernel of ``separatrix.kernels``, its name, a function, "precomputed", or an estimator that has one.
    X : array or sparse matrix of shape (n, d)
        Samples; large sets are drawn in part.
    y : array of shape (n,)
        Their classes.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.
    **settings
        ``gamma``, ``degree`` and ``coef0`` for a kernel given by its name.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from separatrix import plot
    >>> ax = plot.kernel_matrix("rbf", [[0.0], [1.0], [3.0]], ["a", "a", "b"], gamma=1.0)
    >>> ax.get_title()
    'RBF(gamma=1.0)'
    """
    if hasattr(kernel, "get_params") and hasattr(kernel, "fit"):
        return KernelMatrixDisplay.from_estimator(kernel, X, y, ax=ax, **settings).ax_
    return KernelMatrixDisplay.from_kernel(kernel, X, y, ax=ax, **settings).ax_
