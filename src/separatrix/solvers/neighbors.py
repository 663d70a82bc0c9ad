"""Exact nearest neighbours.

For each query the ``k`` rows of least distance, those of equal distance by their number. Distances are sums
of the coordinates' differences in double precision, whatever the route to the rows:

- **brute force**: for Euclid's and the cosine distance a filter first (``_reduction.py``: a product of
  reduced vectors in single precision, with a bound of its error); only rows that may be among the nearest
  are measured. Filter, measure and the list of the ``k`` best are one loop in the compiled core, over
  blocks of rows and parts of the queries.
- **a k-d tree** (SciPy's) for few features and many rows, for Minkowski metrics. It does not promise which of
  several equal distances it returns, so it is asked for one neighbour more; where the last two are equal up
  to rounding, brute force decides.
- **blocks of distances** for all other metrics.

Nothing depends on the number of threads: a result has but one value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from separatrix import _hot
from separatrix.data.memory import view_of
from separatrix.data.threads import at_most, in_threads, single_threaded, thread_count
from separatrix.data.view import BLOCK_BYTES, Array, DataView, csr_parts
from separatrix.solvers._metrics import Metric
from separatrix.solvers._reduction import Reduction, SparseReduction

Answer = Callable[[Any, Array, Array], None]
"""Offers rows to a part of the queries: the queries, their least distances so far, and the rows."""

_NO_ROW = np.iinfo(np.int64).max
#: Bytes of reduced rows in one round.
_ROUND_BYTES = 64 << 20
#: Queries in one part, and numbers that the distances of one part to one block may be.
_PART, _BLOCK_NUMBERS = 4096, 1 << 19
#: Multiply-adds below which nothing is filtered, and fewest queries to filter for.
_SMALL, _FEW = 1 << 17, 8
#: Multiply-adds of a part of the queries, at least: below it a part costs more than it shares out.
_SHARE = 1 << 22
#: Features from which principal directions are looked for, and multiply-adds from which that pays.
_WIDE, _PROJECT_WORK = 128, 2e10
#: Most features for a k-d tree that is not asked for, and for one that is.
_TREE_FEATURES, _TREE_MOST = 10, 15
#: Relative difference up to which two distances of the tree may be equal.
_EQUAL = 1e-12


class Search:
    """Training samples, ready to be searched.

    Parameters
    ----------
    view : DataView
        The samples; for a precomputed metric only its shape counts.
    metric : Metric
        The metric.
    algorithm : {"auto", "brute", "tree"}
        How to search; "auto" chooses by shape.
    leaf_size : int
        Rows in a leaf of a tree.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.memory import view_of
    >>> from separatrix.solvers._metrics import resolve_metric
    >>> search = Search(view_of(np.array([[0.0], [1.0], [3.0]])), resolve_metric("euclidean", {}))
    >>> distances, rows = search.nearest(view_of(np.array([[2.0]])), 2)
    >>> distances.tolist(), rows.tolist()
    ([[1.0, 1.0]], [[1, 2]])
    """

    def __init__(self, view: DataView, metric: Metric, algorithm: str = "auto", leaf_size: int = 30) -> None:
        self.view, self.metric, self.leaf_size = view, metric, leaf_size
        self.tree = self._tree_pays() if algorithm == "auto" else algorithm == "tree" and self._tree_can()
        self._lock = Lock()
        self._made: dict[str, Any] = {}
        self._asked = 0

    def _tree_can(self) -> bool:
        return self.metric.power is not None and not self.view.sparse and 0 < self.view.shape[1] <= _TREE_MOST

    def _tree_pays(self) -> bool:
        n, d = self.view.shape
        if not self._tree_can() or d > _TREE_FEATURES:
            return False
        # Measured: brute force on products is quick, so that each further feature asks for more rows.
        if self.metric.name == "euclidean":
            return n >= 300 and n >= 1000 * 5.0 ** (d - 4)
        return n >= 300 * 3.0 ** max(0, d - 3)

    def nearest(self, queries: DataView, k: int, n_jobs: int | None = None) -> tuple[Array, Array]:
        """Return the distances and numbers of the ``k`` nearest rows of each query, the nearest first.

        Parameters
        ----------
        queries : DataView
            As many features as the training samples; for a precomputed metric, distances to them.
        k : int
            At least 1, at most the number of training samples.
        n_jobs : int or None
            Threads.
        """
        if queries.shape[1] != self.view.shape[1] or not 0 < k <= self.view.shape[0]:
            shapes = f"samples {queries.shape} of training samples {self.view.shape}"
            raise ValueError(f"{k} neighbours for {shapes} are not to be had.")
        with at_most(1 if self.metric.serial else n_jobs):
            distance = np.empty((queries.shape[0], k))
            index = np.empty((queries.shape[0], k), dtype=np.int64)
            if self.tree and k < self.view.shape[0]:
                self._by_tree(queries, distance, index, thread_count(n_jobs))
            else:
                self._by_force(queries, distance, index)
        return self.metric.finish(distance), index

    def _by_force(self, queries: DataView, distance: Array, index: Array) -> None:
        """Fill in distances (squared ones for Euclid's metric) and rows, by blocks."""
        (n, d), (m, k) = self.view.shape, distance.shape
        work = float(n) * m * max(1.0, self.view.row_elements)
        step = int(max(_FEW, min(_PART, BLOCK_BYTES // (8 * ((1 if queries.sparse else d) + 2 * k)))))
        if work > _SHARE:
            step = min(step, max(8 * _FEW, -(-m // int(min(16.0, work / _SHARE + 1)))))
        parts = [slice(begin, min(begin + step, m)) for begin in range(0, m, step)]
        distance.fill(np.inf)
        index.fill(_NO_ROW)
        with single_threaded(work):
            for answer in self._rounds(m, work):  # each offers more rows to all queries

                def offer(number: int, answer: Answer = answer) -> None:
                    part = parts[number]
                    answer(queries.read(part), distance[part], index[part])

                for _ in in_threads(offer, len(parts)):
                    pass
        for begin in range(0, m, _PART):
            part = slice(begin, min(begin + _PART, m))
            order = np.lexsort((index[part], distance[part]), axis=1)
            for array in (distance, index):
                array[part] = np.take_along_axis(array[part], order, 1)

    def _rounds(self, m: int, work: float) -> Iterator[Answer]:
        """Yield functions that offer rows to a part of the queries; together they offer all rows."""
        if self.metric.name not in ("euclidean", "cosine"):
            yield self._answer_blocks
            return
        if not self.view.sparse:
            with self._lock:
                self._asked += m
                reduction = self._reduction() if work > _SMALL and m >= _FEW else None
                projects = reduction is not None and reduction.basis is not None
                kept = self._panels(reduction) if projects else None
            if reduction is None or projects:
                yield self._dense_answer(reduction, self.view.parts(), kept)
                return
            pack, row_bytes = reduction.panels, 4.0 * reduction.width
        else:
            with self._lock:
                if "sparse" not in self._made:
                    self._made["sparse"] = SparseReduction.of(self.view, self.metric.name == "cosine")
            sparse_reduction: SparseReduction = self._made["sparse"]
            pack, row_bytes = sparse_reduction.rows, 4 * self.view.row_elements
        # Reduced rows are made for a round and used by all queries: few rounds, bounded memory.
        parts = self.view.parts()
        count = max(1, int(_ROUND_BYTES // max(1.0, row_bytes * (parts[0].stop - parts[0].start))))
        for begin in range(0, len(parts), count):
            now = parts[begin : begin + count]
            packed = list(in_threads(lambda i, now=now: pack(self.view.read(now[i])), len(now)))  # type: ignore[misc]
            if self.view.sparse:
                yield self._sparse_answer(sparse_reduction, now, packed)
            else:
                yield self._dense_answer(reduction, now, packed)

    # ---------------------------------------------------------------------------------- dense rows

    def _dense_answer(
        self, reduction: Any, parts: list[slice], packed: list[tuple[Array, Array]] | None
    ) -> Answer:
        cosine = self.metric.name == "cosine"
        slack = 8 * (self.view.shape[1] + 16) * 2.0**-53 if cosine else 1e-300

        def answer(block: Any, best: Array, at: Array) -> None:
            Q = np.ascontiguousarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)
            reduced, room = reduction.queries(Q) if reduction is not None else (None, None)
            # The state only points to its arrays: they must live as long, under names of their own.
            state = _hot.Nearest(
                distance=best,
                index=at,
                cosine=cosine,
                dense=Q,
                reduced=reduced,
                room=room,
                grow=reduction.grow if reduction is not None else 0.0,
                slack=slack,
            )
            for number, rows in enumerate(parts):
                X = self.view.read(rows)
                if X.strides[1] != X.itemsize or X.strides[0] % X.itemsize:
                    X = np.ascontiguousarray(X)
                state.add_dense(X, rows.start, *((None, None) if packed is None else packed[number]))

        return answer

    def _reduction(self) -> Reduction:
        """Return the map to reduced vectors; principal directions only once enough has been asked for."""
        n, d = self.view.shape
        project = d >= _WIDE and float(n) * d * self._asked >= _PROJECT_WORK
        name = "directions" if project or "directions" in self._made else "plain"
        if name not in self._made:
            self._made[name] = Reduction(self.view, self.metric.name == "cosine", project)
        made: Reduction = self._made[name]
        return made

    def _panels(self, reduction: Any) -> list[tuple[Array, Array]]:
        if "panels" not in self._made:
            parts = self.view.parts()
            packed = in_threads(lambda i: reduction.panels(self.view.read(parts[i])), len(parts))
            self._made["panels"] = list(packed)
        return list(self._made["panels"])

    # --------------------------------------------------------------------------------- sparse rows

    def _sparse_answer(
        self, reduction: SparseReduction, parts: list[slice], packed: list[tuple[Array, Array]]
    ) -> Answer:
        cosine = self.metric.name == "cosine"

        def answer(block: Any, best: Array, at: Array) -> None:
            Q = sparse.csr_array(block, dtype=np.float64)
            if not Q.has_canonical_format:
                Q = Q.copy()
                Q.sum_duplicates()
            values, room = reduction.values(Q)
            state = _hot.Nearest(
                distance=best,
                index=at,
                cosine=cosine,
                dense=None,
                reduced=values,
                room=room,
                grow=reduction.grow,
                slack=8 * (reduction.terms + 16) * 2.0**-53 if cosine else 1e-300,
            )
            wide = (Q.data, Q.indices.astype(np.int64), Q.indptr.astype(np.int64), Q.shape[1])
            for rows, (z, halves) in zip(parts, packed, strict=True):
                state.add_csr(*csr_parts(self.view.read(rows)), rows.start, z, halves, *wide)

        return answer

    # -------------------------------------------------------------------------------- other metrics

    def _answer_blocks(self, block: Any, best: Array, at: Array) -> None:
        state = _hot.Nearest(
            distance=best,
            index=at,
            cosine=False,
            dense=None,
            reduced=None,
            room=None,
            grow=0.0,
            slack=0.0,
        )
        if self.metric.blocks is None:
            state.add_distances(np.ascontiguousarray(block, dtype=np.float64), 0)
            return
        n, d = self.view.shape
        step = max(1, min(BLOCK_BYTES // (8 * d), _BLOCK_NUMBERS // max(1, len(best))))
        if sparse.issparse(block) != self.view.sparse:
            block = sparse.csr_array(block) if self.view.sparse else block.toarray()
        for begin in range(0, n, step):
            X = self.view.read(slice(begin, min(begin + step, n)))
            distances = self.metric.blocks(block, X)
            state.add_distances(np.ascontiguousarray(distances, dtype=np.float64), begin)

    # ----------------------------------------------------------------------------------- k-d tree

    def _by_tree(self, queries: DataView, distance: Array, index: Array, threads: int) -> None:
        from scipy.spatial import cKDTree

        with self._lock:
            if "tree" not in self._made:
                X = self.view.read(slice(0, self.view.shape[0]))
                self._made["tree"] = cKDTree(
                    X, leafsize=self.leaf_size, compact_nodes=False, balanced_tree=False
                )
        tree, p, k = self._made["tree"], self.metric.power, distance.shape[1]
        step = max(1, BLOCK_BYTES // (8 * (k + 1) * (self.view.shape[1] + 2)))
        unclear = []
        for begin in range(0, len(distance), step):
            rows = slice(begin, min(begin + step, len(distance)))
            Q = queries.read(rows)
            Q = np.asarray(Q.toarray() if sparse.issparse(Q) else Q, dtype=np.float64)
            found, at = tree.query(Q, k + 1, p=p, workers=threads)
            unclear.append(begin + np.flatnonzero(found[:, k] <= found[:, k - 1] * (1 + _EQUAL)))
            at = at[:, :k]
            measured = self._measured(Q, tree.data, at)
            order = np.lexsort((at, measured), axis=1)
            distance[rows], index[rows] = (np.take_along_axis(part, order, 1) for part in (measured, at))
        doubtful = np.concatenate(unclear)
        if len(doubtful):
            D, I = np.empty((len(doubtful), k)), np.empty((len(doubtful), k), dtype=np.int64)
            self._by_force(view_of(queries.take(doubtful)), D, I)
            distance[doubtful], index[doubtful] = D, I

    def _measured(self, Q: Array, X: Array, at: Array) -> Array:
        """Return distances as brute force has them: the same sums, in the same order."""
        p = self.metric.power
        total = np.zeros(at.shape)
        for j in range(Q.shape[1]):
            difference = np.abs(X[at, j] - Q[:, j, None])
            if p == np.inf:
                np.maximum(total, difference, out=total)
            else:
                total += difference if p == 1 else difference**p
        return total if p in (1, 2, np.inf) else total ** (1 / p)  # type: ignore[operator]


def graph_neighbors(graph: Any, k: int, own: bool) -> tuple[Array, Array]:
    """Return the ``k`` nearest among the stored entries of each row of a sparse matrix of distances.

    Parameters
    ----------
    graph : CSR matrix of shape (queries, n)
        Distances; what is not stored is no neighbour.
    k : int
        How many neighbours.
    own : bool
        Whether the queries are the training samples, the first neighbour of each itself.
    """
    counts = np.diff(graph.indptr)
    if counts.size and counts.min() < k:
        short = int(counts.argmin())
        raise ValueError(
            f"{k - own} neighbors are required for some samples, but some samples have only "
            f"{counts[short] - own} neighbors in precomputed graph matrix (row {short}). Decrease number "
            "of neighbors used or recompute the graph with more neighbors."
        )
    row = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((graph.indices, graph.data, row))
    first = order[graph.indptr[:-1, None] + np.arange(k)]
    return graph.data[first].astype(np.float64), graph.indices[first].astype(np.int64)
