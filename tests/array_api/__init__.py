"""The array API standard: is `corejax.numpy` what it says, in names, signatures, dtypes and values?

Two judges: array-api-strict, which has all of the standard and nothing else, is called with the same arrays
(`compare`); and the standard's own test suite, of which no copy is here, is run from a checkout of it (`suite`).
"""
