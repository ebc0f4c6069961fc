// The list follows the stream of events: rows change in place, and new events are counted until the reader asks for them,
// so that nothing moves while somebody reads.

import { path } from "../../lib/api.js";
import { useFrame, useStream } from "../../lib/hooks.js";
import { useRef, useState } from "../../lib/ui.js";

const FRESH_MAX = 1000;

const nothing = () => ({ fresh: new Set(), changed: new Map(), missed: false });

// What has changed since the list was loaded. `matches(event)`: whether an event belongs to the list.
// {stream, fresh (number of new events that match), missed (some changes are not known), now(row) (the row as it is now,
// with `gone` if it was deleted), loaded(list) (tell of the rows that are shown), version (rises with each change)}
export function useChanges(app, matches) {
  const [version, setVersion] = useState(0);
  const state = useRef(nothing());
  const shown = useRef(new Set());
  const draw = useFrame(() => setVersion((before) => before + 1));
  const onEvent = ({ change, eventId, event }) => {
    const { fresh, changed } = state.current;
    if (shown.current.has(eventId)) changed.set(eventId, change === "deleted" ? { gone: true } : event);
    else if (change !== "deleted" && matches(event) && (change === "created" || fresh.has(eventId))) {
      if (fresh.size < FRESH_MAX) fresh.add(eventId);
    } else fresh.delete(eventId);
    draw();
  };
  const onReset = () => {
    state.current.missed = true;
    draw();
  };
  const stream = useStream(path("applications", app, "eventStream"), { onEvent, onReset });
  const loaded = (list) => {
    const { changed } = state.current;
    const isNewer = (row) => changed.get(row.id)?.gone || changed.get(row.id)?.lastUpdated > row.lastUpdated;
    // A row may have changed while the list was loaded.
    state.current = { ...nothing(), changed: new Map(list.items.filter(isNewer).map((row) => [row.id, changed.get(row.id)])) };
    shown.current = new Set(list.items.map((row) => row.id));
    draw();
  };
  const { fresh, changed, missed } = state.current;
  return { stream, fresh: fresh.size, many: fresh.size === FRESH_MAX, missed, loaded, version, now: (row) => ({ ...row, ...changed.get(row.id) }) };
}
