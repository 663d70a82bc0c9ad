"""Data as the solvers see them: views of arrays in memory, and files."""
