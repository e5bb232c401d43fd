"""Checks of derivatives: differences, linearity, symbolic zeros."""
