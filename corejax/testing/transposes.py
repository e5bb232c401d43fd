"""Checks of transposes and pullbacks: the dot-product identity."""
