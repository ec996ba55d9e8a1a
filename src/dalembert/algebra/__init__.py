"""Joint-space algebra of a mechanism, for control, estimation and planning: no simulation takes part."""
from dalembert.algebra.algebra import Algebra

__all__ = ["Algebra"]
