"""Alternatives to Trunkline, each started by the bench and given the same load."""
