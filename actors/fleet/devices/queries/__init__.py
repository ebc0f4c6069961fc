"""Questions about many devices and their states: selection, lists, series, counts, exports."""
