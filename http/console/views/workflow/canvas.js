// The picture of a draft, which is changed by mouse, touch and keyboard: boxes are moved, lines are drawn from the handles
// below a box and removed, parts are deleted.

import { plural } from "../../lib/format.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../../lib/ui.js";
import { note } from "../../parts/notes.js";
import { Arrow, BoxShape, boxTexts, curve, linePoints, LoopLine, OutputName, outputPlace, outputRoom } from "./boxes.js";
import { connected, disconnected, fitsIntoLines, inserted, lineProblem, placed, removed } from "./change.js";
import { useGesture } from "./gesture.js";
import { startOf } from "./graph.js";
import { BOX, freePlace, placeInLine } from "./layout.js";
import { outputsOf, partsOf } from "./shape.js";
import { useViewport, ZoomButtons } from "./viewport.js";

const ARROWS = { ArrowLeft: { x: -1, y: 0 }, ArrowRight: { x: 1, y: 0 }, ArrowUp: { x: 0, y: -1 }, ArrowDown: { x: 0, y: 1 } };
const STEP = 8;
const FAST_STEPS = 5;
const NAME_BELOW = 5;

const edgeKey = (edge) => `${edge.from} ${edge.output} ${edge.to}`;

// drawn: {parts, edges, loops, layout} of the draft. change(definition, options): a step of the draft. select(key): open a
// part, "" none; href(key): the address of that. add(offer, place, edge): put what was dragged from the palette, into a
// line if there is an edge. follow(line): choose what a line leads to that ended on nothing, {part, output, x, y}; next:
// that line, until it is chosen. hands: gets what the rest of the page uses, {start(event, gesture), keep(), middle()}.
// arranged: a number that changes when all of it is to be shown again.
export function Canvas({ draft, drawn, change, selected, select, href, add, follow, next, problems, hands, arranged }) {
  const { parts, edges, loops, layout } = drawn;
  const view = useViewport(layout, startOf(parts, layout), arranged);
  const [line, setLine] = useState("");
  const chosen = edges.find((edge) => edgeKey(edge) === line);
  const named = (key) => parts.find((part) => part.key === key)?.label || key;

  const unsaved = layout.isSaved ? [] : layout.places;
  const move = (key, wanted, { towards, merge } = {}) => {
    const others = [...layout.places].filter(([each]) => each !== key).map(([, place]) => place);
    const place = freePlace(others, wanted, towards);
    change(placed(draft.value, new Map([...unsaved, [key, place]])), { merge });
  };
  const insert = (key, edge, wanted) => {
    const { place, moved } = placeInLine(new Map([...layout.places].filter(([each]) => each !== key)), edge, wanted);
    const result = inserted(placed(draft.value, new Map([...unsaved, ...moved, [key, place]])), edge, key);
    change(result.definition);
    return result.key;
  };
  // The line into which what is dragged would be put.
  const lineFor = ({ kind, line: under, part, offer }) => {
    if (!under || kind === "line" || offer?.kind === "trigger") return undefined;
    const held = offer ? partsOf({ nodes: [offer.make(draft.value)] })[0] : parts.find((each) => each.key === part);
    return held && fitsIntoLines(held, edges) ? edges.find((edge) => edgeKey(edge) === under) : undefined;
  };
  const ended = (gesture) => {
    if (gesture.kind === "add") return add(gesture.offer, { x: gesture.x, y: gesture.y }, lineFor(gesture));
    if (gesture.kind === "move") {
      const wanted = { x: gesture.x - gesture.dx, y: gesture.y - gesture.dy }, into = lineFor(gesture);
      if (!into) move(gesture.part, wanted);
      const key = into ? insert(gesture.part, into, wanted) : gesture.part;
      focusOn.current = `[data-part="${CSS.escape(key)}"]`;
      return open(key);
    }
    if (!gesture.over) return follow({ part: gesture.part, output: gesture.output, x: gesture.x, y: gesture.y + BOX.height / 2 });
    if (gesture.over === gesture.part) return undefined;
    const problem = lineProblem(parts, gesture.part, gesture.output, gesture.over);
    if (problem) return note(problem, "bad");
    return change(connected(draft.value, gesture.part, gesture.output, gesture.over).definition);
  };
  const gesture = useGesture(view, ended);
  const { live } = gesture;
  const focusOn = useRef("");
  useLayoutEffect(() => {
    if (!focusOn.current) return;
    view.svg.current.querySelector(focusOn.current)?.focus();
    focusOn.current = "";
  });
  useEffect(() => {
    const place = layout.places.get(selected);
    if (place) view.reveal(place, BOX);
  }, [selected]);
  useEffect(() => () => { hands.current = null; }, []);
  const { now, size } = view;
  // Where a part comes that follows no other: the first one stands above, so that there is room for what follows it.
  const middle = () => ({ x: now.x + size.width / now.scale / 2, y: now.y + (parts.length ? size.height / now.scale / 2 : BOX.height * 1.5) });
  hands.current = { start: gesture.start, keep: view.keep, middle };

  const down = (event) => {
    gesture.wasDragged(); // of a drag that no click has ended
    const output = event.target.closest("[data-output]"), box = event.target.closest("[data-part]");
    if (output) return gesture.start(event, { kind: "line", part: output.dataset.of, output: Number(output.dataset.output) });
    if (!box) return view.given.onPointerDown(event);
    const place = layout.places.get(box.dataset.part), point = view.pointAt(event);
    return gesture.start(event, { kind: "move", part: box.dataset.part, dx: point.x - place.x, dy: point.y - place.y });
  };
  // A click that ends a drag opens nothing; one on nothing ends what is selected.
  const clicked = (event) => {
    if (gesture.wasDragged()) event.preventDefault();
    else view.given.onClickCapture(event);
    if (event.defaultPrevented) event.stopPropagation();
    else if (event.target === view.svg.current) open("");
  };
  const open = (key) => {
    setLine("");
    select(key);
  };
  const cut = (edge) => {
    change(disconnected(draft.value, edge.from, edge.output, edge.to));
    setLine("");
    view.svg.current.focus();
  };
  const keys = (event) => {
    const at = event.target.closest?.("[data-part]")?.dataset.part;
    const arrow = ARROWS[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (arrow && at && at === selected) {
      const place = layout.places.get(at), far = STEP * (event.shiftKey ? FAST_STEPS : 1);
      move(at, { x: place.x + arrow.x * far, y: place.y + arrow.y * far }, { towards: arrow, merge: `move ${at}` });
    } else if ((event.key === "Delete" || event.key === "Backspace") && chosen) {
      cut(chosen);
    } else if ((event.key === "Delete" || event.key === "Backspace") && at) {
      change(removed(draft.value, at));
      select("");
      view.svg.current.focus();
    } else if (event.key === "Escape" && (chosen || selected || next)) {
      if (chosen) setLine("");
      else open("");
    } else {
      view.given.onKeyDown(event);
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  // Made anew only when something else than the place and the size of the picture changes, or what is dragged.
  const dragged = live?.kind === "move" ? { key: live.part, x: live.x - live.dx, y: live.y - live.dy } : null;
  const over = live?.kind === "line" && live.over && !lineProblem(parts, live.part, live.output, live.over) ? live.over : "";
  const into = live && lineFor(live);
  const current = useRef({});
  // A box that is pressed gets the focus before it is clicked or dragged, and stays below the pointer until then.
  current.current = { open, href, reveal: (key) => gesture.isHeld() || view.reveal(layout.places.get(key), BOX), choose: (edge) => {
    focusOn.current = ".flow-cut";
    setLine(edgeKey(edge));
  } };
  const shapes = (own, shownLayout) => {
    const isHere = (key) => (dragged ? (key === dragged.key) === own : !own);
    const near = (edge) => (dragged ? (edge.from === dragged.key || edge.to === dragged.key) === own : !own);
    return html`
      ${loops.filter((loop) => near({ from: loop.cap, to: loop.loop })).map((loop) => html`<${LoopLine} key=${`loop ${loop.cap}`} from=${shownLayout.places.get(loop.cap)} to=${shownLayout.places.get(loop.loop)} />`)}
      ${edges.filter(near).map((edge) => html`<${Line} key=${`line ${edgeKey(edge)}`} edge=${edge} layout=${shownLayout} current=${edgeKey(edge) === line} choose=${() => current.current.choose(edge)} />`)}
      ${parts.filter((part) => isHere(part.key)).map((part) => html`<${Box} key=${`part ${part.key}`} part=${part} place=${shownLayout.places.get(part.key)} current=${part.key === selected} over=${part.key === over} broken=${problems.has(part.key)}
        href=${current.current.href(part.key)} open=${() => current.current.open(part.key)} reveal=${() => current.current.reveal(part.key)} />`)}`;
  };
  const still = useMemo(() => shapes(false, layout), [drawn, selected, line, over, dragged?.key, [...problems].join()]);
  const moving = dragged && shapes(true, { ...layout, places: new Map([...layout.places, [dragged.key, dragged]]) });
  const drawing = live?.kind === "line" ? live : !live && next ? { ...next, y: next.y - BOX.height / 2 } : null; // a line that leads nowhere yet
  const from = drawing && parts.find((part) => part.key === drawing.part);
  return html`<div class="flow-graph flow-canvas">
    <svg ...${view.given} role="group" tabindex="-1" aria-label=${`The draft. ${plural(parts.length, "part")}.`} class=${live ? `is-${live.kind}` : undefined}
      onPointerDown=${down} onClickCapture=${clicked} onKeyDown=${keys}>
      <${Arrow} />${still}${moving}
      ${from && html`<path class="flow-drawn" d=${curve([outputPlace(layout.places.get(from.key), drawing.output, outputsOf(from).length), drawing])} />`}
      ${live?.kind === "add" && live.inside && html`<rect class="flow-ghost" x=${live.x - BOX.width / 2} y=${live.y - BOX.height / 2} width=${BOX.width} height=${BOX.height} rx="7" />`}
      ${into && html`<path class="flow-into" data-into=${edgeKey(into)} d=${curve(linePoints(into, layout))} />`}
      ${chosen && !live && html`<${Cut} at=${middleOf(linePoints(chosen, layout))} label=${`Remove the line from ${named(chosen.from)} to ${named(chosen.to)}`} act=${() => cut(chosen)} />`}
    </svg>
    ${parts.length === 0 && html`<p class="flow-empty quiet">The draft is empty. Begin with what starts it: add a trigger.</p>`}
    <${ZoomButtons} view=${view} />
  </div>`;
}

// A box with the handles of its outputs. The handles are for pointers; by keyboard, lines are drawn in the panel.
function Box({ part, place, current, over, broken, href, open, reveal }) {
  const texts = boxTexts({ part, broken });
  const outputs = outputsOf(part);
  const click = (event) => {
    event.preventDefault();
    open();
  };
  return html`<g>
    <a class=${[...texts.classes, current && "current", over && "over"].filter(Boolean).join(" ")} href=${href} data-part=${part.key} aria-current=${current ? "true" : undefined} onClick=${click} onFocus=${reveal}>
      <${BoxShape} ...${{ part, place, texts }} /></a>
    ${outputs.map(({ output, name }) => {
      const at = outputPlace(place, output, outputs.length);
      return html`<g class="flow-output" data-of=${part.key} data-output=${output}><title>${`Drag to a part: ${name || "leads to"}`}</title>
        <circle class="hit" cx=${at.x} cy=${at.y} r=${Math.min(12, outputRoom(outputs.length) / 2)} /><circle cx=${at.x} cy=${at.y} r="5.5" />
        <${OutputName} name=${name} output=${output} outputs=${outputs.length} at=${{ x: at.x, y: at.y + NAME_BELOW }} /></g>`;
    })}</g>`;
}

function Line({ edge, layout, current, choose }) {
  const path = curve(linePoints(edge, layout));
  return html`<g class=${current ? "flow-line current" : "flow-line"} data-line=${edgeKey(edge)} onClick=${choose}><path class="hit" d=${path} /><path d=${path} marker-end="url(#flow-arrow)" /></g>`;
}

// What removes a line, in its middle.
function Cut({ at, label, act }) {
  const pressed = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };
  return html`<g class="flow-cut" role="button" tabindex="0" aria-label=${label} onClick=${act} onKeyDown=${pressed}>
    <circle cx=${at.x} cy=${at.y} r="12" /><path d=${`M${at.x - 4} ${at.y - 4}l8 8m0 -8l-8 8`} /></g>`;
}

function middleOf(points) {
  const at = Math.floor((points.length - 1) / 2);
  const one = points[at], other = points[at + 1];
  return { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 };
}
