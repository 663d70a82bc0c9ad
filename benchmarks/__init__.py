"""Speed and memory against peers, as ratios measured in one run: ``python -m benchmarks --help``."""
