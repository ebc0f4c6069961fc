"""Persistent storage: LMDB, CBOR and the files of one data directory.

Writers submit a `Batch` to the `Journal`; readers open a `Snapshot`. Only this package uses LMDB and CBOR, and
it knows nothing of devices, messages or HTTP.
"""
