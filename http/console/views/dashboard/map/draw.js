// Draws a map on a canvas: land or tiles, the ways of devices, and their places with a shape and a colour for each level.

import { clustered, goingOn, sizeOf, tilesOf, worldsOf } from "./projection.js";

const SINGLE_MAX = 60; // so many points are drawn as they are, more are put together
const CELL_PX = 44;
const RADIUS_PX = 7;
const NAMED_MAX = 12;
const FULL = 2 * Math.PI;

export const SHAPES = ["circle", "triangle", "square", "diamond"];

// The path of a shape round the origin.
function shape(context, name, radius) {
  context.beginPath();
  if (name === "circle") context.arc(0, 0, radius, 0, FULL);
  else if (name === "square") context.rect(-radius * 0.85, -radius * 0.85, radius * 1.7, radius * 1.7);
  else {
    const corners = name === "triangle" ? [[0, -1.15], [1.1, 0.85], [-1.1, 0.85]] : [[0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]];
    corners.forEach(([x, y], at) => context[at ? "lineTo" : "moveTo"](x * radius, y * radius));
    context.closePath();
  }
}

// What a map shows is {points (projected), names, levels, colours (by level), ways: [{points, color}]}. Gives what was drawn, to
// find what is under a pointer: [{x, y, members}].
export function draw(canvas, { view, map, land, tiles, colours }) {
  const ratio = devicePixelRatio, width = canvas.width / ratio, height = canvas.height / ratio;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = colours.water;
  context.fillRect(0, 0, width, height);
  const size = sizeOf(view), left = width / 2 - view.x * size, top = height / 2 - view.y * size;
  if (land) {
    context.save();
    context.setTransform(ratio * size, 0, 0, ratio * size, ratio * left, ratio * top);
    context.beginPath();
    context.rect(0, 0, 1, 1);
    context.clip();
    context.fillStyle = colours.land;
    context.fill(land.land, "evenodd");
    context.strokeStyle = colours.line;
    context.lineWidth = 0.8 / size;
    context.stroke(land.lines);
    context.restore();
  }
  for (const each of tiles ? tilesOf(view, width, height) : []) {
    const image = tiles(each);
    if (image) context.drawImage(image, each.x, each.y, each.size, each.size);
  }
  context.save();
  context.beginPath();
  context.rect(left, top, size, size);
  context.clip();
  context.lineJoin = "round";
  for (const { points, color } of map.ways) {
    context.strokeStyle = color;
    context.lineWidth = 2;
    context.beginPath();
    const way = goingOn(points);
    for (const worlds of worldsOf(way)) way.forEach(([x, y], at) => context[at ? "lineTo" : "moveTo"]((x + worlds) * size + left, y * size + top));
    context.stroke();
  }
  context.restore();
  const found = clustered(map.points, map.levels, view, width, height, map.points.length > SINGLE_MAX ? CELL_PX : 0);
  // The worst are drawn last, so that nothing covers them.
  found.sort((a, b) => a.level - b.level);
  for (const each of found) mark(context, each, map, colours);
  if (found.length <= NAMED_MAX) label(context, found, map, colours, width);
  return found;
}

function mark(context, { x, y, members, level }, map, colours) {
  const many = members.length > 1, radius = many ? Math.min(22, 9 + 3 * Math.log10(members.length) * 1.6) : RADIUS_PX;
  context.save();
  context.translate(x, y);
  shape(context, many ? "circle" : SHAPES[level % SHAPES.length], radius);
  context.fillStyle = map.colours[level];
  context.globalAlpha = many ? 0.9 : 1;
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = colours.ring;
  context.lineWidth = 1.5;
  context.stroke();
  if (many) {
    context.fillStyle = "#fff";
    context.font = `600 ${members.length > 999 ? 10 : 11}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.strokeStyle = "rgb(0 0 0 / 65%)";
    context.lineWidth = 2.5;
    context.strokeText(String(members.length), 0, 0.5);
    context.fillText(String(members.length), 0, 0.5);
    if (map.labels) {
      // The shape of the gravest level, for who does not see the colour.
      context.translate(radius * 0.75, -radius * 0.75);
      shape(context, SHAPES[level % SHAPES.length], 4.5);
      context.fillStyle = map.colours[level];
      context.fill();
      context.strokeStyle = colours.ring;
      context.lineWidth = 1.2;
      context.stroke();
    }
  }
  context.restore();
}

function label(context, found, map, colours, width) {
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.lineWidth = 3;
  context.strokeStyle = colours.ring;
  context.fillStyle = colours.text;
  for (const { x, y, members } of found) {
    if (members.length > 1) continue;
    const right = x > width * 0.55;
    context.textAlign = right ? "right" : "left";
    context.strokeText(map.names[members[0]], x + (right ? -11 : 11), y);
    context.fillText(map.names[members[0]], x + (right ? -11 : 11), y);
  }
}
