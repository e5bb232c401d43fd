"""Checks of all orderings of transformations to depth three."""
