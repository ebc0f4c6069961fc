"""What files add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.data.files import messages, reads
from trunkline.actors.data.files.actor import FileTree
from trunkline.actors.data.files.jobs import DELETE_DIRECTORY, DELETE_PRIVATE_DIRECTORY
from trunkline.actors.data.files.kind import FILE, PRIVATE_FILE
from trunkline.actors.data.files.portable import FILES

FEATURE: Final = Feature(
    kinds=(FILE, PRIVATE_FILE),
    actors=(FileTree,),
    jobs=(DELETE_DIRECTORY, DELETE_PRIVATE_DIRECTORY),
    uploaded={FILE.name: FileTree.kind, PRIVATE_FILE.name: FileTree.kind},
    readers={
        messages.GetFile: reads.get_file,
        messages.ListFiles: reads.list_files,
        messages.FindFile: reads.find_file,
    },
    portable=FILES,
)
