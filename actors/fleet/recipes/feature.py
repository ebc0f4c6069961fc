"""What device recipes add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.core.records.portable import portable
from trunkline.actors.fleet.devices.record.portable import ABOVE
from trunkline.actors.fleet.recipes.bulk_create import BULK_CREATE, open_recipe
from trunkline.actors.fleet.recipes.messages import OpenRecipe
from trunkline.actors.fleet.recipes.resource import RECIPES

FEATURE: Final = Feature(
    resources=(RECIPES,),
    jobs=(BULK_CREATE,),
    readers={OpenRecipe: open_recipe},
    portable=(portable("DeviceRecipe", RECIPES, created_by="deviceRecipes.post", references=ABOVE),),
)
