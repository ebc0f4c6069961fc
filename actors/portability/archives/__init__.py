"""Archives: what devices reported, events and data tables as files, in a folder or a bucket."""
