"""Experiments of the paper RedMax (reduced coordinates)."""
