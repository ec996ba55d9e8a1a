"""Derivatives of simulations: linearisation, equilibria and modes."""
