"""The joint-space algebra of a mechanism."""
from dalembert.algebra.dynamics import Dynamics


class Algebra(Dynamics):
    """x"""
