"""The implicit formulation."""
from dalembert.formulations.implicit.options import Implicit

__all__ = ["Implicit"]
