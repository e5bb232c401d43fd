"""Several processes compute together: `corejax.distributed`, `corejax.multihost_utils`, `python -m corejax launch`."""
