"""Experiments of the paper Variational (maximal coordinates, graph-based solvers)."""
