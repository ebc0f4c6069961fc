"""The wire: connections, parsing, the engine. Knows no actor."""
