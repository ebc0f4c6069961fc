// A map block: places of devices on the outlines of land, or on tiles. It is moved and zoomed by mouse, touch and keys. It is drawn
// on a canvas, and what lies close together as one, so that many thousand devices are as quick as a few.

import { count, exactTime, numberText, plural } from "../../../lib/format.js";
import { useFrame } from "../../../lib/hooks.js";
import { go } from "../../../lib/router.js";
import { theme } from "../../../lib/theme.js";
import { html, useEffect, useMemo, useRef, useState } from "../../../lib/ui.js";
import { draw, SHAPES } from "./draw.js";
import { outlines } from "./outlines.js";
import { fitted, projected, shifted, zoomed } from "./projection.js";
import { tileSettings, tileSource } from "./tiles.js";

const KEYS = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
const NEAR_PX = 16;
const NAMED_MAX = 4;
const BELOW_PX = 130; // nearer to the upper edge the text is below the point
const WAYS = 8; // colours

// `part`: places in columns, {names, points: [[longitude, latitude]], levels, categories: [{label, color}], times, values, ids}, or
// `chart` with lines, the ways of devices. address(kind, id): the page of a record.
export function PlaceMap({ part, chart, name, config, address }) {
  const canvas = useRef(null), now = useRef({}), pointers = useRef(new Map());
  const [under, setUnder] = useState(null);
  const [tiles, setTiles] = useState({});
  const map = useMemo(() => (part ? ofPlaces(part) : ofWays(chart)), [part, chart]);
  const paint = useFrame(() => {
    const { view, land, source } = now.current, element = canvas.current;
    if (!element || !view) return;
    now.current.drawn = draw(element, { view, map, land: source ? null : land, tiles: source, colours: coloursOf() });
  });
  const look = (view) => {
    now.current.view = view;
    setUnder(null);
    paint();
  };
  const size = () => [canvas.current.clientWidth, canvas.current.clientHeight];
  const fit = () => look(config.defaultCenter && config.centerOnDataPoints === false ? centred(config) : fitted([...map.points, ...map.ways.flatMap((each) => each.points)], ...size()));
  useEffect(() => {
    outlines().then((land) => {
      now.current.land = land;
      paint();
    }, () => {});
    tileSettings().then((given) => {
      if (!given.url) return;
      now.current.source = tileSource(given.url, paint);
      setTiles(given);
      paint();
    }, () => {});
    const resize = new ResizeObserver(() => {
      if (!canvas.current) return;
      const [width, height] = size();
      if (!width || !height) return;
      Object.assign(canvas.current, { width: width * devicePixelRatio, height: height * devicePixelRatio });
      if (now.current.view) paint();
      else fit();
    });
    resize.observe(canvas.current);
    return () => resize.disconnect();
  }, []);
  useEffect(paint, [map, theme.value]);
  useEffect(() => {
    // A wheel zooms a map that has the focus, or with Ctrl, so that it does not stop the page that is scrolled.
    const wheel = (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas.current.parentElement) return;
      event.preventDefault();
      look(zoomed(now.current.view, -event.deltaY / 300, event.offsetX, event.offsetY, ...size()));
    };
    const element = canvas.current;
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);

  const step = (by) => look(zoomed(now.current.view, by, ...size().map((each) => each / 2), ...size()));
  const onKey = (event) => {
    if (event.target !== event.currentTarget) return;
    if (KEYS[event.key]) look(shifted(now.current.view, ...KEYS[event.key]));
    else if (event.key === "+" || event.key === "-") step(event.key === "+" ? 1 : -1);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  };
  const onDown = (event) => {
    if (event.button) return;
    canvas.current.setPointerCapture(event.pointerId);
    pointers.current.set(event.pointerId, [event.offsetX, event.offsetY]);
    now.current.moved = 0;
  };
  const onMove = (event) => {
    const at = [event.offsetX, event.offsetY], before = pointers.current.get(event.pointerId);
    if (!before) return setUnder(near(now.current.drawn, ...at));
    const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
    pointers.current.set(event.pointerId, at);
    now.current.moved += Math.hypot(at[0] - before[0], at[1] - before[1]);
    let view = shifted(now.current.view, ...(other ? [(at[0] - before[0]) / 2, (at[1] - before[1]) / 2] : [at[0] - before[0], at[1] - before[1]]));
    if (other) {
      const ratio = Math.hypot(at[0] - other[0], at[1] - other[1]) / (Math.hypot(before[0] - other[0], before[1] - other[1]) || 1);
      view = zoomed(view, Math.log2(ratio || 1), (at[0] + other[0]) / 2, (at[1] + other[1]) / 2, ...size());
    }
    look(view);
    return undefined;
  };
  const onUp = (event) => {
    if (!pointers.current.delete(event.pointerId) || event.type !== "pointerup" || now.current.moved > 4) return;
    const found = near(now.current.drawn, event.offsetX, event.offsetY);
    if (!found) return;
    const href = found.members.length === 1 && map.ids?.[found.members[0]] && address?.("device", map.ids[found.members[0]]);
    if (found.members.length > 1) look(zoomed(now.current.view, 2, found.x, found.y, ...size()));
    else if (href && event.pointerType === "mouse") go(href);
    else setUnder(found);
  };
  return html`<div class="map"><div class="map-frame" tabindex="0" role="group" aria-label=${`Map of ${name}. Arrow keys move it, plus and minus zoom, 0 shows all.`} onKeyDown=${onKey}>
      <canvas ref=${canvas} role="img" aria-label=${`${name}: places of ${summary(map)}`} onPointerDown=${onDown} onPointerMove=${onMove} onPointerUp=${onUp} onPointerCancel=${onUp} onPointerLeave=${() => setUnder(null)}></canvas>
      <div class="map-zoom"><button type="button" aria-label="Zoom in" onClick=${() => step(1)}>+</button><button type="button" aria-label="Zoom out" onClick=${() => step(-1)}>−</button><button type="button" aria-label="Show all" title="Show all" onClick=${fit}>◎</button></div>
      ${under && html`<${Under} under=${under} map=${map} config=${config} />`}
      ${tiles.attribution && html`<span class="map-source">${tiles.attribution}</span>`}
    </div>
    ${map.labels && html`<p class="row map-legend">${map.labels.map((label, level) => html`<span class="row key"><${Mark} level=${level} color=${map.colours[level]} />${label} ${count(map.counts[level])}</span>`)}</p>`}
  </div>`;
}

// What lies under the pointer: one device with its value and its time, or how many, the gravest first.
function Under({ under: { x, y, members }, map, config }) {
  const place = { left: `${x}px`, top: `${y}px` }, side = y < BELOW_PX ? "map-under below" : "map-under";
  const level = (at) => (map.labels ? `, ${map.labels[map.levels[at]]}` : "");
  const value = (at) => (map.values?.[at] === undefined || map.values[at] === null ? "" : `, ${numberText(map.values[at], config)}`);
  if (members.length === 1) {
    const [at] = members;
    return html`<div class=${side} style=${place}><b>${map.names[at]}</b>${level(at)}${value(at)}${map.times && html`<br /><span class="quiet">${exactTime(map.times[at])}</span>`}</div>`;
  }
  const first = [...members].sort((a, b) => map.levels[b] - map.levels[a]).slice(0, NAMED_MAX);
  return html`<div class=${side} style=${place}><b>${count(members.length)} devices</b>${first.map((at) => html`<div>${map.names[at]}${level(at)}${value(at)}</div>`)}
    ${members.length > NAMED_MAX && html`<div class="quiet">and ${count(members.length - NAMED_MAX)} more</div>`}</div>`;
}

// The shape of a level, for the legend.
function Mark({ level, color }) {
  const inside = { circle: html`<circle cx="8" cy="8" r="6" />`, triangle: html`<path d="M8 1 15 14H1Z" />`, square: html`<rect x="2.5" y="2.5" width="11" height="11" />`, diamond: html`<path d="M8 0 16 8 8 16 0 8Z" />` };
  return html`<svg class="map-mark" viewBox="0 0 16 16" aria-hidden="true" style=${{ fill: color }}>${inside[SHAPES[level % SHAPES.length]]}</svg>`;
}

function ofPlaces({ names, points, levels, categories, times, values, ids }) {
  const counts = categories.map((_, level) => levels.filter((each) => each === level).length);
  return { names, points: points.map(projected), levels, colours: categories.map((each) => each.color), labels: categories.map((each) => each.label), counts, times, values, ids, ways: [] };
}

// The ways of devices, each with its newest place as a point.
function ofWays({ lines }) {
  const ways = lines.map((line, at) => ({ points: line.points.map(projected), color: line.color || colour(`chart-${(at % WAYS) + 1}`) }));
  return { names: lines.map((line) => line.label), points: ways.map((each) => each.points.at(-1)), levels: lines.map((_, at) => at), colours: ways.map((each) => each.color), ways };
}

function summary({ names, labels, counts }) {
  if (labels) return `${plural(names.length, "device")}: ${labels.map((label, level) => `${counts[level]} ${label}`).join(", ")}`;
  return names.join(", ");
}

// What lies under a pointer.
function near(drawn, x, y) {
  return (drawn || []).findLast((each) => Math.hypot(each.x - x, each.y - y) < NEAR_PX) || null;
}

function centred({ defaultCenter, defaultZoom }) {
  const [latitude, longitude] = String(defaultCenter).split(",").map(Number);
  const [x, y] = projected([longitude || 0, latitude || 0]);
  return { x, y, zoom: Number(defaultZoom) || 4 };
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const coloursOf = () => ({ water: colour("map-water"), land: colour("map-land"), line: colour("map-line"), text: colour("text"), ring: colour("surface") });
