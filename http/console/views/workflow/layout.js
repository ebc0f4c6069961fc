// Where the parts of a workflow stand in its picture: as an editor has saved them, or in layers from top to bottom.
// A place is the centre of a box. All give {places: key -> {x, y}, vias: edge -> [{x, y}], x, y, width, height}.

export const BOX = { width: 184, height: 50 };
const GAP = { x: 28, y: 58 };
const VIA_WIDTH = 16;
const SWEEPS = 8;
const SCALES = [1, 1.25, 1.5, 2];
const IN_LINE = BOX.height + GAP.y; // from a part to the next where room is made in a line
const APART = { x: BOX.width + 12, y: BOX.height + 16 }; // the least distance of two places
const GRID = 8;
const RINGS_MAX = 400;
const FRAME = 24;

// The places that are saved with the parts, moved apart until no box covers another; null if that does not help.
export function savedLayout(parts) {
  const scale = savedScale(parts);
  return scale ? framed(new Map(parts.map((part) => [part.key, { x: part.x * scale, y: part.y * scale }])), new Map()) : null;
}

// By what the saved places have to be multiplied so that no box covers another; undefined if there is nothing like that.
function savedScale(parts) {
  if (!parts.length || parts.some((part) => typeof part.x !== "number" || typeof part.y !== "number")) return undefined;
  return SCALES.find((scale) => !parts.some((one, at) => parts.slice(at + 1).some((other) => covers(one, other, scale))));
}

const covers = (one, other, scale = 1) => Math.abs(one.x - other.x) * scale < APART.x && Math.abs(one.y - other.y) * scale < APART.y;

// The places for an editor. If the saved ones can be read as they are (`isSaved`), they are not moved at all, so that
// nothing moves but what is moved by hand. Else it is what other pictures show.
export function editLayout(parts, edges, loops) {
  if (savedScale(parts) !== 1) {
    return { ...((parts.length && (savedLayout(parts) || layeredLayout(parts, edges, loops))) || { places: new Map(), vias: new Map(), x: 0, y: 0, width: 400, height: 300 }), isSaved: false };
  }
  const places = new Map(parts.map(({ key, x, y }) => [key, { x, y }]));
  const { width, height } = framed(places, new Map());
  const low = (name) => Math.min(...parts.map((part) => part[name]));
  return { places, vias: new Map(), x: low("x") - BOX.width / 2 - FRAME, y: low("y") - BOX.height / 2 - FRAME, width, height, isSaved: true };
}

// The place nearest to the wanted one where a box covers no other. `towards`: the direction in which it is looked for.
export function freePlace(places, wanted, towards) {
  const start = { x: Math.round(wanted.x), y: Math.round(wanted.y) };
  const others = [...places];
  const isFree = (place) => !others.some((other) => covers(place, other));
  if (isFree(start)) return start;
  for (let ring = 1; ring < RINGS_MAX; ring++) {
    const found = (towards ? [[towards.x * ring, towards.y * ring]] : around(ring)).map(([x, y]) => ({ x: start.x + x * GRID, y: start.y + y * GRID })).filter(isFree);
    if (found.length) return found.reduce((best, each) => (far(each, start) < far(best, start) ? each : best));
  }
  return start;
}

// A place for a part in a line, near the wanted one, and those of others that change: if there is no room in the line, all
// that stands as low as its end moves down.
export function placeInLine(places, { from, to }, wanted) {
  const start = places.get(from), end = places.get(to);
  let { y } = wanted, lack = 0;
  if (end.y > start.y) {
    if (covers(start, wanted)) y = start.y + IN_LINE;
    if (covers(end, { x: wanted.x, y })) lack = y + IN_LINE - end.y;
  }
  const moved = new Map([...places].filter(([, each]) => lack > 0 && each.y >= end.y).map(([key, each]) => [key, { x: each.x, y: each.y + lack }]));
  return { place: freePlace(new Map([...places, ...moved]).values(), { x: wanted.x, y }), moved };
}

const far = (one, other) => Math.hypot(one.x - other.x, one.y - other.y);

// The points of a square around 0, `ring` steps away.
function around(ring) {
  const points = [];
  for (let step = -ring; step <= ring; step++) points.push([step, -ring], [step, ring], [-ring, step], [ring, step]);
  return points;
}

// Layers: a part stands below all that lead to it. `loops` as in loopsOf: what follows a loop stands below its body.
export function layeredLayout(parts, edges, loops) {
  const linked = new Set(edges.flatMap((edge) => [edge.from, edge.to]));
  const alone = parts.filter((part) => !linked.has(part.key));
  const order = parts.filter((part) => linked.has(part.key)).map((part) => part.key);
  const after = loops.flatMap((each) => each.after.map((to) => ({ from: each.cap, to })));
  const ranks = ranked(order, withoutCycles(order, [...edges, ...after]));
  const { layers, links, chains } = layersOf(order, edges, ranks);
  const into = layers.map(() => []), outOf = layers.map(() => []);
  for (const each of links) {
    into[each.to.rank].push(each);
    outOf[each.from.rank].push(each);
  }
  arrange(layers, into, outOf);
  const xs = spread(layers, into, outOf);
  const places = new Map(), vias = new Map();
  layers.forEach((layer, rank) => layer.forEach((item) => { if (!item.via) places.set(item.key, { x: xs.get(item), y: rank * (BOX.height + GAP.y) }); }));
  for (const [edge, chain] of chains) vias.set(edge, chain.map((item) => ({ x: xs.get(item), y: item.rank * (BOX.height + GAP.y) })));
  const left = Math.min(0, ...[...places.values()].map((each) => each.x));
  const columns = Math.max(1, Math.min(4, alone.length));
  alone.forEach((part, at) => places.set(part.key, {
    x: left + (at % columns) * (BOX.width + GAP.x), y: (layers.length + Math.floor(at / columns)) * (BOX.height + GAP.y),
  }));
  return framed(places, vias);
}

// Move everything so that it begins at 0, and tell the size.
function framed(places, vias) {
  const all = [...places.values()].flatMap(({ x, y }) => [{ x: x - BOX.width / 2, y: y - BOX.height / 2 }, { x: x + BOX.width / 2, y: y + BOX.height / 2 }]);
  for (const chain of vias.values()) all.push(...chain);
  const low = (name) => Math.min(...all.map((each) => each[name])), high = (name) => Math.max(...all.map((each) => each[name]));
  const x = low("x") - FRAME, y = low("y") - FRAME;
  const moved = (point) => ({ x: point.x - x, y: point.y - y });
  return {
    places: new Map([...places].map(([key, place]) => [key, moved(place)])),
    vias: new Map([...vias].map(([edge, chain]) => [edge, chain.map(moved)])),
    x: 0, y: 0, width: high("x") - x + FRAME, height: high("y") - y + FRAME,
  };
}

// The lines without those that lead back to a part from which they come.
function withoutCycles(keys, edges) {
  const next = new Map(keys.map((key) => [key, []]));
  for (const edge of edges) next.get(edge.from).push(edge);
  const state = new Map(), kept = [];
  for (const start of keys) {
    if (state.has(start)) continue;
    const stack = [[start, 0]];
    state.set(start, "open");
    while (stack.length) {
      const top = stack.at(-1), edge = next.get(top[0])[top[1]++];
      if (!edge) {
        state.set(top[0], "done");
        stack.pop();
      } else if (state.get(edge.to) !== "open") {
        kept.push(edge);
        if (!state.has(edge.to)) {
          state.set(edge.to, "open");
          stack.push([edge.to, 0]);
        }
      }
    }
  }
  return kept;
}

// The layer of each part: one more than the deepest of those that lead to it.
function ranked(keys, edges) {
  const next = new Map(keys.map((key) => [key, []])), waits = new Map(keys.map((key) => [key, 0]));
  for (const edge of edges) {
    next.get(edge.from).push(edge.to);
    waits.set(edge.to, waits.get(edge.to) + 1);
  }
  const ranks = new Map(keys.map((key) => [key, 0]));
  const ready = keys.filter((key) => waits.get(key) === 0);
  while (ready.length) {
    const key = ready.shift();
    for (const to of next.get(key)) {
      ranks.set(to, Math.max(ranks.get(to), ranks.get(key) + 1));
      waits.set(to, waits.get(to) - 1);
      if (waits.get(to) === 0) ready.push(to);
    }
  }
  return ranks;
}

// The layers, with a thin item wherever a line passes one, and the links between items of neighbouring layers.
function layersOf(keys, edges, ranks) {
  const items = new Map(keys.map((key) => [key, { key, rank: ranks.get(key), width: BOX.width }]));
  const layers = [];
  const add = (item) => (layers[item.rank] ||= []).push(item);
  for (const item of items.values()) add(item);
  const links = [], chains = new Map();
  for (const edge of edges) {
    const from = items.get(edge.from), to = items.get(edge.to);
    const shift = (edge.output + 1) / (edge.outputs + 1) - 0.5;
    if (to.rank <= from.rank) continue;
    const chain = [];
    for (let rank = from.rank + 1; rank < to.rank; rank++) {
      const item = { via: true, rank, width: VIA_WIDTH };
      add(item);
      chain.push(item);
    }
    if (chain.length) chains.set(edge, chain);
    const steps = [from, ...chain, to];
    for (let at = 0; at + 1 < steps.length; at++) links.push({ from: steps[at], to: steps[at + 1], shift: at ? 0 : shift * BOX.width });
  }
  return { layers, links, chains };
}

// Order each layer by the middle of what its items are linked to, downwards and upwards in turn. `into` and `outOf` are
// the links to the items of each layer, and from them.
function arrange(layers, into, outOf) {
  const at = new Map(layers.flatMap((layer) => layer.map((item, index) => [item, index])));
  eachSweep(layers, (layer, rank, down) => {
    const middles = middlesOf(layer, down ? into[rank] : outOf[rank], down, (item, shift) => at.get(item) + shift / BOX.width, (item) => at.get(item));
    layer.sort((one, other) => middles.get(one) - middles.get(other));
    layer.forEach((item, index) => at.set(item, index));
  });
}

function eachSweep(layers, visit) {
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (let at = 0; at < layers.length; at++) {
      const rank = down ? at : layers.length - 1 - at;
      visit(layers[rank], rank, down);
    }
  }
}

// The mean position of what each item is linked to in the layer above (`down`) or below; `own` of an item without links.
function middlesOf(layer, links, down, position, own) {
  const sums = new Map(layer.map((item) => [item, { sum: 0, count: 0 }]));
  for (const link of links) {
    const [item, other] = down ? [link.to, link.from] : [link.from, link.to];
    const sum = sums.get(item);
    sum.sum += position(other, down ? link.shift : -link.shift);
    sum.count += 1;
  }
  return new Map([...sums].map(([item, { sum, count }]) => [item, count ? sum / count : own(item)]));
}

// x of each item: as near as possible to the middle of what it is linked to, in the order of its layer, without overlap.
function spread(layers, into, outOf) {
  const xs = new Map();
  for (const layer of layers) {
    let x = 0;
    for (const item of layer) {
      xs.set(item, x + item.width / 2);
      x += item.width + GAP.x;
    }
  }
  eachSweep(layers, (layer, rank, down) => {
    const middles = middlesOf(layer, down ? into[rank] : outOf[rank], down, (item, shift) => xs.get(item) + shift, (item) => xs.get(item));
    apart(layer, layer.map((item) => middles.get(item))).forEach((x, at) => xs.set(layer[at], x));
  });
  return xs;
}

// The positions nearest to `wanted` (least squares) that keep the order and the gaps: neighbours that are too near are
// joined to a block, which stands at the mean of what its members want.
function apart(layer, wanted) {
  const offsets = [];
  layer.forEach((item, at) => offsets.push(at ? offsets[at - 1] + layer[at - 1].width / 2 + GAP.x + item.width / 2 : 0));
  const blocks = [];
  wanted.forEach((x, at) => {
    let block = { sum: x - offsets[at], count: 1 };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).count > block.sum / block.count) {
      const before = blocks.pop();
      block = { sum: block.sum + before.sum, count: block.count + before.count };
    }
    blocks.push(block);
  });
  const starts = blocks.flatMap((block) => Array(block.count).fill(block.sum / block.count));
  return starts.map((start, at) => start + offsets[at]);
}
