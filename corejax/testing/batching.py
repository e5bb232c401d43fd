"""Checks of batching: a map is a loop."""
