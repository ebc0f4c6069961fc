// The list follows the stream of events: rows change in place, and new events are counted until the reader asks for them,
// so that nothing moves while somebody reads.

import { path } from "../../lib/api.js";
import { useFrame, useStream } from "../../lib/hooks.js";
import { useRef, useState } from "../../lib/ui.js";

const FRESH_MAX = 1000;

// fresh: the time at which each new event came, by its id; missed: when changes were last lost, 0 for never.
const nothing = () => ({ fresh: new Map(), changed: new Map(), missed: 0 });

// What has changed since the list was loaded. `matches(event)`: whether an event belongs to the list.
// {stream, fresh (number of new events that match), missed (some changes are not known), now(row) (the row as it is now,
// with `gone` if it was deleted), loaded(list, since) (tell of the rows that are shown, and when their load began),
// version (rises with each change)}
export function useChanges(app, matches) {
  const [version, setVersion] = useState(0);
  const state = useRef(nothing());
  const shown = useRef(new Set());
  const draw = useFrame(() => setVersion((before) => before + 1));
  const onEvent = ({ change, eventId, event }) => {
    const { fresh, changed } = state.current;
    if (shown.current.has(eventId)) changed.set(eventId, change === "deleted" ? { gone: true } : event);
    else if (change !== "deleted" && matches(event) && (change === "created" || fresh.has(eventId))) {
      if (fresh.size < FRESH_MAX && !fresh.has(eventId)) fresh.set(eventId, performance.now());
    } else fresh.delete(eventId);
    draw();
  };
  const onReset = () => {
    state.current.missed = performance.now();
    draw();
  };
  const stream = useStream(path("applications", app, "eventStream"), { onEvent, onReset });
  const loaded = (list, since) => {
    const { fresh, changed, missed } = state.current;
    const isNewer = (row) => changed.get(row.id)?.gone || changed.get(row.id)?.lastUpdated > row.lastUpdated;
    shown.current = new Set(list.items.map((row) => row.id));
    // A row may have changed, and an event may have come, while the list was loaded.
    state.current = {
      fresh: new Map([...fresh].filter(([id, at]) => at >= since && !shown.current.has(id))),
      changed: new Map(list.items.filter(isNewer).map((row) => [row.id, changed.get(row.id)])),
      missed: missed >= since ? missed : 0,
    };
    draw();
  };
  const { fresh, changed, missed } = state.current;
  return { stream, fresh: fresh.size, many: fresh.size === FRESH_MAX, missed: missed > 0, loaded, version, now: (row) => ({ ...row, ...changed.get(row.id) }) };
}
