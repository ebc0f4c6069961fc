// The draft as a picture that is changed by hand, with the part that is selected beside it.

import { link, route, setQuery } from "../../lib/router.js";
import { html, useMemo, useRef, useState } from "../../lib/ui.js";
import { Notice } from "../../parts/basics.js";
import { Canvas } from "./canvas.js";
import { duplicated, placed, removed } from "./change.js";
import { editLayout, freePlace, layeredLayout } from "./layout.js";
import { PartPanel } from "./part.js";
import { edgesOf, loopsOf, partsOf } from "./shape.js";

const NEXT = { x: 24, y: 84 }; // from a part to its copy

export function Draw({ app, flow, draft, problems, told }) {
  const { query } = route.value;
  const selected = query.node || "";
  const [arranged, setArranged] = useState(0);
  const hands = useRef(null);
  const drawn = useMemo(() => {
    const parts = partsOf(draft.value), edges = edgesOf(parts), loops = loopsOf(parts, edges);
    return { parts, edges, loops, layout: editLayout(parts, edges, loops) };
  }, [draft.value]);
  const { parts, edges, loops, layout } = drawn;
  const part = parts.find((each) => each.key === selected);
  const select = (key) => setQuery({ node: key });
  const href = (key) => link("/applications", app, "workflows", flow, "edit", { node: key });
  const arrange = () => {
    draft.change(placed(draft.value, layeredLayout(parts, edges, loops).places));
    setArranged(arranged + 1);
  };
  const duplicate = () => {
    const at = layout.places.get(part.key);
    const place = layout.isSaved ? freePlace(layout.places.values(), { x: at.x + NEXT.x, y: at.y + NEXT.y }) : undefined;
    hands.current.keep();
    const { definition, key } = duplicated(draft.value, part.key, place);
    draft.change(definition);
    select(key);
  };
  const remove = () => {
    hands.current.keep();
    draft.change(removed(draft.value, part.key));
    select("");
  };
  return html`<div class="flow-beside with-panel">
    <div class="stack flow-stays">
      <${Canvas} ...${{ draft, drawn, selected, select, href, problems, hands, arranged }} change=${draft.change} />
      <div class="row"><button class="small" disabled=${!parts.length} onClick=${arrange}>Arrange in layers</button>
        <span class="quiet">Drag a box to move it, and a handle below it to another box to connect them. A click on a line shows what removes it.</span></div>
    </div>
    <div class="stack">
      ${part && html`<${PartPanel} definition=${draft.value} selected=${selected} href=${href} problems=${told}>
        <div class="row"><button onClick=${duplicate}>Duplicate</button><button class="danger" onClick=${remove}>Delete part</button></div></${PartPanel}>`}
      ${!part && html`<${Notice}>Select a part to see what it does.</${Notice}>`}
    </div>
  </div>`;
}
