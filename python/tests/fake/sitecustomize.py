"""Puts the fake simulator where the native module would be, in every process that has this folder on its path."""

import sys

import fake_native

sys.modules["narrows._native"] = fake_native
