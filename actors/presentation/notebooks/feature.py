"""What notebooks and resource jobs add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.presentation.notebooks.actor import Notebook, Notebooks
from trunkline.actors.presentation.notebooks.export import INPUT_EXPORT, prepare_inputs
from trunkline.actors.presentation.notebooks.messages import PrepareInputs
from trunkline.actors.presentation.notebooks.portable import NOTEBOOK_PARTS
from trunkline.actors.presentation.notebooks.resource import NOTEBOOKS
from trunkline.actors.presentation.notebooks.resource_jobs import RESOURCE_JOBS

FEATURE: Final = Feature(
    resources=(NOTEBOOKS, RESOURCE_JOBS),
    actors=(Notebook, Notebooks),
    jobs=(INPUT_EXPORT,),
    readers={PrepareInputs: prepare_inputs},
    portable=NOTEBOOK_PARTS,
)
