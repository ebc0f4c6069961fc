"""The archives of this server: the operator's choices, and where the archive of an application lies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.platform.applications.archive_config import SECRET_FIELD
from trunkline.actors.portability.archives.slices import Place
from trunkline.actors.portability.archives.tables import Format
from trunkline.limits.errors import SettingsError
from trunkline.limits.extras import how_to_install, lacks, library_missing
from trunkline.store.archive_bucket import Bucket
from trunkline.store.archive_folder import ArchiveFolder, Target
from trunkline.store.leftovers import SHARED_LEFT_S
from trunkline.store.s3 import S3Place

if TYPE_CHECKING:
    from trunkline.limits.settings import Settings
    from trunkline.store.keyring import Keyring

FOLDER: Final = "archives"
"""The folder in the data directory, unless the settings name another one."""


class Archives:
    """Finds the archive of an application."""

    def __init__(self, settings: Settings, keyring: Keyring, *, is_shared: bool) -> None:
        """Raises `SettingsError` if the format needs a library that is missing. Removes drafts that a crash left.

        `is_shared`: other processes write into the folder too.
        """
        if settings.archive_format == "parquet" and lacks("parquet"):
            raise SettingsError(
                "archive_format", f"is parquet, and {library_missing('parquet')}", how_to_install("parquet")
            )
        self._format: Format = "parquet" if settings.archive_format == "parquet" else "csv"
        path = Path(settings.data_dir) / FOLDER if settings.archives is None else Path(settings.archives)
        self._folder = ArchiveFolder(path)
        self._endpoint = settings.s3_endpoint
        self._keyring = keyring
        self._connections = settings.limits.archive_put_files_max
        self._folder.remove_drafts(left_s=SHARED_LEFT_S if is_shared else 0.0)

    def place(self, application: bytes, config: Doc) -> Place:
        """The archive of an application. Slow for a bucket: for a worker thread."""
        return Place(
            application, config, self._format, self._target(application, config), self._folder.drafts
        )

    def _target(self, application: bytes, config: Doc) -> Target:
        directory, id = config.get("directory"), application.hex()
        s3 = config.get("s3")
        if s3 is None:
            return self._folder.directory(f"{id}/{directory}" if directory else id)
        if lacks("s3"):
            raise Invalid(
                f"archiveConfig.s3: {library_missing('s3')} on this server; its operator can {how_to_install('s3')}."
            )
        if "secretAccessKey" not in s3:  # it was discarded with a lost encryption key
            raise Invalid("archiveConfig.s3.secretAccessKey: is lost on this server; set it again.")
        secret = self._keyring.unseal(
            s3["secretAccessKey"], kind=APPLICATION.name, id=application, field=SECRET_FIELD
        )
        place = S3Place(
            name=s3["bucket"],
            prefix=f"{directory}/{id}" if directory else id,
            endpoint=self._endpoint,
            region=s3.get("region"),
            access_key=s3["accessKeyId"],
            secret_key=secret,
        )
        return Bucket(place, self._connections)
