"""The variational formulation."""
from dalembert.formulations.variational.options import Variational

__all__ = ["Variational"]
