// The outlines of land that are a part of the console (map/land.json), as paths of the projected world. They are loaded when the
// first map is shown.

import { projected } from "./projection.js";

let loaded = null;

// A promise of {land: to be filled, lines: coasts and borders}.
export function outlines() {
  loaded ||= fetch("/console/map/land.json").then((answer) => answer.json()).then(pathsOf);
  loaded.catch(() => (loaded = null));
  return loaded;
}

function pathsOf({ steps, arcs, rings }) {
  const lines = arcs.map((text) => decoded(text).map(([x, y]) => projected([x / steps, y / steps])));
  const land = new Path2D(), all = new Path2D();
  for (const ring of rings) {
    let first = true;
    for (const number of ring) {
      const line = number < 0 ? [...lines[-1 - number]].reverse() : lines[number];
      for (const [x, y] of line) {
        if (first) land.moveTo(x, y);
        else land.lineTo(x, y);
        first = false;
      }
    }
    land.closePath();
  }
  for (const line of lines) line.forEach(([x, y], at) => (at ? all.lineTo(x, y) : all.moveTo(x, y)));
  return { land, lines: all };
}

// The points of a line, see tests/console/land.py.
function decoded(text) {
  const points = [];
  let x = 0, y = 0, value = 0, shift = 0, isX = true;
  for (let at = 0; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 63;
    value += (digit & 31) * 2 ** shift;
    shift += 5;
    if (digit & 32) continue;
    const number = value % 2 ? -(value + 1) / 2 : value / 2;
    if (isX) x += number;
    else points.push([x, (y += number)]);
    isX = !isX;
    value = shift = 0;
  }
  return points;
}
