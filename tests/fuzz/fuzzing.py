"""What rounds of the fuzzer and those who run them share."""
from __future__ import annotations


class Failure(Exception):
    """Something that must not happen did; ``program`` does it again."""

    def __init__(self, message: str, program: str = "") -> None:
        super().__init__(message)
        self.program = program
