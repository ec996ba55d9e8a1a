"""The loop of three links again, as the first of the two papers shows it."""
from __future__ import annotations

from dalembert.studies.study import Report, study
from dalembert.studies.variational.constraint_drift import compare_drift


@study("figure 4b", "a closed loop does not drift with constraints of position, and does with constraints of acceleration")
def loop_drift(report: Report) -> None:
    compare_drift(report, 5.0 if report.quick else 20.0)
