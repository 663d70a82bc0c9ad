"""Solvers: the next iterate. When to stop and what to report is the loop's business."""
