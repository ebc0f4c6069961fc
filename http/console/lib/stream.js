// Server-sent events by `fetch`: `EventSource` cannot send the token. A stream is closed while the tab is hidden, since
// a browser opens six connections to one server at most, and resumes after the last event when it is seen again.

import { ApiError, authorization, errorOf, queryString, unreachable } from "./api.js";
import { endSession, session } from "./session.js";

const KEEP_ALIVE_S = 10;
const SILENT_MS = 25_000;
const STEADY_MS = 10_000; // a stream that was open for so long is opened again at once
const RETRY_MS = [500, 1000, 2000, 5000, 10_000];

// Open a stream; returns the function that closes it.
// onEvent(data, name, id): an event, its data decoded. onReset(): some events were missed, or may have been.
// onState({state, since, error}): "opening" at first, "live" once the server has answered, "stale" when it is interrupted.
export function openStream(target, { query, onEvent, onReset, onState }) {
  let closed = false, running = false, abort = null, timer = 0, watchdog = 0, wasOpen = false, lastId = "", failures = 0, current = "", since = 0;

  const tell = (state, error) => {
    if (closed || (state === current && !error)) return;
    if (state !== current) since = Date.now();
    current = state;
    onState?.({ state, since, error });
  };

  const heard = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => abort?.abort(), SILENT_MS);
  };

  const dispatch = (block) => {
    let name = "message";
    const data = [];
    for (const line of block.split("\n")) {
      const cut = line.indexOf(":");
      if (cut < 0) continue;
      const field = line.slice(0, cut), value = line.slice(cut + 1).replace(/^ /, "");
      if (field === "event") name = value;
      else if (field === "data") data.push(value);
      else if (field === "id") lastId = value;
    }
    if (closed) return;
    try {
      if (name === "reset") onReset?.();
      else if (data.length) onEvent?.(JSON.parse(data.join("\n")), name, lastId);
    } catch (error) {
      console.error(error); // a fault of the view, and none of the stream, which goes on
    }
  };

  const run = async () => {
    timer = 0;
    running = true;
    const mine = (abort = new AbortController());
    let openedAt = Infinity;
    heard();
    try {
      const headers = { ...authorization(), accept: "text/event-stream", ...(lastId ? { "last-event-id": lastId } : {}) };
      const url = target + queryString({ keepAliveInterval: KEEP_ALIVE_S, ...query });
      const usedToken = session.peek()?.token;
      const answer = await fetch(url, { headers, signal: mine.signal, cache: "no-store" });
      if (!answer.ok) {
        const error = await errorOf(answer);
        if (answer.status === 401 && usedToken === session.peek()?.token) {
          closed = true;
          endSession(`You are logged out: ${error.message}`);
        }
        throw error;
      }
      openedAt = Date.now();
      tell("live");
      if (wasOpen && !lastId) dispatch("event: reset"); // it cannot resume, since it had no event yet
      wasOpen = true;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        heard();
        text += value;
        const end = text.lastIndexOf("\n\n");
        if (end < 0) continue;
        for (const block of text.slice(0, end).split("\n\n")) dispatch(block);
        text = text.slice(end + 2);
      }
      tell("stale");
    } catch (error) {
      if (!closed && !document.hidden) tell("stale", error instanceof ApiError ? error : unreachable());
    }
    clearTimeout(watchdog);
    running = false;
    if (closed || document.hidden) return;
    if (Date.now() - openedAt > STEADY_MS) failures = 0;
    timer = setTimeout(run, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]);
  };

  const seen = () => {
    if (document.hidden) {
      clearTimeout(timer);
      timer = 0;
      abort?.abort();
      tell("stale");
    } else if (!timer && !running) {
      run();
    }
  };
  document.addEventListener("visibilitychange", seen);
  onState?.({ state: "opening", since: Date.now() });
  if (!document.hidden) run();

  return () => {
    closed = true;
    clearTimeout(timer);
    clearTimeout(watchdog);
    document.removeEventListener("visibilitychange", seen);
    abort?.abort();
  };
}
