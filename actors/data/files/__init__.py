"""Files: private and public ones, in a tree of directories for each."""
