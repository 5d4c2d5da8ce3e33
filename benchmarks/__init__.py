"""How fast keepfor is, as ratios to the straightforward way; `python -m benchmarks` prints them."""
