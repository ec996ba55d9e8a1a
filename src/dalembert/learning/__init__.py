"""Rollouts as differentiable functions for PyTorch and JAX, which are imported when they are needed."""
