"""Experiments of the paper Contact (friction and impacts in linear time)."""
