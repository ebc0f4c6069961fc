// What the live view of a device shows: the history of the chosen attributes, joined with the stream, the last hours of
// all that can be drawn in small, and the newest value of each attribute.
//
// The stream is opened first, and the history is read when it is open: what is reported in between is in both, and is
// joined by its time. So nothing is missing and nothing is there twice.

import { get, path, post } from "../../lib/api.js";
import { useFrame, useStream } from "../../lib/hooks.js";
import { useEffect, useRef, useState } from "../../lib/ui.js";
import { Series } from "./series.js";

const POINTS_MAX = 2000;
const POINTS_PER_PIXEL = 4;
const RECENT_POINTS = 240;
export const RECENT_MS = 6 * 3_600_000;

// names: the attributes of the charts; small: those of the small charts of the last hours. range: {fixed, spanMs, fromMs, toMs} of range.js.
// Gives {stream, error, loading, at, reload, series: Map of name to Series, recent: the same for RECENT_MS, newest: Map of name to {value, time}}; the
// component is drawn again when they change, at most once a frame.
export function useLive({ app, device, names, small, range }) {
  const held = useRef({ series: new Map(), next: new Map(), recent: new Map(), nextRecent: new Map(), newest: new Map(), wasLive: false });
  const [, redraw] = useState(0);
  const [loaded, setLoaded] = useState({ loading: true });
  const [turn, setTurn] = useState(0);
  const draw = useFrame(() => redraw((count) => count + 1));
  const reload = () => setTurn((before) => before + 1);
  const stream = useStream(path("applications", app, "devices", device, "stateStream"), {
    onEvent: (state) => {
      take(held.current, range, state);
      draw();
    },
    onReset: reload,
  });
  const now = held.current;
  if (stream.state === "live") now.wasLive = true;
  const open = now.wasLive ? "live" : stream.state;
  useEffect(() => {
    if (open === "opening") return undefined;
    const abort = new AbortController();
    // The charts keep what they show until the history is there; the stream goes to both.
    now.next = new Map(names.map((name) => [name, new Series(range.spanMs / 1000)]));
    now.nextRecent = new Map(small.map((name) => [name, new Series(RECENT_MS / 1000)]));
    setLoaded((before) => ({ ...before, loading: true }));
    load(app, device, names, range, now, abort.signal).then(
      () => abort.signal.aborted || setLoaded({ loading: false, at: Date.now() }),
      (error) => abort.signal.aborted || setLoaded((before) => ({ ...before, loading: false, error })),
    );
    return () => abort.abort();
  }, [open, turn, names.join("\n"), small.join("\n"), range.key]);
  return { stream, ...loaded, reload, series: now.series, recent: now.recent, newest: now.newest };
}

async function load(app, device, names, range, now, signal) {
  const points = async (series, span, downsample) => {
    if (!series.size) return [];
    const body = { deviceIds: [device], attributes: [...series.keys()], ...span };
    const found = await post(path("applications", app, "data", "time-series-query"), body, { query: { downsample, method: "M4" }, signal });
    return found.devices[device]?.points || [];
  };
  const { next: series, nextRecent: recent } = now;
  const span = range.fixed ? { start: range.fromMs, end: range.toMs } : { duration: range.spanMs };
  const [history, hours, composite] = await Promise.all([
    points(series, span, Math.min(POINTS_MAX, POINTS_PER_PIXEL * innerWidth)),
    points(recent, { duration: RECENT_MS }, RECENT_POINTS),
    get(path("applications", app, "devices", device, "compositeState"), {}, { signal }),
  ]);
  joinAll(series, history);
  joinAll(recent, hours);
  now.series = series;
  now.recent = recent;
  // What is deleted or not declared any more has no newest value.
  for (const name of now.newest.keys()) if (!Object.hasOwn(composite, name)) now.newest.delete(name);
  for (const [name, each] of Object.entries(composite)) newer(now.newest, name, each.value, each.time);
}

function joinAll(series, points) {
  for (const [name, each] of series) {
    const own = points.filter((point) => Object.hasOwn(point.data, name));
    each.join(own.map((point) => Date.parse(point.time) / 1000), own.map((point) => Number(point.data[name])));
  }
}

// Take a state of the stream into the charts and the newest values.
function take(now, range, { time, data }) {
  const ms = Date.parse(time);
  const seen = !range.fixed || (ms >= range.fromMs && ms <= range.toMs);
  for (const [name, value] of Object.entries(data)) {
    newer(now.newest, name, value, time);
    const number = typeof value === "boolean" ? Number(value) : value;
    if (typeof number !== "number") continue;
    const held = [now.recent.get(name), now.nextRecent.get(name), ...(seen ? [now.series.get(name), now.next.get(name)] : [])];
    for (const series of new Set(held)) series?.add(ms / 1000, number);
  }
}

function newer(newest, name, value, time) {
  const known = newest.get(name);
  if (!known || Date.parse(known.time) <= Date.parse(time)) newest.set(name, { value, time });
}
