"""Redundant rows: kept, and solved with a compliance per row whose effect refinement removes (proximal method of multipliers)."""

#: compliance of a row relative to its own scale, where a mechanism has loops
COMPLIANCE = 1e-8
#: factors of it to try: poses near a singular one ask for less or more. The answer is the same.
COMPLIANCES = (1.0, 1e-2, 1e-3, 1e-4, 1e2)
