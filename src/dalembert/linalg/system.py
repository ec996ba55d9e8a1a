"""One system of equations over a graph, for use from plain Python: nodes of any size, flat vectors, named errors."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import DalembertError, ModelError, SingularBlockError
from dalembert.linalg.graph import checked_constraint, checked_edges, checked_sizes
from dalembert.linalg.numeric import clear, factor, multiply, solve, solve_transposed
from dalembert.linalg.plain_rows import WIDTH
from dalembert.linalg.structure import analyse


class InconsistentSystemError(DalembertError, ArithmeticError):
    """A singular system has no solution for this right-hand side; ``residual`` was reached, worst at ``node``."""

    def __init__(self, message: str, node: int, residual: float) -> None:
        super().__init__(message)
        self.node = node
        self.residual = residual


class GraphSystem:
    """A x = b where A has a block for each node and, both ways, for each edge of a graph.

    sizes: numbers per node, any from 1 on. edges: pairs of nodes. constraint: true for nodes whose diagonal block is
    zero or nearly so. names: of the nodes, for messages. order: of elimination, as for `analyse`.

    Nodes above WIDTH are split into parts that are eliminated one by one: pivots are then sought within the parts.
    """

    def __init__(
        self,
        sizes: ArrayLike,
        edges: ArrayLike,
        constraint: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        order: str = "best",
    ) -> None:
        self.sizes = checked_sizes(sizes)
        n = len(self.sizes)
        pairs = checked_edges(n, edges)
        mask = checked_constraint(n, constraint)
        self._names = [str(i) for i in range(n)] if names is None else [f"{i} ({name!r})" for i, name in enumerate(names)]
        if len(self._names) != n:
            raise ModelError(f"{len(self._names)} names are given for {n} nodes")

        counts = -(-self.sizes // WIDTH)
        self._owner = np.repeat(np.arange(n), counts)
        first_part = np.cumsum(counts) - counts
        self._parts = [range(f, f + c) for f, c in zip(first_part.tolist(), counts.tolist())]
        part_sizes = np.array([len(part) for m, c in zip(self.sizes, counts) for part in np.array_split(np.arange(m), c)])
        part_edges = [e for parts in self._parts for e in combinations(parts, 2)]
        part_edges += [e for i, j in pairs.tolist() for e in product(self._parts[i], self._parts[j])]

        self._constraint = mask[self._owner]
        self.structure = analyse(part_sizes, part_edges, self._constraint, order)
        self._size = int(self.sizes.sum())
        self._lanes = np.arange(WIDTH) < part_sizes[:, None]
        self._flat_start = np.concatenate([[0], np.cumsum(part_sizes)])
        self._matrix = self.structure.new_blocks()
        self._factors = self.structure.new_blocks()
        self._vector = self.structure.new_vector()
        self._product = self.structure.new_vector()
        self._is_factored = False

    def set(self, i: int, j: int, matrix: ArrayLike) -> None:
        """Set the block of row node ``i`` and column node ``j``, (sizes[i], sizes[j])."""
        values = np.asarray(matrix, float)
        if values.shape != (self.sizes[i], self.sizes[j]):
            raise ModelError(f"block ({i}, {j}) is {values.shape}: it should be {(int(self.sizes[i]), int(self.sizes[j]))}")
        top, left = self._flat_start[self._parts[i][0]], self._flat_start[self._parts[j][0]]
        for p, q in product(self._parts[i], self._parts[j]):
            rows = slice(self._flat_start[p] - top, self._flat_start[p + 1] - top)
            columns = slice(self._flat_start[q] - left, self._flat_start[q + 1] - left)
            part = values[rows, columns]
            self._matrix["M"][self._block(p, q), : part.shape[0], : part.shape[1]] = part

    def factor(self) -> None:
        """Factor the matrix as it is now set. SingularBlockError names the node whose pivot block has no inverse."""
        self._factor(0.0)
        self._is_factored = True

    def solve(self, b: ArrayLike) -> np.ndarray:
        """The solution x of A x = b, (n,), with the matrix last factored."""
        self._check_factored()
        return self._substitute(solve, b)

    def solve_transposed(self, b: ArrayLike) -> np.ndarray:
        """The solution x of A^T x = b, (n,), with the matrix last factored."""
        self._check_factored()
        return self._substitute(solve_transposed, b)

    def solve_proximal(
        self, b: ArrayLike, *, compliance: float = 1e-8, tolerance: float = 1e-10, max_iterations: int = 50
    ) -> np.ndarray:
        """A solution of A x = b where A may be singular, as with redundant constraints, but b is in its range.

        The proximal method of multipliers: factor A - E, with ``compliance`` in E on the diagonal of the constraint
        nodes, and repeat x += (A - E)^-1 (b - A x) until the residual's largest entry is below ``tolerance`` times that
        of b. Minus is right for [[M, G^T], [G, 0]] with M positive; for [[M, -G^T], [G, 0]] give a negative compliance.
        InconsistentSystemError when ``max_iterations`` are not enough. What `factor` had factored is lost.
        """
        b = np.asarray(b, float)
        self._factor(compliance)
        x = np.zeros(self._size)
        residual = b
        for _ in range(max_iterations):
            x = x + self._substitute(solve, residual)
            residual = b - self._times(x)
            if np.max(np.abs(residual), initial=0.0) <= tolerance * np.max(np.abs(b), initial=0.0):
                return x
        worst = int(np.argmax(np.abs(residual)))
        node = int(self._owner[np.searchsorted(self._flat_start, worst, side="right") - 1])
        reached = float(abs(residual[worst]))
        raise InconsistentSystemError(
            f"residual {reached:.3g} at node {self._names[node]} after {max_iterations} iterations, with a tolerance of "
            f"{tolerance:.3g} times the right-hand side: it contradicts redundant rows, or the compliance is too large",
            node, reached,
        )

    def to_dense(self) -> np.ndarray:
        """The matrix as it is now set, (n, n)."""
        dense = np.zeros((self._size, self._size))
        schedule = self.structure.schedule
        parts = np.arange(len(self._owner))
        rows = np.concatenate([parts, np.repeat(parts, np.diff(schedule.offset))])
        columns = np.concatenate([parts, schedule.neighbour])
        for p, q, k in zip(rows, columns, np.concatenate([schedule.diagonal, schedule.entry])):
            m, n = schedule.sizes[p], schedule.sizes[q]
            top, left = self._flat_start[p], self._flat_start[q]
            dense[top : top + m, left : left + n] = self._matrix["M"][k, :m, :n]
        return dense

    def _block(self, p: int, q: int) -> int:
        try:
            return self.structure.block(p, q)
        except KeyError:
            i, j = self._owner[p], self._owner[q]
            raise ModelError(f"no edge joins nodes {self._names[i]} and {self._names[j]}") from None

    def _factor(self, compliance: float) -> None:
        self._is_factored = False
        np.copyto(self._factors, self._matrix)
        schedule = self.structure.schedule
        for part in np.flatnonzero(self._constraint) if compliance else ():
            diagonal = np.arange(schedule.sizes[part])
            self._factors["M"][schedule.diagonal[part], diagonal, diagonal] -= compliance
        clear(self._factors, schedule)
        failed = factor(self._factors, schedule)
        if failed >= 0:
            node = int(self._owner[failed])
            raise SingularBlockError(
                f"the pivot block of node {self._names[node]} is singular or not finite: look for numbers that are not "
                "finite and for redundant rows (solve_proximal takes those)", node,
            )

    def _check_factored(self) -> None:
        if not self._is_factored:
            raise ModelError("the matrix is not factored: call factor() after setting its blocks")

    def _substitute(self, kernel: Callable[..., None], b: ArrayLike) -> np.ndarray:
        self._write(b)
        kernel(self._factors, self.structure.schedule, self._vector)
        return self._vector["v"][self._lanes]

    def _write(self, b: ArrayLike) -> None:
        values = np.asarray(b, float)
        if values.shape != (self._size,):
            raise ModelError(f"the right-hand side has shape {values.shape}: it should be ({self._size},)")
        self._vector["v"][self._lanes] = values

    def _times(self, x: np.ndarray) -> np.ndarray:
        """A x with the matrix as it is now set."""
        self._write(x)
        multiply(self._matrix, self.structure.schedule, self._vector, self._product)
        return self._product["v"][self._lanes]
