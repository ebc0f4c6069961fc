// The picture of a workflow: its triggers and nodes as boxes, its lines, and what a run passed. It can be moved and made
// larger and smaller. Each box is a link, so Tab and Enter work.

import { plural } from "../../lib/format.js";
import { html, useMemo, useRef } from "../../lib/ui.js";
import { Arrow, BoxShape, boxTexts, curve, linePoints, LoopLine, OutputName } from "./boxes.js";
import { BOX, layeredLayout, savedLayout } from "./layout.js";
import { edgesOf, loopsOf, partsOf, wasTaken } from "./shape.js";
import { useViewport, ZoomButtons } from "./viewport.js";

// definition: triggers and nodes. arrange: "layers", else as the editor has saved it where that can be read.
// selected: the key of a part; href(key): the address that shows it. problems: the keys of parts that cannot run.
// marks: as marksOf. label: what the picture shows, for those who do not see it.
export function Graph({ definition, arrange, selected, href, problems = new Set(), marks, label }) {
  const drawn = useMemo(() => {
    const parts = partsOf(definition), edges = edgesOf(parts), loops = loopsOf(parts, edges);
    const layout = (arrange !== "layers" && savedLayout(parts)) || (parts.length ? layeredLayout(parts, edges, loops) : null);
    return { parts, edges, loops, layout, types: new Map(parts.map((part) => [part.key, part.type])) };
  }, [definition, arrange]);
  if (!drawn.layout) return html`<p class="quiet">This version has no triggers and no nodes.</p>`;
  return html`<${Canvas} ...${{ drawn, selected, href, problems, marks, label }} />`;
}

function Canvas({ drawn, selected, href, problems, marks, label }) {
  const { layout, parts, edges, loops, types } = drawn;
  const view = useViewport(layout, startOf(parts, layout), layout);
  const current = useRef({});
  current.current = { href, reveal: (key) => view.reveal(layout.places.get(key), BOX) }; // a box that gets the focus by a key
  // Made anew only when something else than the place and the size of the picture changes.
  const content = useMemo(() => html`
    ${loops.map((loop) => html`<${LoopLine} key=${loop.cap} from=${layout.places.get(loop.cap)} to=${layout.places.get(loop.loop)} />`)}
    ${edges.map((edge) => html`<${Line} ...${{ edge, layout, taken: marks && wasTaken(marks, edge, types.get(edge.from)) }} />`)}
    ${parts.map((part) => html`<${Box} key=${part.key} ...${{ part, place: layout.places.get(part.key), marks }} href=${(key) => current.current.href(key)}
      reveal=${(key) => current.current.reveal(key)} current=${part.key === selected} broken=${problems.has(part.key)} />`)}`,
  [drawn, selected, marks, [...problems].join(), href("")]);
  const height = Math.min(Math.max(layout.height * Math.min(1, view.size.width / layout.width), 220), Math.max(0.72 * innerHeight, 300));
  return html`<div class="flow-graph">
    <svg ...${view.given} role="group" aria-label=${`${label} ${plural(parts.length, "part")}.`} style=${{ height: `${Math.round(height)}px` }}><${Arrow} />${content}</svg>
    <${ZoomButtons} view=${view} />
  </div>`;
}

// The middle of the triggers, or of the first node.
export function startOf(parts, layout) {
  const triggers = parts.filter((part) => part.kind === "trigger");
  const first = triggers.length ? triggers : parts.slice(0, 1);
  return first.length ? first.reduce((sum, part) => sum + layout.places.get(part.key).x, 0) / first.length : undefined;
}

function Box({ part, place, href, reveal, current, broken, marks }) {
  const texts = boxTexts({ part, marks, broken });
  return html`<a class=${[...texts.classes, current && "current"].filter(Boolean).join(" ")} href=${href(part.key)} aria-current=${current ? "true" : undefined} onFocus=${() => reveal(part.key)}>
    <${BoxShape} ...${{ part, place, texts }} /></a>`;
}

function Line({ edge, layout, taken }) {
  const points = linePoints(edge, layout);
  return html`<g class=${taken ? "flow-line taken" : "flow-line"}><path d=${curve(points)} marker-end="url(#flow-arrow)" />
    <${OutputName} name=${edge.name} output=${edge.output} outputs=${edge.outputs} at=${points[0]} /></g>`;
}
