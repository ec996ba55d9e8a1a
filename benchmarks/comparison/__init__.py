"""The same problems in several simulators: what they are, how they are timed, and what is written about it."""
