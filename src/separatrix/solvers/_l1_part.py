"""One problem of the working-set solver: a binary column, or all columns of a softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.view import Array, DataView
from separatrix.problem import Problem
from separatrix.solvers._hinge_terms import SquaredHingeTerms
from separatrix.solvers._l1_interior import affordable, chosen_rows, l1_programme
from separatrix.solvers._logit import BinaryTerms, SoftmaxTerms, Terms, best_intercept
from separatrix.solvers._loop import Control
from separatrix.solvers._model_columns import ColumnModel, Packed
from separatrix.solvers._model_gram import ROUNDS, Chosen, GramModel, violation
from separatrix.solvers._support import newton_on_support

#: Features of the first working set; later ones have room for twice the features with a weight.
_FIRST = 256
#: Most features, and most weights of a softmax, for which a Hessian is formed.
_GRAM_FEATURES, _WHOLE_WEIGHTS = 1200, 800
#: Multiply-adds for which a softmax's whole Hessian is formed at each step; for how many where its blocks
#: alone, one of each class, did not do in so many steps: of features that are alike they leave out much.
_WHOLE_WORK, _MOST_WORK, _BLOCK_STEPS = 1.5e9, 2e11, 8
#: Nanoseconds per stored value that forming a Hessian may take, about 50 sweeps of coordinate descent.
#: (A product of dense rows takes about 0.04 ns, one of sparse rows 3, and their lengths vary.)
_SWEEP_COST = 300.0
#: Steps, and bad ones among them, after which a squared hinge loss is solved by interior points; how short a
#: bad step is, or how many rounds it took: each needs twice as many factors as the one before.
_MANY, _BAD, _SHORT, _ROUNDS = 25, 2, 0.1, 7
#: Relative gap to reach by these, and values of all features up to which they need no working set.
_INTERIOR_TOL, _ALL_VALUES = 1e-10, 1 << 22
#: How far below the penalty that keeps all weights at 0 a penalty is small: then weaker and weaker ones lead
#: there, each a tenth of the last; relative gap, or steps, that are enough for one on the way.
_SMALL, _FIRST_STAGE, _WEAKER, _ON_THE_WAY, _STEPS = 1e-4, 1e-2, 0.1, 1e-2, 12
#: Steps without progress after which rounding is blamed; steps that must bring the gap to this share of what
#: it was: others would go on for hours.
_PATIENCE, _CRAWLING, _SLOWEST = 5, 50, 0.9
#: A class without samples has a score this far below all others: its share is below rounding.
_ABSENT = 60.0


def parts_of(problem: Problem, l1: float, l2: float, coef: Array, intercept: Array) -> list[Part]:
    """Return the independent problems, each with its columns of the starting point."""
    n = problem.view.shape[0]
    s = np.ones(n) if problem.weights is None else np.asarray(problem.weights, dtype=np.float64)
    shared = _Data(problem.view, s, problem.fit_intercept)
    if not problem.joint:
        kind = SquaredHingeTerms if problem.loss.name == "squared_hinge" else BinaryTerms
        codes = problem.codes[problem.classes]
        columns = [(np.array([k]), kind(codes[:, k], s)) for k in range(problem.columns)]
        return [
            Part(shared, terms, own, l1, l2, coef, intercept, problem.fit_intercept) for own, terms in columns
        ]
    own = np.arange(problem.columns)
    classes = problem.classes
    if problem.fit_intercept:
        # The intercept of a class without samples would fall for ever: the others are fitted alone.
        present = np.bincount(classes, weights=s, minlength=problem.columns) > 0
        if not present.all() and present.any():
            own = np.flatnonzero(present)
            classes = np.maximum(np.cumsum(present) - 1, 0)[classes]
    terms = SoftmaxTerms(classes, int(own.shape[0]), s)
    return [Part(shared, terms, own, l1, l2, coef, intercept, problem.fit_intercept)]


class _Data:
    """What all parts share: the view, packed columns, means and counts, made when first needed."""

    def __init__(self, view: DataView, s: Array, fit_intercept: bool) -> None:
        self.view, self.s, self.fit_intercept = view, s, fit_intercept
        self.packed = Packed(view, self.centre)
        self._centre: Array | None = None
        self._counts: Array | None = None
        self._lengths: Array | None = None

    def centre(self) -> Array:
        """Return what an intercept lets us subtract from each feature: its mean, in the data's precision."""
        if self._centre is None and not self.fit_intercept:
            self._centre = np.zeros(self.view.shape[1])
        elif self._centre is None:
            total = max(float(self.s.sum()), np.finfo(np.float64).tiny)
            mean = self.view.transposed(self.s[:, None])[:, 0] / total
            self._centre = mean.astype(self.view.dtype).astype(np.float64)
        return self._centre

    def lengths(self) -> Array:
        """Return the length of each feature's column, from which the fall that it promises follows."""
        if self._lengths is None:
            squares = self.view.map_sum(lambda rows, block: self._squares(rows, block))
            self._lengths = np.sqrt(np.maximum(np.asarray(squares), np.finfo(np.float64).tiny))
        return self._lengths

    def _squares(self, rows: slice, block: Any) -> Array:
        if hasattr(block, "tocsr"):
            counts = np.diff(block.indptr)
            squares = np.repeat(self.s[rows], counts) * np.square(block.data, dtype=np.float64)
            return np.bincount(block.indices, weights=squares, minlength=self.view.shape[1])
        return np.asarray(self.s[rows] @ np.square(block, dtype=np.float64))

    def stored(self, features: Array) -> float:
        """Return how many stored values the features have; of dense data, all."""
        if self._counts is None:
            d = self.view.shape[1]
            counts = self.view.map_sum(
                lambda rows, block: (
                    np.bincount(block.indices, minlength=d)
                    if hasattr(block, "tocsr")
                    else np.full(d, rows.stop - rows.start)
                )
            )
            self._counts = np.asarray(counts)
        return float(self._counts[features].sum())


class Part:
    """State and step of one problem; ``W`` has shape (columns, n_features)."""

    def __init__(
        self,
        data: _Data,
        terms: Terms,
        own: Array,
        l1: float,
        l2: float,
        coef: Array,
        intercept: Array,
        fit_intercept: bool,
    ) -> None:
        self.data, self.view, self.terms, self.own = data, data.view, terms, own
        self.l1, self.l2, self.fit_intercept = l1, l2, fit_intercept
        #: The penalty of the problem, where another one is on the way; steps with that.
        self.goal, self.steps = (l1, l2), 0
        self.W, self.b = coef[own].copy(), intercept[own].copy()
        self.absent = np.setdiff1d(np.arange(coef.shape[0]), own) if terms.joint else own[:0]
        self.primal = self.violation = 0.0
        self.bound = -np.inf
        self.working = 0
        self.least_gap, self.idle, self.caution = np.inf, 0, 0.0
        self.mark, self.since = np.inf, 0
        self.model: GramModel | None = None
        self.formed_at, self.fell = 0.0, 1.0
        self.taken = self.bad = 0
        self._zero_loss = 0.0
        self._one_sided = False

    def start(self) -> None:
        """Begin at the given weights, or without weights where that is better."""
        terms, n = self.terms, self.view.shape[0]
        b = np.zeros(self.own.shape[0])
        if self.fit_intercept:
            if isinstance(terms, BinaryTerms):
                side = float((terms.s * terms.y).sum())
                if abs(side) == float(terms.s.sum()):
                    self._one_sided = True
                    b = np.array([np.sign(side) * _ABSENT])
            if not self._one_sided:
                b = terms.null_intercept()
        null = np.broadcast_to(b, (n, b.shape[0]))
        self._zero_loss = terms.value(np.zeros((n, b.shape[0])))
        F = np.array(null)
        if self.W.any() and not self._one_sided:
            given = self.view.scores(self.W, self.b).astype(np.float64)
            if terms.value(given) + self._penalty(self.W) <= terms.value(null):
                self.F = given
                return
        self.W[:], self.b[:] = 0.0, b
        self.F = F

    def _penalty(self, W: Array) -> float:
        squares = 0.5 * self.l2 * float(np.square(W).sum()) if self.l2 else 0.0
        return self.l1 * float(np.abs(W).sum()) + squares

    def glance(self) -> None:
        """Judge a start without weights, and without reading the data: no objective is less than 0."""
        self.terms.set_scores(self.F)
        self.primal, self.bound, self.violation = self.terms.loss, max(self.bound, 0.0), np.nan

    def evaluate(self) -> None:
        """Set the best intercept, then compute objective, bound and violations."""
        if self.fit_intercept and not self._one_sided:
            best_intercept(self.terms, self.F, self.b)
        before = self.primal
        self._judge()
        # Near the end rounding hides the objective's fall, not the gap's.
        self.fell = (before - self.primal) / self.scale() if before > 0 else 1.0
        progress = self.gap() < 0.9 * self.least_gap or self.primal < before - 1e-13 * abs(before)
        self.least_gap = min(self.least_gap, self.gap())
        self.idle = 0 if progress else self.idle + 1
        self.since = 0 if self.gap() < _SLOWEST * self.mark else self.since + 1
        self.mark = self.gap() if self.since == 0 else self.mark
        if self.on_the_way() and (self.relative_gap() <= _ON_THE_WAY or self.idle or self.steps >= _STEPS):
            self._penalise(_WEAKER * self.l1)

    def begin(self) -> None:
        """Evaluate the start; without weights, begin with a larger penalty than a very small one.

        Far from 0 a model of the loss without a penalty to speak of gives weight to all features, and it
        takes long to find out which of them matter.
        """
        self.evaluate()
        if self.W.any() or self._one_sided or self.view.shape[1] <= _GRAM_FEATURES:
            return  # all of few features are in the model at once
        largest = float(np.abs(self.G).max(initial=0.0))
        if 0 < self.l1 < _SMALL * largest:
            self._penalise(_FIRST_STAGE * largest)

    def on_the_way(self) -> bool:
        """Return whether the penalty at hand is larger than that of the problem."""
        return self.l1 > self.goal[0]

    def _penalise(self, l1: float) -> None:
        """Go on with another penalty, no smaller than that of the problem."""
        factor = max(1.0, l1 / self.goal[0])
        self.l1, self.l2 = factor * self.goal[0], factor * self.goal[1]
        self.bound, self.least_gap, self.mark = -np.inf, np.inf, np.inf
        self.idle = self.steps = self.since = self.taken = self.bad = 0
        self._judge()

    def _judge(self) -> None:
        terms = self.terms
        terms.set_scores(self.F)
        self.primal = terms.loss + self._penalty(self.W)
        if self._one_sided:
            self.bound, self.violation = 0.0, 0.0
            return
        if self.fit_intercept:
            terms.balance()
        V = self.view.transposed(terms.theta)
        self.G = -V.T
        self.violations = violation(self.W, self.G, self.l1, self.l2)
        self.violation = float(self.violations.max(initial=0.0))
        self._raise_bound(V)

    def _raise_bound(self, V: Array) -> None:
        """Take the bound of the dual variables that are set, if it is better; ``V`` is ``Xᵀθ``."""
        terms = self.terms
        largest = float(np.abs(V).max(initial=0.0))
        feasible = min(1.0, self.l1 / largest) if largest > 0 else 1.0
        bound = terms.dual(feasible)
        if self.l2 > 0 and feasible < 1:
            over = np.maximum(np.abs(V) - self.l1, 0.0)
            bound = max(bound, terms.dual(1.0) - float(np.square(over).sum()) / (2 * self.l2))
        self.bound = max(self.bound, bound)

    def hopeless(self) -> bool:
        """Return whether rounding hides all progress, or so many steps have brought so little of it."""
        return self.idle >= _PATIENCE or self.crawling()

    def crawling(self) -> bool:
        """Return whether many steps have brought little progress."""
        return self.since >= _CRAWLING

    def gap(self) -> float:
        """Return the distance between the objective and its proven lower bound."""
        return max(self.primal - self.bound, 0.0)

    def scale(self) -> float:
        """Return what the gap is measured against: the objective, but no less than rounding can see."""
        return max(abs(self.primal), 1e-8 * self._zero_loss, np.finfo(np.float64).tiny)

    def relative_gap(self) -> float:
        """Return the gap, relative to the objective."""
        return self.gap() / self.scale()

    def reached(self) -> tuple[float, float, float]:
        """Return objective, lower bound and scale of the problem itself, also on the way."""
        if not self.on_the_way():
            return self.primal, self.bound, self.scale()
        factor = self.goal[0] / self.l1
        primal = self.terms.loss + factor * (self.primal - self.terms.loss)
        return primal, 0.0, max(abs(primal), 1e-8 * self._zero_loss, np.finfo(np.float64).tiny)

    def step(self, control: Control) -> None:
        """Take one proximal Newton step on a working set, or go to its optimum where these crawl."""
        if self._crawls() and self._by_interior_points(control):
            return
        features = self._choose()
        kind = self._kind(features)
        model = self._reusable(features, kind)
        if model is not None:
            features = model.X.features
        self.working, self.steps = int(features.shape[0]), self.steps + 1
        # A roughly solved model is enough far away; near the end a good one buys quick convergence.
        eta = 1e-12 if self.idle else 1e-2 * min(1.0, max(1e-8, self.relative_gap()))
        W, G = self.W[:, features], self.G[:, features]
        Gb = -self.terms.theta.sum(axis=0)
        curvature = self.terms.curvature(self.caution)
        if kind == "columns":
            packed = ColumnModel(self.data.packed, curvature, features, self.fit_intercept)
            D, db, Z = packed.minimise(W, G, Gb, self.l1, self.l2, eta, control)
        else:
            if model is None:
                self.model = None  # its memory is free before the next one needs as much
                centre = self.data.centre()
                model = GramModel(
                    self.view, curvature, features, centre, self.fit_intercept, kind, self.fell > 0.01
                )
                self.model, self.formed_at = (model, self.primal) if kind == "blocks" else (None, 0.0)
            shift = model.X.centre.astype(np.float64)
            most = _ROUNDS if self._has_programme() else ROUNDS
            G0 = G - np.outer(Gb, shift)
            D, db = model.minimise(W, G0, Gb, self.l1, self.l2, 1e-2 * eta, control, most)
            db = db - D @ shift
            Z = model.X.scores(D, db)
        t = self.search(features, D, db, Z, float((G * D).sum() + Gb @ db))
        self._learn(t)
        slow = model is not None and model.rounds >= _ROUNDS
        self.taken, self.bad = self.taken + 1, self.bad + (slow or t < _SHORT)
        self._shift_classes(features)
        if t < 0.2:
            self.model = None
        if model is not None and not model.whole and not control.expired():
            newton_on_support(self, model, features, control)
            self._shift_classes(features)

    def _crawls(self) -> bool:
        """Return whether steps change the side of so many samples that they are short again and again."""
        return self._has_programme() and (self.taken >= _MANY or self.bad >= _BAD)

    def _has_programme(self) -> bool:
        """Return whether interior points can solve the problem."""
        return isinstance(self.terms, SquaredHingeTerms) and self.l1 > 0

    def _by_interior_points(self, control: Control) -> bool:
        """Go to the optimum of all features, or of a working set of many; return whether that was tried."""
        assert isinstance(self.terms, SquaredHingeTerms)
        terms, (n, d) = self.terms, self.view.shape
        features = np.arange(d) if n * d <= _ALL_VALUES and affordable(n, d) else self._choose()
        if not affordable(n, features.shape[0]):
            return False
        self.taken = self.bad = 0
        rows = np.flatnonzero(terms.s[:, 0] > 0)
        X, y, s = chosen_rows(self.view, rows, features), terms.y[rows, 0], terms.s[rows, 0]
        penalties = np.full(features.shape[0], self.l1)
        found = l1_programme(X, y, s, penalties, self.l2, self.fit_intercept, _INTERIOR_TOL, control.expired)
        if found is None:
            return False
        w, b, u = found
        F = np.zeros_like(self.F)
        F[rows] = (X @ w + b)[:, None]
        if terms.value(F) + self._penalty(w) < self.primal:
            self.W[:] = 0.0
            self.W[0, features] = w
            self.b[:] = b
            self.F = Chosen(self.view, features, self.data.centre()).scores(self.W[:, features], self.b)
        terms.set_duals(rows, u)
        if self.fit_intercept:
            terms.balance()
        self._raise_bound(self.view.transposed(terms.theta))
        return True

    def _shift_classes(self, features: Array) -> None:
        """Move the weights of each feature by what all its classes can share: softmax does not see it.

        ``Σ_k |w_k − c|`` is least between the two middle weights. Along this direction the loss has no
        curvature, so that Newton steps would not find it.
        """
        if not self.terms.joint:
            return
        W = self.W[:, features]
        K = W.shape[0]
        middle = np.sort(W, axis=0)[[(K - 1) // 2, K // 2]]
        shifted = W - np.clip(0.0, middle[0], middle[1])
        before = self.l1 * np.abs(W).sum(axis=0) + 0.5 * self.l2 * np.square(W).sum(axis=0)
        after = self.l1 * np.abs(shifted).sum(axis=0) + 0.5 * self.l2 * np.square(shifted).sum(axis=0)
        self.W[:, features] = np.where(after < before, shifted, W)

    def _reusable(self, features: Array, kind: str) -> GramModel | None:
        """Return the last Hessian if it covers the features and little has changed since."""
        model = self.model
        if model is None or kind != "blocks" or self.idle or self.primal < 0.9 * self.formed_at:
            return None
        if model.rough and self.fell <= 0.01:
            return None
        return model if np.isin(features, model.X.features, assume_unique=True).all() else None

    def _learn(self, t: float) -> None:
        """Be more cautious after a step that was too long, and bolder after a good one."""
        if t >= 0.5:
            self.caution = self.caution / 4 if self.caution > 0.01 else 0.0
        elif t < 0.2:
            self.caution = min(1.0, max(0.1, 4 * self.caution)) if t > 0 else 1.0

    def search(self, features: Array, D: Array, db: Array, Z: Array, slope: float) -> float:
        """Go along the step as far as it pays; return how far: 1 is the whole step."""
        W = self.W[:, features]
        start = self._penalty(W)
        before = self.terms.value(self.F) + start
        rounding = 1e-13 * abs(before)
        promised = min(slope + self._penalty(W + D) - start, rounding)
        if not np.isfinite(promised) or promised >= rounding:
            return 0.0
        t = 1.0
        for _ in range(40):
            now = self.terms.value(self.F + t * Z) + self._penalty(W + t * D)
            # What is below the rounding of the objective cannot be judged by it.
            if now <= before + 0.01 * t * promised + rounding:
                self.F += t * Z
                self.W[:, features] = W + D if t == 1.0 else W + t * D
                self.b += t * db
                return t
            t *= 0.5
        return 0.0

    def _choose(self) -> Array:
        """Return the features with a weight and the worst of the others, in order."""
        d = self.view.shape[1]
        worst = self.violations.max(axis=0) / self.data.lengths()
        used = self.W.any(axis=0)
        wanted = used | (worst > 0)
        if d <= _FIRST:
            return np.flatnonzero(wanted) if wanted.any() else np.arange(d)
        room = max(_FIRST, int(used.sum()))
        new = np.flatnonzero(wanted & ~used)
        if new.shape[0] > room:
            new = new[np.argpartition(-worst[new], room)[:room]]
        return np.sort(np.concatenate([np.flatnonzero(used), new]))

    def _kind(self, features: Array) -> str:
        """Return which model fits: "columns", or a Hessian: "whole", "blocks" or "sparse"."""
        m, n, K = int(features.shape[0]), self.view.shape[0], self.terms.columns
        if m > _GRAM_FEATURES:
            return "columns"
        stored = self.data.stored(features)
        dense = 0.04 * n * m * m
        products = 12.0 * stored * stored / n if stored < 0.5 * n * m else np.inf
        if min(dense, products) > _SWEEP_COST * stored:
            return "columns"
        if products < dense:
            return "sparse" if K == 1 else "columns"
        work = _MOST_WORK if self.taken >= _BLOCK_STEPS else _WHOLE_WORK
        whole = K == 1 or (K * m <= _WHOLE_WEIGHTS and n * (K * m) ** 2 <= work)
        return "whole" if whole else "blocks"

    def settle(self, dtype: np.dtype[np.floating]) -> None:
        """Round the parameters to the precision in which they are returned, and judge them anew."""
        if self.terms.joint and self.fit_intercept:
            self.b -= self.b.mean()  # what all classes share, softmax does not see
        W, b = self.W.astype(dtype).astype(np.float64), self.b.astype(dtype).astype(np.float64)
        self.W, self.b = W, b
        if self.on_the_way():
            (self.l1, self.l2), self.bound = self.goal, -np.inf
        if np.isnan(self.violation):  # there was no time for more
            self.F = np.broadcast_to(b, self.F.shape).copy()
            self.glance()
            return
        if not self._one_sided:
            self.F = self.view.scores(W, b).astype(np.float64)
        self._judge()

    def write(self, coef: Array, intercept: Array) -> None:
        """Put the parameters into their rows."""
        coef[self.own], intercept[self.own] = self.W, self.b
        if self.absent.shape[0]:
            coef[self.absent] = 0.0
            intercept[self.absent] = float(self.F.max(axis=1).min()) - _ABSENT
