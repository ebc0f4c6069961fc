// What of a picture is in sight, and how large: it is moved by dragging, by the arrow keys and by two fingers, and made
// larger and smaller by the wheel with the control key.

import { html, useEffect, useRef, useState } from "../../lib/ui.js";

const ZOOM = { min: 0.05, max: 3, step: 1.25, readable: 0.75 };
const MOVE_PX = 60;
const CLICK_PX = 4;

// extent: {x, y, width, height} of all that is drawn; middle: x of what is shown first, if not all of it has room.
// until: when this changes, what was moved is shown as at the first time.
// svg: the ref of the picture; size: its size in px; now: {x, y, scale}, the top left corner and the px of a unit.
export function useViewport(extent, middle, until) {
  const svg = useRef(null);
  const [measured, setSize] = useState(null);
  const [view, setView] = useState(null);
  const drag = useDrag(svg, setView);
  const size = measured || { width: 800, height: 400 };
  const now = view || fitted(extent, size, ZOOM.readable, middle);
  const zoom = (factor, at = { x: size.width / 2, y: size.height / 2 }) => setView((before) => zoomed(before || now, factor, at));
  const latest = useRef(null);
  latest.current = { now, zoom };

  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setSize({ width: entry.contentRect.width, height: entry.contentRect.height }));
    watch.observe(svg.current);
    // Without the control key the wheel scrolls the page. Preact would add a passive listener.
    const wheel = (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = svg.current.getBoundingClientRect();
      latest.current.zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1, { x: event.clientX - box.left, y: event.clientY - box.top });
    };
    svg.current.addEventListener("wheel", wheel, { passive: false });
    return () => {
      watch.disconnect();
      svg.current?.removeEventListener("wheel", wheel);
    };
  }, []);
  useEffect(() => setView(null), [until]);

  const fit = () => setView(fitted(extent, size, ZOOM.min));
  const keys = (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const move = moves[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (move) setView(moved(now, move[0] * MOVE_PX, move[1] * MOVE_PX));
    else if (event.key === "+" || event.key === "=") zoom(ZOOM.step);
    else if (event.key === "-") zoom(1 / ZOOM.step);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  };
  // Move a box into sight, unless the picture is just dragged.
  const reveal = ({ x, y }, box) => {
    const width = size.width / now.scale, height = size.height / now.scale;
    const out = x - box.width / 2 < now.x || x + box.width / 2 > now.x + width || y - box.height / 2 < now.y || y + box.height / 2 > now.y + height;
    if (out && !drag.isDown()) setView({ ...now, x: x - width / 2, y: y - height / 2 });
  };
  return {
    svg, size, now, zoom, fit, reveal,
    scroll: (right, down) => setView((before) => moved(before || latest.current.now, right, down)), // by so many px
    keep: () => setView((before) => before || latest.current.now), // as it is now, whatever is drawn later
    // The place in the picture of a place in the window.
    pointAt: ({ clientX, clientY }) => {
      const box = svg.current.getBoundingClientRect();
      return { x: latest.current.now.x + (clientX - box.left) / latest.current.now.scale, y: latest.current.now.y + (clientY - box.top) / latest.current.now.scale };
    },
    given: {
      ref: svg, onKeyDown: keys, viewBox: `${now.x} ${now.y} ${size.width / now.scale} ${size.height / now.scale}`,
      onClickCapture: (event) => drag.ended() && event.preventDefault(), onDragStart: (event) => event.preventDefault(),
      onPointerDown: (event) => drag.down(event, now),
    },
  };
}

export const ZoomButtons = ({ view }) => html`<div class="flow-zoom" role="group" aria-label="Size of the picture">
  <button type="button" class="small" aria-label="Larger" onClick=${() => view.zoom(ZOOM.step)}>+</button>
  <button type="button" class="small" aria-label="Smaller" onClick=${() => view.zoom(1 / ZOOM.step)}>\u2212</button>
  <button type="button" class="small" onClick=${view.fit}>Fit</button>
</div>`;

// All of it in sight and in the middle, but not smaller than `least`; then its top is shown, and what is around `middle`.
function fitted(extent, size, least, middle = extent.x + extent.width / 2) {
  const scale = Math.max(Math.min(size.width / extent.width, size.height / extent.height, 1), least);
  const width = size.width / scale, height = size.height / scale;
  const x = width >= extent.width ? (extent.width - width) / 2 : Math.min(Math.max(middle - extent.x - width / 2, 0), extent.width - width);
  return { scale, x: extent.x + x, y: extent.y + Math.min(0, (extent.height - height) / 2) };
}

const moved = (view, right, down) => ({ ...view, x: view.x + right / view.scale, y: view.y + down / view.scale });

function zoomed(view, factor, at) {
  const scale = Math.min(Math.max(view.scale * factor, ZOOM.min), ZOOM.max);
  return { scale, x: view.x + at.x / view.scale - at.x / scale, y: view.y + at.y / view.scale - at.y / scale };
}

// Dragging with one pointer moves the picture, with two it changes the size as well. A click that ends a drag opens nothing.
function useDrag(svg, setView) {
  const pointers = useRef(new Map());
  const wasDragged = useRef(false);
  const view = useRef(null);
  useEffect(() => {
    const move = (event) => {
      const before = pointers.current.get(event.pointerId);
      if (!before) return;
      const after = { x: event.clientX, y: event.clientY };
      const [other] = [...pointers.current].filter(([id]) => id !== event.pointerId).map(([, each]) => each);
      const dx = after.x - before.x, dy = after.y - before.y;
      if (!wasDragged.current && Math.hypot(dx, dy) < CLICK_PX) return;
      wasDragged.current = true;
      let next = moved(view.current, -dx, -dy);
      if (other) {
        const box = svg.current.getBoundingClientRect();
        const factor = Math.hypot(after.x - other.x, after.y - other.y) / (Math.hypot(before.x - other.x, before.y - other.y) || 1);
        next = zoomed(view.current, factor, { x: other.x - box.left, y: other.y - box.top });
      }
      view.current = next;
      setView(next);
      pointers.current.set(event.pointerId, after);
    };
    const up = (event) => pointers.current.delete(event.pointerId);
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    addEventListener("pointercancel", up);
    return () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
      removeEventListener("pointercancel", up);
    };
  }, []);
  return {
    down: (event, now) => {
      if (event.button !== 0) return;
      wasDragged.current = false;
      view.current = now;
      pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
    },
    isDown: () => pointers.current.size > 0,
    // Whether a click ends a drag; asked once for each.
    ended: () => {
      const dragged = wasDragged.current;
      wasDragged.current = false;
      return dragged;
    },
  };
}
