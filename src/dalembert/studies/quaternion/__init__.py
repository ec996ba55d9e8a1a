"""Experiments of the paper Quaternion (constrained dynamics with redundant rows and drives)."""
