"""Estimators: parameters in, a problem for a solver, fitted attributes out; nothing numerical."""
