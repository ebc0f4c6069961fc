"""Whatever the picture of a draft does to its definition, the server accepts it."""

from __future__ import annotations

import json

import pytest

from tests.console.console_page import ConsolePage
from tests.console.drawing import drawn
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow


CHANGES = """async (seed, count, steps) => {
    const at = (name) => import(`/console/views/workflow/${name}.js`);
    const change = await at("change"), shape = await at("shape"), layout = await at("layout");
    const { offersOf } = await at("palette");
    let state = seed;
    const below = (most) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * most);
    };
    const offers = offersOf(PALETTE, "cloud");
    let definition = DEFINITION;
    const found = [];
    for (let step = 0; step < steps; step++) {
        const parts = shape.partsOf(definition);
        const any = () => parts[below(parts.length)];
        const one = parts.length ? any() : null, other = parts.length ? any() : null;
        const output = one ? below(shape.outputsOf(one).length || 1) : 0;
        const edges = shape.edgesOf(parts);
        const places = () => layout.editLayout(parts, edges, shape.loopsOf(parts, edges)).places;
        const act = below(10);
        if (act < 2 || !one) {
            const offer = offers[below(offers.length)];
            definition = change.added(definition, offer.kind, offer.make(definition)).definition;
        } else if (act < 4) {
            if (!change.lineProblem(parts, one.key, output, other.key))
                definition = change.connected(definition, one.key, output, other.key).definition;
        } else if (act === 4 && edges.length) {
            const edge = edges[below(edges.length)];
            definition = change.disconnected(definition, edge.from, edge.output, edge.to);
        } else if (act === 5) {
            definition = change.duplicated(definition, one.key).definition;
        } else if (act === 6 && below(2)) {
            definition = change.removed(definition, one.key);
        } else if (act === 8 && edges.length) {
            const alone = parts.find((part) => change.fitsIntoLines(part, edges));
            if (alone) definition = change.inserted(definition, edges[below(edges.length)], alone.key).definition;
        } else if (act === 7) {
            const id = below(2) ? "id " + step : other.source.id || "";
            if (one.kind === "node" && !change.idProblem(definition, one.key, id))
                definition = change.renamed(definition, one.key, id);
        } else {
            const free = layout.freePlace(places().values(), { x: below(900), y: below(900) });
            definition = change.placed(definition, new Map([...places(), [one.key, free]]));
        }
        if (step % Math.ceil(steps / count) === 0) found.push(structuredClone(definition));
    }
    return [...found, definition];
}"""


async def test_the_server_accepts_what_any_sequence_of_changes_makes(
    server: Server, console: ConsolePage
) -> None:
    path = await drawn(server, console, enabled=False)
    palette = await server.call("GET", f"{path.rpartition('/')[0]}/palette")
    kept = {"id": "kept", "type": "OddNode", "config": {"deep": [1]}}
    noid = {"type": "DebugNode", "meta": {"x": 1, "y": 2}}
    grouped = [
        {"type": "deviceTag", "key": f"kind/{kind}", "meta": {"uiId": "both"}, "outputIds": [["kept"]]}
        for kind in ("fan", "pump")
    ]
    start = {"triggers": grouped, "nodes": [kept, noid], "globals": [{"key": "a", "json": "1"}]}
    script = CHANGES.replace("PALETTE", json.dumps(palette)).replace("DEFINITION", json.dumps(start))
    for seed in range(12):
        for definition in await console.run(f"({script})({seed}, 4, 120)"):
            answer = await server.call("PATCH", path, definition)
            assert answer["triggers"] == definition["triggers"]
            assert answer["nodes"] == definition["nodes"]
            assert answer["globals"] == start["globals"]
            odd = [each for each in definition["nodes"] if each["type"] == "OddNode"]
            assert all(each["config"] == kept["config"] for each in odd)
