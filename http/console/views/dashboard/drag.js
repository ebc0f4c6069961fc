// Moving and resizing the blocks of a board by mouse and touch. What is dragged is shown in the cell that it would get.

import { useEffect, useRef, useState } from "../../lib/ui.js";
import { moved } from "./grid.js";

const EDGE_PX = 50;
const SCROLL_PX = 14;

// {live: the places during a drag, else null; at: the position of what is dragged; onPointerDown: for the board}.
// board: the ref of its element; places; columns; drop(position, place) is called once, at the end of a drag that changed
// something. Blocks have data-at, their position; what resizes them is in [data-resize]. A finger drags by [data-grip], so that
// the page can be scrolled by it elsewhere.
export function useDrag(board, places, columns, drop) {
  const [drag, setDrag] = useState(null);
  const now = useRef(null);
  const latest = useRef({});
  latest.current = { places, columns, drop };
  const set = (value) => setDrag((now.current = value));
  useEffect(() => {
    if (!drag) return undefined;
    const move = (event) => event.pointerId === now.current.pointer && set(dragged(now.current, event, board.current, latest.current));
    const end = (event) => {
      if (event.pointerId !== now.current.pointer) return;
      const { at, wanted, place } = now.current;
      set(null);
      if (event.type === "pointerup" && !same(wanted, place)) latest.current.drop(at, wanted);
    };
    const cancel = (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      set(null);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
    addEventListener("keydown", cancel, true);
    return () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
      removeEventListener("keydown", cancel, true);
    };
  }, [Boolean(drag)]);
  const onPointerDown = (event) => {
    const block = event.target.closest("[data-at]"), handle = event.target.closest("[data-resize], [data-grip]");
    if (!block || now.current || event.button !== 0 || event.target.closest("button, a, input, select, summary")) return;
    if (event.pointerType === "touch" && !handle) return;
    const at = Number(block.dataset.at), place = places[at];
    const cell = cellOf(board.current, columns), from = pointIn(board.current, event);
    event.preventDefault();
    block.focus({ preventScroll: true });
    set({ pointer: event.pointerId, at, place, wanted: place, resize: Boolean(handle?.matches("[data-resize]")), cell, from, live: places });
  };
  return { live: drag?.live || null, at: drag?.at, onPointerDown };
}

function dragged(drag, event, board, { places, columns }) {
  if (event.clientY < EDGE_PX) scrollBy(0, -SCROLL_PX);
  else if (event.clientY > innerHeight - EDGE_PX) scrollBy(0, SCROLL_PX);
  const { at, place, cell, from, resize } = drag, to = pointIn(board, event);
  const across = Math.round((to.x - from.x) / cell.width), down = Math.round((to.y - from.y) / cell.height);
  const wanted = resize
    ? { ...place, width: Math.min(Math.max(1, place.width + across), columns - place.x), height: Math.max(1, place.height + down) }
    : { ...place, x: Math.min(Math.max(0, place.x + across), columns - place.width), y: Math.max(0, place.y + down) };
  return same(wanted, drag.wanted) ? drag : { ...drag, wanted, live: same(wanted, place) ? places : moved(places, at, wanted, columns) };
}

const same = (a, b) => a.x === b.x && a.y === b.y && a.width === b.width && a.height === b.height;

// Where the pointer is in the board, also when the page has been scrolled meanwhile.
function pointIn(board, event) {
  const { left, top } = board.getBoundingClientRect();
  return { x: event.clientX - left, y: event.clientY - top };
}

// The size of a cell with the gap after it, in px.
function cellOf(board, columns) {
  const { gridAutoRows, columnGap, rowGap } = getComputedStyle(board);
  return { width: (board.clientWidth + parseFloat(columnGap)) / columns, height: parseFloat(gridAutoRows) + parseFloat(rowGap) };
}
