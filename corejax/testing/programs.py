"""Checks of programs: printing, keys, determinism, leaks."""
