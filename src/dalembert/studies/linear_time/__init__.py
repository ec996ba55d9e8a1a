"""Experiments of the paper Linear-time (the first version of the variational integrator)."""
