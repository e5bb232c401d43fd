"""Windows and convolutions: what is computed from the neighbourhood of each element."""

__all__: list[str] = []
