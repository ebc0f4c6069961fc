"""The API document: operations, fields and examples."""
