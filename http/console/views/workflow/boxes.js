// The shapes of a picture of a workflow: boxes, lines, and texts that have room.

import { plural } from "../../lib/format.js";
import { html } from "../../lib/ui.js";
import { BOX } from "./layout.js";
import { triggerText, typeText } from "./shape.js";

const TEXT_WIDTH = BOX.width - 42;
const FONTS = { name: "600 13px", detail: "11px", line: "11px" };
const KNOWN_MAX = 5000;
const OUTPUTS_SIDE_BY_SIDE_MAX = 4;
const CATEGORIES = { trigger: 1, logic: 4, data: 6, output: 2, debug: 8, experience: 3 };

export const Arrow = () => html`<defs><marker id="flow-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>`;

// What a box says: its second line, and what became of it in a run.
export function boxTexts({ part, marks, broken }) {
  const seen = marks?.visited.get(part.key);
  const failed = marks && marks.failed === part.key;
  const passed = seen || marks?.trigger === part.key;
  const detail = part.kind === "trigger" ? `${typeText(part.type)} ${triggerText(part.source)}` : typeText(part.type);
  const state = [failed && "failed here", seen && `visited ${plural(seen.count, "time")}`, marks && !passed && "not visited", broken && "cannot run"].filter(Boolean);
  return {
    detail, title: [part.label, detail, ...state, part.note].filter(Boolean).join(", "),
    badge: failed ? "failed" : seen?.count > 1 ? `${seen.count}x` : broken ? "cannot run" : "",
    classes: ["flow-box", part.kind, failed && "failed", marks && (passed ? "passed" : "missed")].filter(Boolean),
    bad: failed || broken,
  };
}

// A box without what it does when it is clicked. `texts` of boxTexts.
export function BoxShape({ part, place, texts: { title, detail, badge, bad } }) {
  const x = place.x - BOX.width / 2, y = place.y - BOX.height / 2;
  return html`<title>${title}</title>
    <rect x=${x} y=${y} width=${BOX.width} height=${BOX.height} rx=${part.kind === "trigger" ? BOX.height / 2 : 7} />
    <circle class="kind-${CATEGORIES[part.category] || 8}" cx=${x + 17} cy=${place.y} r="5" />
    <text class="name" x=${x + 30} y=${place.y - 4}>${short(part.label, "name", TEXT_WIDTH)}</text>
    <text class="detail" x=${x + 30} y=${place.y + 13}>${short(detail, "detail", TEXT_WIDTH)}</text>
    ${badge && html`<g class=${bad ? "flow-badge bad" : "flow-badge"}>
      <rect x=${x + BOX.width - 12 - badge.length * 6.5} y=${y - 9} width=${badge.length * 6.5 + 14} height="18" rx="9" />
      <text x=${x + BOX.width - 5 - badge.length * 3.25} y=${y + 4} text-anchor="middle">${badge}</text></g>`}`;
}

const pen = document.createElement("canvas").getContext("2d");
const known = new Map(); // what was measured, because pictures are drawn often

// As much of a text as has room, in px of the picture.
function short(text, font, width) {
  const key = `${font} ${width} ${text}`;
  if (!known.has(key)) {
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(key, measured(text, font, width));
  }
  return known.get(key);
}

function measured(text, font, width) {
  pen.font = `${FONTS[font]} ${getComputedStyle(document.body).fontFamily}`;
  if (pen.measureText(text).width <= width) return text;
  let length = Math.min(text.length, 60);
  while (length > 1 && pen.measureText(text.slice(0, length) + "\u2026").width > width) length -= 1;
  return text.slice(0, length) + "\u2026";
}

// Where the line of an output begins.
export const outputPlace = (place, output, outputs) => ({ x: place.x - BOX.width / 2 + (BOX.width * (output + 1)) / (outputs + 1), y: place.y + BOX.height / 2 });

// A curve through points, from top to bottom.
export function curve(points) {
  let path = `M${points[0].x} ${points[0].y}`;
  for (let at = 1; at < points.length; at++) {
    const one = points[at - 1], other = points[at];
    const bend = other.y - one.y < 30 ? 46 : (other.y - one.y) / 2;
    path += `C${one.x} ${one.y + bend} ${other.x} ${other.y - bend} ${other.x} ${other.y}`;
  }
  return path;
}

export function linePoints(edge, layout) {
  const to = layout.places.get(edge.to);
  return [outputPlace(layout.places.get(edge.from), edge.output, edge.outputs), ...(layout.vias.get(edge) || []), { x: to.x, y: to.y - BOX.height / 2 }];
}

// The room of an output at the lower side of a box.
export const outputRoom = (outputs) => BOX.width / (outputs + 1);

// The name of an output below its place; those of many outputs are in two rows.
export function OutputName({ name, output, outputs, at }) {
  if (!name) return null;
  const rows = outputs > OUTPUTS_SIDE_BY_SIDE_MAX ? 2 : 1;
  return html`<text x=${at.x} y=${at.y + 13 + (output % rows) * 11} text-anchor="middle">${short(name, "line", outputRoom(outputs) * rows - 2)}</text>`;
}

// From the end of the body of a loop back to the loop.
export function LoopLine({ from, to }) {
  const x1 = from.x - BOX.width / 2, x2 = to.x - BOX.width / 2;
  const bend = Math.min(x1, x2) - 46;
  return html`<g class="flow-line back"><path d=${`M${x1} ${from.y}C${bend} ${from.y} ${bend} ${to.y} ${x2} ${to.y}`} marker-end="url(#flow-arrow)" />
    <text x=${bend + 12} y=${(from.y + to.y) / 2} text-anchor="middle">next item</text></g>`;
}
