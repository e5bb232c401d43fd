"""Linear algebra: factorisations, triangular systems, eigenvalues; of batches of matrices."""

__all__: list[str] = []
