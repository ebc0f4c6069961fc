"""Alarm rules: what they say, which devices they are about, and how they stand for a device."""
