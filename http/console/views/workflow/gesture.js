// What a pointer does in a picture that is edited: it moves a box, draws a line from an output, or brings a part from
// elsewhere. Until it has moved a little it is a click. At an edge of the picture, the picture scrolls.

import { useEffect, useRef, useState } from "../../lib/ui.js";

const CLICK_PX = 4;
const EDGE_PX = 40;
const SCROLL_PX_PER_S = 480;
const FRAME_MAX_MS = 100; // a frame that comes later scrolls no farther
const SIDES = ["left", "right", "top", "bottom"];

// view: of useViewport. ended(gesture): called when it ends somewhere in the picture.
// start(event, gesture): begin one, {kind, ...}. live: the gesture with where the pointer is in the picture (`x`, `y`),
// whether that is in sight (`inside`), the key of the box there (`over`), and the line there, or behind the box that is
// moved (`line`, as in its data-line); null if there is no gesture.
export function useGesture(view, ended) {
  const held = useRef(null);
  const wasDragged = useRef(false);
  const [live, setLive] = useState(null);
  const latest = useRef(null);
  latest.current = { view, ended };

  useEffect(() => {
    let frame = 0, before = 0;
    const at = (place) => {
      const under = document.elementsFromPoint(place.clientX, place.clientY);
      const inside = under.length > 0 && latest.current.view.svg.current.parentNode.contains(under[0]);
      const { kind, part } = held.current;
      const line = inside && under.find((each) => kind !== "move" || boxAt(each) !== part)?.closest("[data-line]")?.dataset.line;
      return { ...held.current, inside, over: inside ? boxAt(under[0]) : undefined, line };
    };
    // The directions in which it scrolls: -1, 0 or 1. It scrolls to an edge that the pointer has come nearer to, so a part
    // that comes into the picture does not scroll it.
    const directions = () => {
      const { farthest } = held.current, now = distances(latest.current.view.svg.current, held.current);
      const isNear = (side) => SIDES.every((each) => now[each] >= 0) && now[side] < EDGE_PX && now[side] < farthest[side] - CLICK_PX;
      return { x: isNear("right") - isNear("left"), y: isNear("bottom") - isNear("top") };
    };
    const scroll = (time) => {
      const { x, y } = directions();
      frame = x || y ? requestAnimationFrame(scroll) : 0;
      if (!frame) return;
      const far = before ? (Math.min(time - before, FRAME_MAX_MS) * SCROLL_PX_PER_S) / 1000 : 0;
      before = time;
      latest.current.view.scroll(x * far, y * far);
      setLive(at(held.current));
    };
    const isMine = (event) => held.current?.pointerId === event.pointerId;
    const end = () => {
      cancelAnimationFrame(frame);
      frame = 0;
      held.current = null;
      setLive(null);
    };
    const move = (event) => {
      if (!isMine(event)) return;
      const { startX, startY } = held.current;
      if (event.buttons === 0) end(); // it was released outside of the window
      else if (wasDragged.current || Math.hypot(event.clientX - startX, event.clientY - startY) >= CLICK_PX) {
        wasDragged.current = true;
        held.current = moved(held.current, event, latest.current.view.svg.current);
        setLive(at(held.current));
        if (frame) return;
        before = 0;
        frame = requestAnimationFrame(scroll);
      }
    };
    const up = (event) => {
      if (!isMine(event)) return;
      const result = wasDragged.current && { ...at(event), ...latest.current.view.pointAt(event) };
      end();
      if (result?.inside) latest.current.ended(result);
    };
    const cancel = (event) => isMine(event) && end();
    const escape = (event) => {
      if (event.key !== "Escape" || !held.current) return;
      event.preventDefault();
      event.stopPropagation();
      end();
    };
    const listeners = [["pointermove", move], ["pointerup", up], ["pointercancel", cancel], ["keydown", escape, true]];
    for (const [name, act, capture] of listeners) addEventListener(name, act, capture);
    return () => {
      cancelAnimationFrame(frame);
      for (const [name, act, capture] of listeners) removeEventListener(name, act, capture);
    };
  }, []);
  return {
    live: live && { ...live, ...view.pointAt(live) }, // of the picture as it is drawn now
    start: (event, gesture) => {
      if (event.button !== 0 || (held.current && !event.isPrimary)) return;
      wasDragged.current = false;
      const farthest = Object.fromEntries(SIDES.map((side) => [side, -Infinity]));
      held.current = moved({ ...gesture, pointerId: event.pointerId, startX: event.clientX, startY: event.clientY, farthest }, event, view.svg.current);
      latest.current.view.keep();
    },
    isHeld: () => held.current !== null, // from the press on, also while it may become a click
    // Whether a click ends a drag; asked once for each.
    wasDragged: () => {
      const dragged = wasDragged.current;
      wasDragged.current = false;
      return dragged;
    },
  };
}

// The key of the box to which an element belongs.
function boxAt(element) {
  const box = element.closest("[data-part], [data-of]")?.dataset;
  return box && (box.part ?? box.of);
}

// How far a place in the window is from the edges of what is in sight of an element; one is below 0 outside of it.
function distances(element, { clientX, clientY }) {
  const box = element.getBoundingClientRect();
  return {
    left: clientX - Math.max(box.left, 0), right: Math.min(box.right, innerWidth) - clientX,
    top: clientY - Math.max(box.top, 0), bottom: Math.min(box.bottom, innerHeight) - clientY,
  };
}

// A gesture after the pointer has moved. `farthest`: the longest distances that it had from the edges within the picture.
function moved(gesture, { clientX, clientY }, element) {
  const now = distances(element, { clientX, clientY });
  const isOutside = SIDES.some((side) => now[side] < 0);
  const farthest = isOutside ? gesture.farthest : Object.fromEntries(SIDES.map((side) => [side, Math.max(now[side], gesture.farthest[side])]));
  return { ...gesture, clientX, clientY, farthest };
}
