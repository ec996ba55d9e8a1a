"""The experiments of the papers, each run by one command: ``dalembert study NAME``.

A study is a file in the folder of its paper; ``study.py`` says what one is.
"""
from dalembert.studies.study import Outcome, Report, Study, find_study, list_studies, study

__all__ = ["Outcome", "Report", "Study", "find_study", "list_studies", "study"]
