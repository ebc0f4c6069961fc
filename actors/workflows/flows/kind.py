"""The kinds of workflow records: the workflow itself, and its versions.

The record of a workflow is small, because lists scan records: its triggers, nodes and globals are in FLOWS. It keeps
the type and the key of each trigger of the version that runs, so that the workflows of a device or a webhook are found
without reading more.
"""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.kind import Kind

DEVELOP: Final = "develop"
"""The name of the editable state of a workflow. It has no record of its own."""

DEFAULT: Final = "default"
"""The name that stands for the version that runs: `defaultVersionId`, without which it is `develop`."""

RESERVED: Final = (DEVELOP, DEFAULT)

CLASSES: Final = frozenset({"cloud", "experience"})
"""The classes of workflows that run here; those of the others run on devices, or within other workflows."""

AUTHORS: Final = "authors"
"""The field of a record in whose name its definition is run (`core/records/mandate.py`): of a workflow for
`develop`."""
TRIGGER_KEYS: Final = "triggerKeys"
"""The field of a record with `[type, key]` of each trigger: of a version its own, of a workflow those that run."""

USED: Final = "customNodeIds"
"""The field of a workflow's record with the ids of the custom nodes that `develop` uses."""


FLOW: Final = Kind(
    name="flow",
    noun="workflow",
    facet="flowClass",
    facet_indexes=("name", "creationDate", "lastUpdated"),
    counted_as="flowCount",
    audited_as="Flow",
)

FLOW_VERSION: Final = Kind(
    name="flowVersion",
    noun="workflow version",
    indexes=("version", "creationDate", "lastUpdated"),
    facet="flowId",
    facet_indexes=("version", "creationDate", "lastUpdated"),
    facet_counted=False,
    counted_as=None,
    audited_as=None,
)
