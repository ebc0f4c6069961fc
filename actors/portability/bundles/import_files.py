"""The files of bundles that are imported: beside the results of jobs, each under the name of its job.

So they are removed when the job has ended, like the results of other jobs that have expired.
"""

from __future__ import annotations

import io
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO

import trio

from trunkline.actors.core.contents.downloads import PIECE_BYTES
from trunkline.actors.core.runtime.turns import as_domain_error
from trunkline.actors.core.values.errors import PayloadTooLarge, StorageFull
from trunkline.actors.platform.jobs.results import Results, name_of
from trunkline.actors.portability.bundles.folder_tree import ZipTree
from trunkline.actors.portability.bundles.portable import MANIFEST
from trunkline.actors.portability.bundles.reader import Bundle
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.limits.table import Limits


def folder_of(file: BinaryIO, limits: Limits) -> ZipTree | None:
    """The template folder in a zip; None for a bundle, or what is neither. Raises `Invalid` or `PayloadTooLarge`."""
    tree = ZipTree(file, limits)
    return None if tree.root is None or MANIFEST in tree.names else tree


def open_bundle(system: System, owner: bytes, id: bytes) -> io.BufferedReader | None:
    """The bundle of a job; None if there is none. Blocks."""
    content = system.store.results.open(name_of(owner, id))
    return None if content is None else io.BufferedReader(content, PIECE_BYTES)


class BundleUpload:
    """A bundle that is being received for the job `id`. An async context manager; without `finish` nothing is kept.

    The job must be queued within it.
    """

    def __init__(self, system: System, id: bytes) -> None:
        self._system = system
        self.id = id
        self._draft = system.store.results.write(id.hex())
        self._gathered = bytearray()
        self._room = 0
        self._name = ""
        self.size_bytes = 0

    async def __aenter__(self) -> BundleUpload:
        def begin() -> int:
            self._draft.__enter__()
            used_bytes = sum(size for _, size in self._system.store.results.sizes())
            return self._system.limits.job_results_bytes_max - used_bytes

        try:
            self._room = await trio.to_thread.run_sync(begin)
        except StoreError as failure:
            raise as_domain_error(failure) from failure
        return self

    async def write(self, piece: bytes) -> None:
        """Add a piece. Raises PayloadTooLarge above `bundle_bytes_max`, StorageFull if there is no room."""
        self.size_bytes += len(piece)
        most = self._system.limits.bundle_bytes_max
        if self.size_bytes > most:
            raise PayloadTooLarge(f"importBundle: has more than {most} bytes, which is the limit.")
        if self.size_bytes > self._room:
            raise StorageFull(
                "The results of jobs leave no room for this bundle; try again when some have expired."
            )
        self._gathered += piece
        if len(self._gathered) >= PIECE_BYTES:
            await self._flush()

    async def finish(self, owner: bytes) -> None:
        """Keep the file for the job of this owner.

        Raises Invalid or PayloadTooLarge if it is no bundle at all; then it is not kept.
        """
        await self._flush()
        results, name = self._system.store.results, name_of(owner, self.id)
        self._name = name
        self._system.component(Results).received.add(name)

        def keep() -> None:
            self._draft.finish(name)
            file = open_bundle(self._system, owner, self.id)
            assert file is not None
            with file:
                try:
                    if folder_of(file, self._system.limits) is None:
                        Bundle(file, self._system.limits)
                except BaseException:
                    results.remove(name)
                    raise

        try:
            await trio.to_thread.run_sync(keep)
        except StoreError as failure:
            raise as_domain_error(failure) from failure

    async def _flush(self) -> None:
        piece, self._gathered = bytes(self._gathered), bytearray()
        try:
            await trio.to_thread.run_sync(self._draft.write, piece)
        except StoreError as failure:
            raise as_domain_error(failure) from failure

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._system.component(Results).received.discard(self._name)
        self._draft.__exit__(kind, error, trace)
