"""Applications and their data as files: bundles, archives, templates."""
