"""The login of a device with a certificate, which its connection has presented and TLS has verified.

The certificate must be stored with an application that has the device, be active, and admit the device. The call names
no application, so each one that has certificates is asked for the device: a few reads each.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from trunkline.actors.access.authority import Admitted
from trunkline.actors.access.certificates import CERTIFICATE, FINGERPRINT
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.values.certificates import fingerprint_text
from trunkline.actors.core.values.errors import Unauthorized
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.core.values.timestamps import parse_iso
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.people.accounts.reach import key_admits
from trunkline.store import keys
from trunkline.store.snapshot import Snapshot


class AdmitCertificate(Message, frozen=True):
    """Check that a certificate admits a device. `certificate` is in DER."""

    device: bytes
    certificate: bytes
    now_ms: int


def admit_certificate(reading: Reading, message: AdmitCertificate) -> Admitted:
    """The device with the record of the certificate. Raises `Unauthorized`, always with the same sentence."""
    snapshot, fingerprint = reading.snapshot, fingerprint_text(sha256(message.certificate).digest())
    for number, application_id in enumerate(_applications(snapshot)):
        reading.check_time(is_long=number > SCAN_INLINE_MAX // 2)
        device = records.find(snapshot, DEVICE, application_id, message.device)
        application = records.find(snapshot, APPLICATION, ROOT, application_id)
        if device is None or application is None:
            continue
        key = keys.unique_key(CERTIFICATE.name, application_id, FINGERPRINT, fingerprint)
        id = snapshot.get(keys.UNIQUE, key)
        found = None if id is None else records.find(snapshot, CERTIFICATE, application_id, id)
        if (
            found is not None
            and found.doc["status"] == "active"
            and parse_iso(found.doc["certificateInfo"]["notValidBefore"]) <= message.now_ms
            and message.now_ms < parse_iso(found.doc["certificateInfo"]["notValidAfter"])
            and key_admits(found.doc, device.doc | {"id": message.device.hex()})
        ):
            owner_type = application.doc["ownerType"]
            return Admitted(application_id, device.doc, found.id, found.doc, owner_type)
    raise Unauthorized("deviceId and the certificate of this connection do not fit together.")


def _applications(snapshot: Snapshot) -> Iterator[bytes]:
    """The applications that have certificates; one search in the store for each."""
    low = keys.kind_prefix(CERTIFICATE.name)
    end = keys.prefix_end(low)
    while (key := next(snapshot.keys(keys.RECORDS, low, end), None)) is not None:
        application = bytes(key[-2 * keys.ID_BYTES : -keys.ID_BYTES])
        yield application
        after = keys.prefix_end(keys.record_prefix(CERTIFICATE.name, application))
        assert after is not None
        low = after
