"""The graph-based block solver: matrices whose blocks follow a graph, factored in place with fill known in advance.

`analyse` looks at the graph once and gives a `Structure`; the compiled kernels `factor`, `solve` and the others then
run on its storage without allocating, from Python or from other kernels. `GraphSystem` wraps both for plain use.
"""
from dalembert.linalg.blocks import BLOCK, VECTOR
from dalembert.linalg.numeric import clear, factor, multiply, solve, solve_transposed
from dalembert.linalg.plain_rows import WIDTH
from dalembert.linalg.schedule import Schedule
from dalembert.linalg.structure import Structure, analyse
from dalembert.linalg.system import GraphSystem, InconsistentSystemError

__all__ = [
    "BLOCK",
    "VECTOR",
    "WIDTH",
    "GraphSystem",
    "InconsistentSystemError",
    "Schedule",
    "Structure",
    "analyse",
    "clear",
    "factor",
    "multiply",
    "solve",
    "solve_transposed",
]
