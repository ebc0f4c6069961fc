// What the live view of a device shows: the history of the chosen attributes, joined with the stream, and the newest
// value of each attribute.
//
// The stream is opened first, and the history is read when it is open: what is reported in between is in both, and is
// joined by its time. So nothing is missing and nothing is there twice.

import { get, path, post } from "../../lib/api.js";
import { useFrame, useStream } from "../../lib/hooks.js";
import { useEffect, useRef, useState } from "../../lib/ui.js";
import { Series } from "./series.js";

const POINTS_MAX = 2000;
const POINTS_PER_PIXEL = 4;

// names: the attributes of the charts. range: {fixed, spanMs, fromMs, toMs} of range.js.
// Gives {stream, error, loading, at, reload, series: Map of name to Series, newest: Map of name to {value, time}}; the
// component is drawn again when they change, at most once a frame.
export function useLive({ app, device, names, range }) {
  const held = useRef({ series: new Map(), next: new Map(), newest: new Map(), wasLive: false });
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
    setLoaded((before) => ({ ...before, loading: true }));
    load(app, device, names, range, now, abort.signal).then(
      () => abort.signal.aborted || setLoaded({ loading: false, at: Date.now() }),
      (error) => abort.signal.aborted || setLoaded((before) => ({ ...before, loading: false, error })),
    );
    return () => abort.abort();
  }, [open, turn, names.join("\n"), range.key]);
  return { stream, ...loaded, reload, series: now.series, newest: now.newest };
}

async function load(app, device, names, range, now, signal) {
  const body = { deviceIds: [device], attributes: names };
  Object.assign(body, range.fixed ? { start: range.fromMs, end: range.toMs } : { duration: range.spanMs });
  const query = { downsample: Math.min(POINTS_MAX, POINTS_PER_PIXEL * innerWidth), method: "M4" };
  const series = now.next;
  const [history, composite] = await Promise.all([
    names.length ? post(path("applications", app, "data", "time-series-query"), body, { query, signal }) : { devices: {} },
    get(path("applications", app, "devices", device, "compositeState"), {}, { signal }),
  ]);
  const points = history.devices[device]?.points || [];
  for (const [name, each] of series) {
    const own = points.filter((point) => point.data[name] !== undefined);
    each.join(own.map((point) => Date.parse(point.time) / 1000), own.map((point) => point.data[name]));
  }
  now.series = series;
  // What is deleted or not declared any more has no newest value.
  for (const name of now.newest.keys()) if (!(name in composite)) now.newest.delete(name);
  for (const [name, each] of Object.entries(composite)) newer(now.newest, name, each.value, each.time);
}

// Take a state of the stream into the charts and the newest values.
function take(now, range, { time, data }) {
  const ms = Date.parse(time);
  const seen = !range.fixed || (ms >= range.fromMs && ms <= range.toMs);
  for (const [name, value] of Object.entries(data)) {
    newer(now.newest, name, value, time);
    const number = typeof value === "boolean" ? Number(value) : value;
    if (!seen || typeof number !== "number") continue;
    for (const series of new Set([now.series.get(name), now.next.get(name)])) series?.add(ms / 1000, number);
  }
}

function newer(newest, name, value, time) {
  const known = newest.get(name);
  if (!known || Date.parse(known.time) <= Date.parse(time)) newest.set(name, { value, time });
}
