// Where the blocks of a dashboard stand in its grid: places {x, y, width, height} in whole columns and rows, none of which
// covers another. Knows nothing of the page.

export const COLUMNS = 8;
const ROWS_MAX = 24;

// The place that a block says, in whole columns and rows.
export const placeOf = (block) => ({
  x: Math.max(0, Math.round(block.startX)),
  y: Math.max(0, Math.round(block.startY)),
  width: Math.max(1, Math.round(block.width)),
  height: Math.max(1, Math.round(block.height)),
});

// The places of blocks, in their order. One that would lie on another moves down.
export function placed(blocks) {
  const places = blocks.map(placeOf);
  const settled = [];
  for (const place of inOrder(places)) {
    lower(place, settled);
    settled.push(place);
  }
  return places;
}

// The places after the one at `at` has become `wanted`: it stays within the columns, the others make room. One that it comes
// to lie on moves up past it where there is room, else down. Rows that become empty are closed.
export function moved(places, at, wanted, columns) {
  const result = places.map((each) => ({ ...each }));
  const place = (result[at] = within(wanted, columns));
  const down = place.y > places[at].y;
  const settled = [place];
  for (const each of inOrder(result)) {
    if (each === place) continue;
    const others = result.filter((one) => one !== each);
    const above = { ...each, y: place.y - each.height };
    if (down && overlap(each, place) && above.y >= 0 && !others.some((one) => overlap(one, above))) each.y = above.y;
    else lower(each, settled);
    settled.push(each);
  }
  return closed(result, places);
}

// The first free place for a block of this size, from above to below.
export function freePlace(places, width, height, columns) {
  const end = Math.max(0, ...places.map((each) => each.y + each.height));
  for (let y = 0; y < end; y++) {
    for (let x = 0; x + width <= columns; x++) {
      const place = { x, y, width, height };
      if (!places.some((each) => overlap(each, place))) return place;
    }
  }
  return { x: 0, y: end, width, height };
}

export const columnsOf = (places) => Math.max(COLUMNS, ...places.map((each) => each.x + each.width));

// The places from above to below, and from left to right; the first of equal ones first.
const inOrder = (places) => [...places].sort((a, b) => a.y - b.y || a.x - b.x);

function within({ x, y, width, height }, columns) {
  const clamped = (value, low, high) => Math.min(Math.max(value, low), high);
  const wide = clamped(width, 1, columns);
  return { x: clamped(x, 0, columns - wide), y: Math.max(0, y), width: wide, height: clamped(height, 1, ROWS_MAX) };
}

function lower(place, others) {
  let other;
  while ((other = others.find((one) => overlap(one, place)))) place.y = other.y + other.height;
}

// The places without the rows that were not empty before, and are.
function closed(places, before) {
  const used = (of, row) => of.some((each) => each.y <= row && row < each.y + each.height);
  const end = Math.max(0, ...places.map((each) => each.y + each.height));
  const last = Math.max(0, ...before.map((each) => each.y + each.height));
  const gone = [];
  for (let row = 0; row < end; row++) if (!used(places, row) && (row >= last || used(before, row))) gone.push(row);
  return places.map((each) => ({ ...each, y: each.y - gone.filter((row) => row < each.y).length }));
}

function overlap(a, b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}
