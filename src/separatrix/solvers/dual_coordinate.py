r"""Softmax regression by dual coordinate descent: for sparse or wide data with many classes.

Problem, for ``K`` classes (and, with codes ±1 in one column, for two):

    min over W, b:  C Σ_i s_i [logsumexp_k f_k(x_i) − f_{c_i}(x_i)] + ½‖W‖²,   f_k(x) = w_k·x + b_k

Dual: ``μ_i`` in the simplex, ``α_i = C s_i (t_i − μ_i)``,

    max  −½‖Σ_i α_i x_iᵀ‖² + C Σ_i s_i H(μ_i)   subject to  Σ_i α_i = 0 where the intercept is free,

with the entropy ``H``; at the optimum ``W = Σ α_i x_iᵀ`` and ``μ_i = softmax(f(x_i))``. A step solves for all
classes of one sample (``_hot/softmax_dual.hpp``; after Yu, Huang and Lin, 2011).

The free intercept is the multiplier of ``Σ α_i = 0``. On that plane nothing changes if all rows are moved by
their mean ``m`` and ``σ`` is added to all inner products; off it the first takes away the direction that
couples all samples, and the second is the term of an augmented Lagrangian, so that the intercept follows every
step. After each epoch the multiplier takes the step ``(σ + 1/H) Σ α_i``, H the curvature of the loss in b.

Certificate of given (W, b): with ``p = softmax(f)`` and b at its optimum, ``α' = C s (t − p)`` is dual feasible
and the gap is ``½‖W − Xᵀα'‖²``. So b is first brought to its optimum by Newton's method; what rounding leaves
of ``Σ α'`` is removed by mixing ε of another distribution into every ``p``, and the lower bound is computed for
the mixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from separatrix import _hot
from separatrix.certificate import Certificate
from separatrix.data.memory import CsrView, DenseView
from separatrix.data.threads import single_threaded
from separatrix.data.view import BLOCK_BYTES, Array
from separatrix.problem import Problem, Result
from separatrix.solvers._loop import Control, Outcome, Step
from separatrix.solvers._order import Visits

SIGMA=1.0
CENTRE=True
HSTEP=1.0
SLEEP=0.03
DEBUG=False
SINGLE_TOL=1e-5

def parts(view, rows=None):
    X = view.array
    if sparse.issparse(X):
        return (X.data, X.indices, X.indptr, view.shape[1])
    return (X,)


class SoftmaxDual:
    def __init__(self, problem, *, C, coef, intercept, tol, seed, threads=1):
        view = problem.view
        self.problem, self.view, self.C, self.tol, self.threads = problem, view, C, tol, threads
        self.visits = Visits(view, problem.classes, problem.weights, shuffle=True, seed=seed)
        self.order = self.visits.order
        self.seed = seed
        n, d = view.shape
        P = problem.columns
        self.padded = 1 if P == 1 else -(-P // 8) * 8
        s = np.ones(n) if self.visits.weights is None else self.visits.weights
        self.s = np.ones(n) if problem.weights is None else problem.weights
        self.scale = np.ascontiguousarray(C * s)
        self.classes = np.ascontiguousarray(problem.classes, dtype=np.int32)
        self.norms = view.row_norms()
        self.mean = np.zeros(d); self.mean_dots = np.zeros(n); self.constant = 0.0
        self.sigma = 0.0
        if problem.fit_intercept:
            self.sigma = SIGMA
            if CENTRE:
                self.mean = view.transposed((self.s/self.s.sum())[:,None])[:,0]
                self.mean_dots = np.ascontiguousarray(view.scores(self.mean[None])[:,0], dtype=np.float64)
            self.constant = float(self.mean @ self.mean) + self.sigma
            self.norms = np.maximum(self.norms - 2*self.mean_dots + self.constant, 1e-12*self.norms)
        self.dtype = np.dtype(np.float32 if tol >= SINGLE_TOL else np.float64)
        Kp = self.padded
        self.P = P
        self.arrays = dict(
            weights=np.zeros((d, Kp), self.dtype), nu=np.zeros((n, Kp), self.dtype), asleep=np.full(n, 255, np.uint8),
            offsets=np.zeros(Kp, self.dtype), sums=np.zeros(Kp, self.dtype), spread=np.zeros(Kp, self.dtype),
            scratch=np.zeros(6*Kp, self.dtype), tally=np.zeros(3))
        self.shared = dict(classes=self.classes, scale=self.scale, norms=self.norms, mean_dots=self.mean_dots)
        if problem.fit_intercept:
            tot = np.bincount(problem.classes, self.s, P if P>1 else 2)
            self.arrays["offsets"][:P] = np.log(tot/tot.sum()) if P>1 else np.log(tot[1]/tot[0])
        self.state = (_hot.SoftmaxDualFloat32 if self.dtype == np.float32 else _hot.SoftmaxDualFloat64)(
            **self.shared, **self.arrays, columns=P, constant=self.constant)
        self.dual = 0.0

    def epoch(self, control):
        a = self.arrays
        a["tally"][:] = 0
        self.seed = _hot.shuffle(self.order, self.seed)
        rows = parts(self.view)
        run = self.state.run_csr if len(rows) == 4 else self.state.run_dense
        n = len(self.order)
        step = 1000
        self.state.negligible = SLEEP*self.tol*self.dual/n
        for b in range(0, n, step):
            run(*rows, self.order, b, min(b+step, n), -1)
        if self.problem.fit_intercept:
            c = a["sums"][:self.P].astype(float); h = a["spread"][:self.P].astype(float)
            db = (self.sigma + HSTEP*(1-1/max(self.P,2) if self.P>1 else 1)/np.maximum(h,1e-12))*c
            a["offsets"][:self.P] += db.astype(self.dtype)
        self.dual += a["tally"][0]

    def model(self):
        a = self.arrays
        c = a["sums"].astype(float)
        W = a["weights"].astype(float) - self.mean[:,None]*c
        return np.ascontiguousarray(W), a["offsets"].astype(float)

    def certify(self):
        W, b = self.model()
        K = self.P
        W = W.astype(self.view.dtype).astype(float)
        n = self.view.shape[0]
        F = np.empty((n, self.padded)); _hot.padded_scores(*parts(self.view), W, F)
        P = np.empty_like(F)
        s = self.C*self.s
        nw = s.sum()
        t = np.bincount(self.classes, s, K)
        best=np.inf; db=np.zeros(K); b0=b.copy(); tt=1.0
        for it in range(60):
            loss = _hot.softmax_rows(F, b, self.classes, s, K, P)
            if not self.problem.fit_intercept: break
            if loss > best*(1+1e-13):
                tt*=0.5; b[:K]=b0[:K]+tt*db; continue
            best=loss; b0=b.copy(); tt=1.0
            tot = s@P
            g = tot[:K]-t
            if np.abs(g).max() < 1e-13*nw: break
            H = np.diag(tot[:K]*(1+1e-10)) - (P[:,:K]*s[:,None]).T@P[:,:K]
            H += nw/K/K
            db = -np.linalg.solve(H, g)
            b[:K] += db
        R = -P*s[:,None]; R[np.arange(n), self.classes] += s
        G = np.zeros_like(W); _hot.add_padded_transposed(*parts(self.view), R, 0, self.padded, G)
        primal = loss + 0.5*(W**2).sum()
        gap = 0.5*((W-G)**2).sum()
        return primal, gap, it
