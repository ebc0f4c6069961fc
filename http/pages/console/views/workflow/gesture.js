// What a pointer does in a picture that is edited: it moves a box, draws a line from an output, or brings a part from
// elsewhere. Until it has moved a little it is a click.

import { useEffect, useRef, useState } from "../../lib/ui.js";

const CLICK_PX = 4;

// view: of useViewport. ended(gesture): called when it ends somewhere in the picture.
// start(event, gesture): begin one, {kind, ...}. live: the gesture with where the pointer is in the picture (`x`, `y`),
// whether that is in sight (`inside`), and the key of the box there (`over`); null if there is none.
export function useGesture(view, ended) {
  const held = useRef(null);
  const wasDragged = useRef(false);
  const [live, setLive] = useState(null);
  const latest = useRef(null);
  latest.current = { view, ended };

  useEffect(() => {
    const at = (event) => {
      const under = document.elementFromPoint(event.clientX, event.clientY);
      const inside = Boolean(under && latest.current.view.svg.current.parentNode.contains(under));
      const box = inside && under.closest("[data-part], [data-of]")?.dataset;
      return { ...held.current, ...latest.current.view.pointAt(event), inside, over: box ? box.part ?? box.of : undefined };
    };
    const isMine = (event) => held.current?.pointerId === event.pointerId;
    const end = () => {
      held.current = null;
      setLive(null);
    };
    const move = (event) => {
      if (!isMine(event)) return;
      const { startX, startY } = held.current;
      if (event.buttons === 0) end(); // it was released outside of the window
      else if (wasDragged.current || Math.hypot(event.clientX - startX, event.clientY - startY) >= CLICK_PX) {
        wasDragged.current = true;
        setLive(at(event));
      }
    };
    const up = (event) => {
      if (!isMine(event)) return;
      const result = wasDragged.current && at(event);
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
    return () => { for (const [name, act, capture] of listeners) removeEventListener(name, act, capture); };
  }, []);
  return {
    live,
    start: (event, gesture) => {
      if (event.button !== 0 || (held.current && !event.isPrimary)) return;
      wasDragged.current = false;
      held.current = { ...gesture, pointerId: event.pointerId, startX: event.clientX, startY: event.clientY };
      latest.current.view.keep();
    },
    // Whether a click ends a drag; asked once for each.
    wasDragged: () => {
      const dragged = wasDragged.current;
      wasDragged.current = false;
      return dragged;
    },
  };
}
