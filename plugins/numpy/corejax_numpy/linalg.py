"""`corejax.numpy.linalg`: norms, systems of equations, factorisations, eigenvalues; of batches of matrices."""

from __future__ import annotations
