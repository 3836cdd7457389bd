"""Steers the native module of every process that has this folder on its path."""

import steer  # noqa: F401
