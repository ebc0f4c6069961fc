"""What deployments add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.fleet.deployments import messages, reads
from trunkline.actors.fleet.deployments.actor import Deployments
from trunkline.actors.fleet.deployments.export import DEPLOYMENT_EXPORT
from trunkline.actors.fleet.deployments.kind import EDGE_DEPLOYMENT, EMBEDDED_DEPLOYMENT

FEATURE: Final = Feature(
    kinds=(EDGE_DEPLOYMENT, EMBEDDED_DEPLOYMENT),
    actors=(Deployments,),
    jobs=(DEPLOYMENT_EXPORT,),
    readers={
        messages.GetEdgeDeployment: reads.get_edge_deployment,
        messages.GetEmbeddedDeployment: reads.get_embedded_deployment,
        messages.ListEdgeDeployments: reads.list_edge_deployments,
        messages.ListEmbeddedDeployments: reads.list_embedded_deployments,
        messages.SelectDevices: reads.select_devices,
        messages.SelectDeployments: reads.select_deployments,
    },
)
