"""Measurements: ``run.py`` compares with other simulators; the other programs look at ourselves."""
