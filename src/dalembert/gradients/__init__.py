"""Derivatives of simulations: gradients of runs, linearisation, equilibria and modes."""
