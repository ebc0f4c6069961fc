// Places on the plane of web maps (Mercator): the world is a square from 0 to 1, with west and north at 0. Knows nothing of
// the page.

const LATITUDE_MAX = 85.05;
export const TILE_PX = 256;
const ZOOM_MIN = 0, ZOOM_MAX = 18, FIT_MAX = 13;
const MARGIN_PX = 40;

export function projected([longitude, latitude]) {
  const angle = (Math.min(LATITUDE_MAX, Math.max(-LATITUDE_MAX, latitude)) * Math.PI) / 180;
  return [(longitude + 180) / 360, 0.5 - Math.log(Math.tan(angle) + 1 / Math.cos(angle)) / (2 * Math.PI)];
}

// The points of a line, which goes on beyond 0 or 1 where it crosses the meridian at 180 degrees.
export function goingOn(points) {
  let worlds = 0;
  return points.map(([x, y], at) => {
    const step = at ? x - points[at - 1][0] : 0;
    if (Math.abs(step) > 0.5) worlds -= Math.sign(step);
    return [x + worlds, y];
  });
}

// By how many worlds a line is moved to be seen: 0, and those that bring what lies beyond 0 or 1 to the other side.
export function worldsOf(points) {
  const [low, high] = points.reduce(([least, most], [x]) => [Math.min(least, x), Math.max(most, x)], [Infinity, -Infinity]);
  return [-1, 0, 1].filter((worlds) => high + worlds >= 0 && low + worlds <= 1);
}

// A view is {x, y: its middle, zoom}. The px of the whole world:
export const sizeOf = ({ zoom }) => TILE_PX * 2 ** zoom;

// The view that shows all of these points in a window of this size.
export function fitted(points, width, height) {
  if (!points.length) return { x: 0.5, y: 0.4, zoom: Math.log2(Math.max(width, 1) / TILE_PX) };
  const xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
  const ends = [xs, ys].map((values) => values.reduce(([low, high], each) => [Math.min(low, each), Math.max(high, each)], [1, 0]));
  const [[left, right], [top, bottom]] = ends;
  const room = (px, span) => Math.log2(Math.max(px - 2 * MARGIN_PX, 40) / TILE_PX / Math.max(span, 1e-9));
  return within({ x: (left + right) / 2, y: (top + bottom) / 2, zoom: Math.min(FIT_MAX, room(width, right - left), room(height, bottom - top)) });
}

// The view with a zoom that is so much larger; what is at (px, py) of the window stays there.
export function zoomed(view, by, px, py, width, height) {
  const next = within({ ...view, zoom: view.zoom + by });
  const before = sizeOf(view), after = sizeOf(next);
  return within({ ...next, x: view.x + (px - width / 2) * (1 / before - 1 / after), y: view.y + (py - height / 2) * (1 / before - 1 / after) });
}

export const shifted = (view, across, down) => within({ ...view, x: view.x - across / sizeOf(view), y: view.y - down / sizeOf(view) });

const within = ({ x, y, zoom }) => ({ x: Math.min(1, Math.max(0, x)), y: Math.min(1, Math.max(0, y)), zoom: Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, zoom)) });

// The tiles that a window shows: [{column, row, zoom, x, y: px of the upper left corner, size}]. There are 2 ** zoom of them
// from west to east.
export function tilesOf(view, width, height) {
  const zoom = Math.max(0, Math.min(ZOOM_MAX, Math.round(view.zoom)));
  const count = 2 ** zoom, size = sizeOf(view) / count;
  const left = view.x * sizeOf(view) - width / 2, top = view.y * sizeOf(view) - height / 2;
  const tiles = [];
  for (let row = Math.max(0, Math.floor(top / size)); row < Math.min(count, (top + height) / size); row++) {
    for (let column = Math.max(0, Math.floor(left / size)); column < Math.min(count, (left + width) / size); column++) {
      tiles.push({ column, row, zoom, x: column * size - left, y: row * size - top, size });
    }
  }
  return tiles;
}

// The points of a window, those that lie close together as one: [{x, y (px), members (numbers of points), level}]. `level` is
// the highest of the members. A point that stands alone keeps its place.
export function clustered(points, levels, view, width, height, cell) {
  const size = sizeOf(view), cells = new Map();
  points.forEach(([pointX, pointY], at) => {
    const x = (pointX - view.x) * size + width / 2, y = (pointY - view.y) * size + height / 2;
    if (x < -cell || y < -cell || x > width + cell || y > height + cell) return;
    // Cells are those of the world, so that nothing jumps while the view is moved.
    const key = cell ? `${Math.floor((pointX * size) / cell)} ${Math.floor((pointY * size) / cell)}` : at;
    const found = cells.get(key);
    if (!found) cells.set(key, { x, y, members: [at], level: levels[at] });
    else {
      found.members.push(at);
      found.level = Math.max(found.level, levels[at]);
      found.x += (x - found.x) / found.members.length;
      found.y += (y - found.y) / found.members.length;
    }
  });
  return [...cells.values()];
}
