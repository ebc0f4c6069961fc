"""Routes of bundles, archives and application templates."""
