"""What NumPy computes at once for arrays in host memory: by modules as the functions that it stands for.

Each takes what the public function of its name takes, in NumPy's way, and raises `NotDirectly` for what that function does
otherwise: `corejax.plugin.directly` then calls it.
"""
