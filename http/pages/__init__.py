"""Pages for the operators of the server: the OpenAPI document and the metrics."""
