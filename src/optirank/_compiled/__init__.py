"""The only room that imports numba: loops that take arrays and return arrays."""
