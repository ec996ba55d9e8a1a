"""Joint coordinates: the reduced formulation (RedMax)."""
from dalembert.formulations.reduced.moments import Moment
from dalembert.formulations.reduced.options import Reduced

__all__ = ["Moment", "Reduced"]
