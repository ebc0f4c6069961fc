"""Everything that outlives the process: LMDB, CBOR and the files of one data directory.

Writers hand a `Batch` to the `Journal`; readers take a `Snapshot`. Nobody outside this room knows what lies
beneath, and this room knows nothing of devices, messages or HTTP.
"""
