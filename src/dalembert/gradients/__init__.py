"""Derivatives of whole runs: by parameters, starts and inputs, backwards (adjoint) and forwards."""
