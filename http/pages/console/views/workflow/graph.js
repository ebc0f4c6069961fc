// The picture of a workflow: its triggers and nodes as boxes, its lines, and what a run passed. It can be moved by
// dragging and by the arrow keys, and made larger and smaller. Each box is a link, so Tab and Enter work.

import { plural } from "../../lib/format.js";
import { html, useEffect, useMemo, useRef, useState } from "../../lib/ui.js";
import { BOX, layeredLayout, savedLayout } from "./layout.js";
import { edgesOf, loopsOf, partsOf, triggerText, typeText, wasTaken } from "./shape.js";

const ZOOM = { min: 0.05, max: 3, step: 1.25, readable: 0.75 };
const MOVE_PX = 60;
const TEXT_WIDTH = BOX.width - 42;
const FONTS = { name: "600 13px", detail: "11.5px", line: "11px" };
const CATEGORIES = { trigger: 1, logic: 4, data: 6, output: 2, debug: 8, experience: 3 };

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
  const svg = useRef(null);
  const [size, setSize] = useState(null);
  const [view, setView] = useState(null); // {x, y, scale}: the top left corner, and pixels for each unit
  const drag = useDrag(svg, setView);

  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setSize({ width: entry.contentRect.width, height: entry.contentRect.height }));
    watch.observe(svg.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => setView(null), [layout]);

  const shownSize = size || { width: 800, height: 400 };
  const now = view || fitted(layout, shownSize, ZOOM.readable, startOf(parts, layout));
  const zoom = (factor, at = { x: shownSize.width / 2, y: shownSize.height / 2 }) => setView((before) => zoomed(before || now, factor, at));
  const latest = useRef(null);
  latest.current = { now, zoom };
  useEffect(() => {
    // Without the control key the wheel scrolls the page. Preact would add a passive listener.
    const wheel = (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = svg.current.getBoundingClientRect();
      latest.current.zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1, { x: event.clientX - box.left, y: event.clientY - box.top });
    };
    svg.current.addEventListener("wheel", wheel, { passive: false });
    return () => svg.current?.removeEventListener("wheel", wheel);
  }, []);

  const keys = (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const move = moves[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (move) setView({ ...now, x: now.x + (move[0] * MOVE_PX) / now.scale, y: now.y + (move[1] * MOVE_PX) / now.scale });
    else if (event.key === "+" || event.key === "=") zoom(ZOOM.step);
    else if (event.key === "-") zoom(1 / ZOOM.step);
    else if (event.key === "0") setView(fitted(layout, shownSize, ZOOM.min));
    else return;
    event.preventDefault();
  };
  // A box that gets the focus by a key is moved into sight.
  const reveal = (key) => {
    const { x, y } = layout.places.get(key);
    const width = shownSize.width / now.scale, height = shownSize.height / now.scale;
    const out = x - BOX.width / 2 < now.x || x + BOX.width / 2 > now.x + width || y - BOX.height / 2 < now.y || y + BOX.height / 2 > now.y + height;
    if (out && !drag.isDown()) setView({ ...now, x: x - width / 2, y: y - height / 2 });
  };
  const current = useRef({});
  current.current = { href, reveal };
  // Made anew only when something else than the place and the size of the picture changes.
  const content = useMemo(() => html`
    ${loops.map((loop) => html`<${LoopLine} key=${loop.cap} from=${layout.places.get(loop.cap)} to=${layout.places.get(loop.loop)} />`)}
    ${edges.map((edge) => html`<${Line} ...${{ edge, layout, taken: marks && wasTaken(marks, edge, types.get(edge.from)) }} />`)}
    ${parts.map((part) => html`<${Box} key=${part.key} ...${{ part, place: layout.places.get(part.key), marks }} href=${(key) => current.current.href(key)}
      reveal=${(key) => current.current.reveal(key)} current=${part.key === selected} broken=${problems.has(part.key)} />`)}`,
  [drawn, selected, marks, [...problems].join(), href("")]);
  const height = Math.min(Math.max(layout.height * Math.min(1, shownSize.width / layout.width), 220), Math.max(0.72 * innerHeight, 300));
  const name = `${label} ${plural(parts.length, "part")}.`;
  return html`<div class="flow-graph">
    <svg ref=${svg} role="group" aria-label=${name} style=${{ height: `${Math.round(height)}px` }} onKeyDown=${keys}
      viewBox=${`${now.x} ${now.y} ${shownSize.width / now.scale} ${shownSize.height / now.scale}`}
      onClickCapture=${(event) => drag.ended() && event.preventDefault()} onDragStart=${(event) => event.preventDefault()}
      onPointerDown=${(event) => drag.down(event, now)}>
      <defs><marker id="flow-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
      ${content}
    </svg>
    <div class="flow-zoom" role="group" aria-label="Size of the picture">
      <button class="small" aria-label="Larger" onClick=${() => zoom(ZOOM.step)}>+</button>
      <button class="small" aria-label="Smaller" onClick=${() => zoom(1 / ZOOM.step)}>\u2212</button>
      <button class="small" onClick=${() => setView(fitted(layout, shownSize, ZOOM.min))}>Fit</button>
    </div>
  </div>`;
}

// All of it in sight and in the middle, but not smaller than `least`; then its top is shown, and what is around `middle`.
function fitted(layout, size, least, middle = layout.width / 2) {
  const scale = Math.max(Math.min(size.width / layout.width, size.height / layout.height, 1), least);
  const width = size.width / scale, height = size.height / scale;
  const x = width >= layout.width ? (layout.width - width) / 2 : Math.min(Math.max(middle - width / 2, 0), layout.width - width);
  return { scale, x, y: Math.min(0, (layout.height - height) / 2) };
}

// The middle of the triggers, or of the first node.
function startOf(parts, layout) {
  const triggers = parts.filter((part) => part.kind === "trigger");
  const first = triggers.length ? triggers : parts.slice(0, 1);
  return first.reduce((sum, part) => sum + layout.places.get(part.key).x, 0) / first.length;
}

function zoomed(view, factor, at) {
  const scale = Math.min(Math.max(view.scale * factor, ZOOM.min), ZOOM.max);
  return { scale, x: view.x + at.x / view.scale - at.x / scale, y: view.y + at.y / view.scale - at.y / scale };
}

// Dragging with one pointer moves the picture, with two it changes the size as well. A click that ends a drag opens nothing.
function useDrag(svg, setView) {
  const pointers = useRef(new Map());
  const wasDragged = useRef(false);
  const view = useRef(null);
  useEffect(() => {
    const move = (event) => {
      const before = pointers.current.get(event.pointerId);
      if (!before) return;
      const after = { x: event.clientX, y: event.clientY };
      const [other] = [...pointers.current].filter(([id]) => id !== event.pointerId).map(([, each]) => each);
      const dx = after.x - before.x, dy = after.y - before.y;
      if (!wasDragged.current && Math.hypot(dx, dy) < 4) return;
      wasDragged.current = true;
      let next = { ...view.current, x: view.current.x - dx / view.current.scale, y: view.current.y - dy / view.current.scale };
      if (other) {
        const box = svg.current.getBoundingClientRect();
        const factor = Math.hypot(after.x - other.x, after.y - other.y) / (Math.hypot(before.x - other.x, before.y - other.y) || 1);
        next = zoomed(view.current, factor, { x: other.x - box.left, y: other.y - box.top });
      }
      view.current = next;
      setView(next);
      pointers.current.set(event.pointerId, after);
    };
    const up = (event) => pointers.current.delete(event.pointerId);
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    addEventListener("pointercancel", up);
    return () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
      removeEventListener("pointercancel", up);
    };
  }, []);
  return {
    down: (event, now) => {
      if (event.button !== 0) return;
      wasDragged.current = false;
      view.current = now;
      pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
    },
    isDown: () => pointers.current.size > 0,
    // Whether a click ends a drag; asked once for each.
    ended: () => {
      const dragged = wasDragged.current;
      wasDragged.current = false;
      return dragged;
    },
  };
}

function Box({ part, place, href, reveal, current, broken, marks }) {
  const seen = marks?.visited.get(part.key);
  const failed = marks && marks.failed === part.key;
  const passed = seen || marks?.trigger === part.key;
  const detail = part.kind === "trigger" ? `${typeText(part.type)} ${triggerText(part.source)}` : typeText(part.type);
  const state = [failed && "failed here", seen && `visited ${plural(seen.count, "time")}`, marks && !passed && "not visited", broken && "cannot run"].filter(Boolean);
  const classes = ["flow-box", part.kind, current && "current", failed && "failed", marks && (passed ? "passed" : "missed")].filter(Boolean).join(" ");
  const badge = failed ? "failed" : seen?.count > 1 ? `${seen.count}x` : broken ? "cannot run" : "";
  const x = place.x - BOX.width / 2, y = place.y - BOX.height / 2;
  return html`<a class=${classes} href=${href(part.key)} aria-current=${current ? "true" : undefined} onFocus=${() => reveal(part.key)}>
    <title>${[part.label, detail, ...state, part.note].filter(Boolean).join(", ")}</title>
    <rect x=${x} y=${y} width=${BOX.width} height=${BOX.height} rx=${part.kind === "trigger" ? BOX.height / 2 : 7} />
    <circle class="kind-${CATEGORIES[part.category] || 8}" cx=${x + 17} cy=${place.y} r="5" />
    <text class="name" x=${x + 30} y=${place.y - 4}>${short(part.label, "name", TEXT_WIDTH)}</text>
    <text class="detail" x=${x + 30} y=${place.y + 13}>${short(detail, "detail", TEXT_WIDTH)}</text>
    ${badge && html`<g class=${failed || broken ? "flow-badge bad" : "flow-badge"}>
      <rect x=${x + BOX.width - 12 - badge.length * 6.5} y=${y - 9} width=${badge.length * 6.5 + 14} height="18" rx="9" />
      <text x=${x + BOX.width - 5 - badge.length * 3.25} y=${y + 4} text-anchor="middle">${badge}</text></g>`}
  </a>`;
}

const pen = document.createElement("canvas").getContext("2d");

// As much of a text as has room, in px of the picture.
function short(text, font, width) {
  pen.font = `${FONTS[font]} ${getComputedStyle(document.body).fontFamily}`;
  if (pen.measureText(text).width <= width) return text;
  let length = Math.min(text.length, 60);
  while (length > 1 && pen.measureText(text.slice(0, length) + "\u2026").width > width) length -= 1;
  return text.slice(0, length) + "\u2026";
}

function Line({ edge, layout, taken }) {
  const from = layout.places.get(edge.from), to = layout.places.get(edge.to);
  const start = { x: from.x - BOX.width / 2 + (BOX.width * (edge.output + 1)) / (edge.outputs + 1), y: from.y + BOX.height / 2 };
  const end = { x: to.x, y: to.y - BOX.height / 2 };
  const points = [start, ...(layout.vias.get(edge) || []), end];
  let path = `M${start.x} ${start.y}`;
  for (let at = 1; at < points.length; at++) {
    const one = points[at - 1], other = points[at];
    const bend = other.y - one.y < 30 ? 46 : (other.y - one.y) / 2;
    path += `C${one.x} ${one.y + bend} ${other.x} ${other.y - bend} ${other.x} ${other.y}`;
  }
  return html`<g class=${taken ? "flow-line taken" : "flow-line"}><path d=${path} marker-end="url(#flow-arrow)" />
    ${edge.name && html`<text x=${start.x} y=${start.y + 13} text-anchor="middle">${short(edge.name, "line", Math.max(BOX.width / (edge.outputs + 1) - 2, 34))}</text>`}</g>`;
}

// From the end of the body of a loop back to the loop.
function LoopLine({ from, to }) {
  const x1 = from.x - BOX.width / 2, x2 = to.x - BOX.width / 2;
  const bend = Math.min(x1, x2) - 46;
  return html`<g class="flow-line back"><path d=${`M${x1} ${from.y}C${bend} ${from.y} ${bend} ${to.y} ${x2} ${to.y}`} marker-end="url(#flow-arrow)" />
    <text x=${bend + 12} y=${(from.y + to.y) / 2} text-anchor="middle">next item</text></g>`;
}
