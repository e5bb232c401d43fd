"""Linear algebra: factorisations, triangular systems, eigenvalues, in the last two axes."""

__all__: list[str] = []
