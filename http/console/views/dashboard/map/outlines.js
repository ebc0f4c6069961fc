// The outlines of land that are a part of the console (map/land.json), as paths of the projected world. They are loaded when the
// first map is shown.

import { goingOn, projected, worldsOf } from "./projection.js";

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
    const points = goingOn(ring.flatMap((number) => (number < 0 ? [...lines[-1 - number]].reverse() : lines[number])));
    const [first] = points, last = points.at(-1);
    // One that goes round the world has a pole inside.
    if (Math.abs(last[0] - first[0]) > 0.5) points.push([last[0], Math.round(last[1])], [first[0], Math.round(first[1])]);
    add(land, points, true);
  }
  for (const line of lines) add(all, goingOn(line));
  return { land, lines: all };
}

// Add a line to a path, and what lies beyond 0 or 1 on the other side of the world.
function add(path, points, closed = false) {
  for (const worlds of worldsOf(points)) {
    points.forEach(([x, y], at) => (at ? path.lineTo(x + worlds, y) : path.moveTo(x + worlds, y)));
    if (closed) path.closePath();
  }
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
