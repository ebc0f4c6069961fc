// The draft as a picture that is changed by hand, with what can be added and the part that is selected beside it.

import { exactJson } from "../../lib/exact.js";
import { link, route, setQuery } from "../../lib/router.js";
import { html, useEffect, useMemo, useRef, useState } from "../../lib/ui.js";
import { Card } from "../../parts/basics.js";
import { Canvas } from "./canvas.js";
import { added, connected, duplicated, freeOutput, inserted, lineProblem, placed, removed } from "./change.js";
import { Graph } from "./graph.js";
import { BOX, editLayout, freePlace, layeredLayout, placeInLine } from "./layout.js";
import { Palette, usePalette } from "./palette.js";
import { problemsOf } from "./part.js";
import { PartForm } from "./part-form.js";
import { edgesOf, loopsOf, outputsOf, partsOf } from "./shape.js";

const COPY = { x: 24, y: 84 }; // from a part to its copy
const BELOW = BOX.height + 58;
const ASIDE = BOX.width + 28;
const NARROW = matchMedia("(max-width: 60rem)");

// problems: the keys of parts that are marked. told: problems of the server, of the draft as it is saved. refused: the key
// of the part that the server has refused with `error`.
export function Draw({ app, flow, draft, error, problems, told, refused, flowClass }) {
  const { query } = route.value;
  const selected = query.node || "";
  const [arranged, setArranged] = useState(0);
  const isNarrow = useNarrow();
  const palette = usePalette(app);
  const search = useRef(null);
  const hands = useRef(null); // of the canvas; a narrow window has none
  const parts = useMemo(() => partsOf(draft.value), [draft.value]);
  // Where parts stand and lines go depends on a little of them only, and takes long if there are many.
  const found = edgesOf(parts);
  const placing = useMemo(() => {
    const loops = loopsOf(parts, found);
    return { edges: found, loops, layout: editLayout(parts, found, loops) };
  }, [exactJson([parts.map(({ key, type, x, y, to }) => [key, type, x, y, to]), found])]);
  const drawn = useMemo(() => ({ parts, ...placing }), [parts, placing]);
  const { edges, loops, layout } = placing;
  const part = parts.find((each) => each.key === selected);
  const [line, setLine] = useState(null); // a line that was drawn to nowhere, see follow
  const next = line && parts.some((each) => each.key === line.part) ? line : null;
  const select = (key) => {
    setLine(null);
    setQuery({ node: key });
  };
  // A line ended on nothing: choose in the palette to what it leads.
  const follow = (given) => {
    select(given.part);
    setLine(given);
    search.current?.focus();
  };
  const href = (key) => link("/applications", app, "workflows", flow, "edit", { node: key });
  const change = (definition, options) => {
    hands.current?.keep();
    draft.change(definition, options);
  };

  // Add a part: where it was dropped, into the line of `edge` if there is one; where a line ended, or below the selected
  // part, and connected to it; else in the middle.
  const put = (offer, dropped, edge) => {
    const follows = !dropped && part && offer.kind === "node";
    const output = follows ? next?.output ?? freeOutput(part) : undefined;
    const at = dropped || (follows ? next : null);
    let base = draft.value;
    const room = edge && placeInLine(layout.places, edge, dropped);
    if (at) base = placed(base, new Map([...(layout.isSaved ? [] : layout.places), ...(room?.moved || [])]));
    const source = offer.make(base);
    if (at || layout.isSaved || !parts.length) {
      const middle = hands.current?.middle() || { x: layout.x + layout.width / 2, y: layout.y + layout.height };
      const place = room?.place || freePlace(layout.places.values(), at || (output === undefined ? middle : below(part, output, layout.places.get(part.key))));
      source.meta = { ...source.meta, ...place };
    }
    const { definition, key } = added(base, offer.kind, source);
    const isConnected = output !== undefined && !lineProblem(partsOf(definition), part.key, output, key);
    if (edge) change(inserted(definition, edge, key).definition);
    else change(isConnected ? connected(definition, part.key, output, key).definition : definition);
    select(key);
  };
  const arrange = () => {
    draft.change(placed(draft.value, layeredLayout(parts, edges, loops).places));
    setArranged(arranged + 1);
  };
  const duplicate = () => {
    const at = layout.places.get(part.key);
    const place = layout.isSaved ? freePlace(layout.places.values(), { x: at.x + COPY.x, y: at.y + COPY.y }) : undefined;
    const { definition, key } = duplicated(draft.value, part.key, place);
    change(definition);
    select(key);
  };
  const remove = () => {
    change(removed(draft.value, part.key));
    select("");
  };
  const sentences = part ? [...(refused === part.key && error ? [error.message] : []), ...problemsOf(part, told).map((each) => each.message)] : [];
  return html`<div class="flow-draw">
    <div class="stack flow-stays">
      ${isNarrow ? html`<${Graph} definition=${draft.value} selected=${selected} href=${href} problems=${problems} label="The draft." />`
        : html`<${Canvas} ...${{ draft, drawn, change, selected, select, href, problems, hands, arranged, follow, next }} add=${put} />`}
      <div class="row"><button class="small" disabled=${!parts.length} onClick=${arrange}>Arrange in layers</button>
        <span class="quiet">${isNarrow ? "In a narrow window the picture is only to look at. Parts are added, connected and changed below it."
          : "Drag a box to move it, and a handle below it to another box to connect them. Click a line to remove it. Arrow keys move the selected part, Delete removes it."}</span></div>
    </div>
    <div class=${part ? "stack with-part" : "stack"}>
      <${Palette} data=${palette} flowClass=${flowClass} put=${put} grab=${(event, offer) => hands.current?.start(event, { kind: "add", offer })} isOpen=${!part} field=${search} end=${() => setLine(null)}
        follows=${next && part && (outputsOf(part)[next.output]?.name ? `${part.label}, ${outputsOf(part)[next.output].name}` : part.label)} />
      ${part && html`<${PartForm} key=${`${part.key} ${part.type} ${draft.version}`} ...${{ app, draft, part, parts, select }} palette=${palette.value} problems=${sentences} forget=${() => setLine(null)}>
        <div class="row"><button type="button" onClick=${duplicate}>Duplicate</button><button type="button" class="danger" onClick=${remove}>Delete part</button></div></${PartForm}>`}
      ${selected && !part && html`<${Card} title="Not in the draft"><p>The draft has no part <code>${selected}</code>.</p></${Card}>`}
    </div>
  </div>`;
}

// Where a part stands that follows an output of another.
function below(part, output, place) {
  const aside = output - (outputsOf(part).length - 1) / 2;
  return { x: place.x + aside * ASIDE, y: place.y + BELOW };
}

function useNarrow() {
  const [isNarrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const changed = () => setNarrow(NARROW.matches);
    NARROW.addEventListener("change", changed);
    return () => NARROW.removeEventListener("change", changed);
  }, []);
  return isNarrow;
}
