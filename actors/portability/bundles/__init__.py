"""Bundles: a whole application as one zip file, written by an export and read by an import."""
