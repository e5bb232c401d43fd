"""Checks of what a plugin declares: refusals, zero derivatives, fallbacks."""
