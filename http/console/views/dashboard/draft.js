// The blocks of a dashboard while they are changed. Nothing is stored before they are saved. What is not saved outlives a
// change of the page, not a reload, and not the login.

import { session } from "../../lib/session.js";
import { effect, useState } from "../../lib/ui.js";
import { moved, placed } from "./grid.js";

const STEPS_MAX = 100;

// By dashboard: {items, base (the items that were read), etag (of the dashboard then), past, future (items), merge}. An item
// is {key, block}; its key stays while its block is changed.
const drafts = new Map();
let last = 0;
addEventListener("beforeunload", (event) => [...drafts.values()].some(isChanged) && event.preventDefault());
effect(() => { if (!session.value) drafts.clear(); });

const isChanged = (draft) => draft.items !== draft.base;
export const forgetDraft = (dashboard) => drafts.delete(dashboard);

// The draft of a dashboard: {items, places (by the position of their items), etag, changed, canUndo, canRedo, and what changes
// it}. move(key, place, columns), put(key, block) and add(block), which gives the key, remove(key): a step that `undo` takes
// back. Steps with the same `merge` that follow each other are one.
export function useDraft(record) {
  const [, redraw] = useState(0);
  const id = record.dashboardId;
  if (!drafts.has(id) || (!isChanged(drafts.get(id)) && drafts.get(id).etag !== record._etag)) {
    const items = record.blocks.map((block) => ({ key: ++last, block }));
    drafts.set(id, { items, base: items, etag: record._etag, past: [], future: [] });
  }
  const draft = drafts.get(id);
  const write = (items, merge) => {
    if (!merge || merge !== draft.merge) draft.past = [...draft.past, draft.items].slice(-STEPS_MAX);
    Object.assign(draft, { items, merge, future: [] });
    redraw((before) => before + 1);
  };
  const step = (from, to) => {
    if (!draft[from].length) return;
    draft[to] = [...draft[to], draft.items];
    Object.assign(draft, { items: draft[from].at(-1), [from]: draft[from].slice(0, -1), merge: undefined });
    redraw((before) => before + 1);
  };
  const at = (key) => draft.items.findIndex((each) => each.key === key);
  return {
    items: draft.items, places: placed(draft.items.map((each) => each.block)), etag: draft.etag,
    changed: isChanged(draft), canUndo: draft.past.length > 0, canRedo: draft.future.length > 0,
    move: (key, place, columns, merge) => write(withPlaces(draft.items, moved(placed(draft.items.map((each) => each.block)), at(key), place, columns)), merge),
    put: (key, block) => write(draft.items.with(at(key), { key, block })),
    add: (block) => {
      write([...draft.items, { key: ++last, block }]);
      return last;
    },
    remove: (key) => write(draft.items.toSpliced(at(key), 1)),
    undo: () => step("past", "future"), redo: () => step("future", "past"),
  };
}

// The items at these places; one that stays where it says keeps its block as it is.
function withPlaces(items, places) {
  return items.map((item, at) => {
    const { x, y, width, height } = places[at];
    const { startX, startY, width: wide, height: high } = item.block;
    if (startX === x && startY === y && wide === width && high === height) return item;
    return { ...item, block: { ...item.block, startX: x, startY: y, width, height } };
  });
}
