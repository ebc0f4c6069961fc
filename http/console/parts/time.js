// A field for a time. A time is typed part by part, and what stands there meanwhile is a time as well, such as one of the
// year 20, so it is given when the typing pauses or the field is left.

import { localTime, timeStep } from "../lib/format.js";
import { html, useEffect, useRef } from "../lib/ui.js";

const TYPING_MS = 800;
const FIRST = "1970";

// value: a time, "" for none; set(ms) is called with another one, set("") when the field is emptied; step: that of an
// empty field.
export function TimeField({ id, value, set, step }) {
  const field = useRef(null);
  const timer = useRef(0);
  const text = value === "" ? "" : localTime(value);
  // Not as a property, which would take away what is typed when the page around it is drawn again.
  useEffect(() => { field.current.value = text; }, [text]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const give = () => {
    clearTimeout(timer.current);
    const { value: given, validity } = field.current;
    if (given !== text && !validity.badInput && (!given || given >= FIRST)) set(given && new Date(given).getTime());
  };
  const typed = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(give, TYPING_MS);
  };
  return html`<input ref=${field} id=${id} type="datetime-local" step=${timeStep(text, step)} onInput=${typed} onBlur=${give}
    onKeyDown=${(event) => event.key === "Enter" && give()} />`;
}
