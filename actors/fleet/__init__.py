"""Devices, what is deployed on them, and the recipes that they are made from."""
