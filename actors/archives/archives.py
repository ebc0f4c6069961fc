"""The archives of this server: the operator's choices, and where the archive of an application lies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunkline.actors.archives.tables import Format, has_parquet
from trunkline.actors.archives.writing import Place
from trunkline.actors.records.kind import Doc
from trunkline.actors.values.errors import Invalid
from trunkline.limits.errors import SettingsError
from trunkline.store.archive_folder import ArchiveFolder, Target

if TYPE_CHECKING:
    from trunkline.limits.settings import Settings

FOLDER: Final = "archives"
"""The folder in the data directory, unless the settings name another one."""


class Archives:
    """Finds the archive of an application."""

    def __init__(self, settings: Settings) -> None:
        """Raises `SettingsError` if the format needs a library that is missing. Removes drafts that a crash left."""
        if settings.archive_format == "parquet" and not has_parquet():
            raise SettingsError(
                "archive_format",
                "is parquet, and the library pyarrow is missing",
                "install it: pip install 'trunkline[parquet]'",
            )
        self._format: Format = "parquet" if settings.archive_format == "parquet" else "csv"
        path = Path(settings.data_dir) / FOLDER if settings.archives is None else Path(settings.archives)
        self._folder = ArchiveFolder(path)
        self._folder.remove_drafts()

    def place(self, application: bytes, config: Doc) -> Place:
        """The archive of an application."""
        return Place(
            application, config, self._format, self._target(application, config), self._folder.drafts
        )

    def _target(self, application: bytes, config: Doc) -> Target:
        directory, id = config.get("directory"), application.hex()
        if "s3" in config:
            raise Invalid("archiveConfig.s3: buckets are not supported by this server yet.")
        return self._folder.directory(f"{id}/{directory}" if directory else id)
