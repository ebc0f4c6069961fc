// Hooks for data: loaded from the API, repeated while the page is seen, or followed as a stream.

import { inTime } from "./api.js";
import { openStream } from "./stream.js";
import { useEffect, useRef, useState } from "./ui.js";

const AGAIN_MS = 5000; // after a first load that failed, if `every` is a function

// Load something and keep it: {value, error, loading, at, reload}.
// `load(signal)` gives a promise; it is called again when `deps` change, by `reload()`, and every `every` ms while the
// page is visible. `every` may be a function of the value; then 0 ends the repetition. `value` stays while it is loaded
// again, and while a later load fails; then `error` is set as well. It does not stay if the load after a change of `deps`
// fails, since it is not what is asked for.
export function useData(load, deps, { every = 0 } = {}) {
  const [state, setState] = useState({ loading: true });
  const again = useRef(() => {});
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    let abort = null, timer = 0, over = false, known = false, wait = typeof every === "function" ? AGAIN_MS : every;
    const run = async () => {
      if (over) return;
      clearTimeout(timer);
      abort?.abort();
      const mine = (abort = new AbortController());
      setState((before) => ({ ...before, loading: true }));
      try {
        const value = await latest.current(known && wait ? inTime(mine.signal) : mine.signal);
        if (!mine.signal.aborted) {
          known = true;
          setState({ value, loading: false, at: Date.now() });
        }
        wait = typeof every === "function" ? every(value) : every;
      } catch (error) {
        if (!mine.signal.aborted) setState((before) => ({ ...(known ? before : {}), error, loading: false }));
      }
      if (wait && !over && mine === abort) timer = setTimeout(tick, wait);
    };
    const tick = () => (document.hidden ? (timer = 0) : run());
    const seen = () => !document.hidden && wait && !timer && run();
    document.addEventListener("visibilitychange", seen);
    again.current = run;
    run();
    return () => {
      over = true;
      clearTimeout(timer);
      abort?.abort();
      document.removeEventListener("visibilitychange", seen);
    };
  }, [...deps, typeof every === "function" ? 0 : every]);
  return { ...state, reload: () => again.current() };
}

// Follow a stream of the API: {state: "opening" | "live" | "stale", since (ms), error}.
// `onEvent(data, name, id)` is called for each event. No stream is opened while `target` is null.
export function useStream(target, { query, onEvent, onReset } = {}) {
  const [state, setState] = useState({ state: "opening", since: Date.now() });
  const handlers = useRef({});
  handlers.current = { onEvent, onReset };
  const key = JSON.stringify(query || {});
  useEffect(() => {
    if (!target) return undefined;
    return openStream(target, {
      query: JSON.parse(key),
      onEvent: (...event) => handlers.current.onEvent?.(...event),
      onReset: () => handlers.current.onReset?.(),
      onState: setState,
    });
  }, [target, key]);
  return state;
}

// The title of the browser's tab.
export function useTitle(title, place) {
  useEffect(() => {
    document.title = [title, place, "Trunkline"].filter(Boolean).join(" - ");
  }, [title, place]);
}

// A function that calls `draw` before the next frame, once however often it is called until then.
export function useFrame(draw) {
  const waiting = useRef(0);
  const latest = useRef(draw);
  latest.current = draw;
  useEffect(() => () => cancelAnimationFrame(waiting.current), []);
  return () => {
    waiting.current ||= requestAnimationFrame(() => {
      waiting.current = 0;
      latest.current();
    });
  };
}
