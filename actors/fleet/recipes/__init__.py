"""Devices made from recipes, many in one call."""
