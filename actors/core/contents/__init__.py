"""Contents: the bytes of files, in an object store beside the records that name them."""
