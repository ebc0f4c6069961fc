"""Limits, settings and the sliding window that enforces throttles. No I/O, no trio, no clock: `now` is passed in."""
