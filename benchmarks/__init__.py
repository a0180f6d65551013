"""Measured side by side with what a user would write instead: `make bench` and `make bench-full`."""
