"""dalembert's own model files, TOML or JSON: everything that a mechanism holds, number for number.

Poses and joint frames are stored as the mechanism holds them, so that a mechanism read back gives the same
trajectory to the last bit. ``schema()`` is the published JSON schema of the format.
"""
from __future__ import annotations

from dalembert.io.native.read import loads, read_native
from dalembert.io.native.records import schema
from dalembert.io.native.write import dumps, save_native, to_data

__all__ = ["dumps", "loads", "read_native", "save_native", "schema", "to_data"]
