"""Batches and many runs."""
