// A field that finds a device of the application by a part of its name.

import { get, path } from "../../lib/api.js";
import { useData } from "../../lib/hooks.js";
import { html, useEffect, useId, useRef, useState } from "../../lib/ui.js";

const SHOWN_MAX = 20;
const TYPING_MS = 250;

// value: the id of the chosen device, "" without one; choose(id, name) is called when a name is given that is one of a
// device, and with "" when the field is emptied.
export function DeviceField({ app, value, choose, label = "Device" }) {
  const [text, setText] = useState("");
  const [search, setSearch] = useState("");
  const timer = useRef(0);
  const isTyped = useRef(false); // the text was typed, and names no device yet
  const id = useId();
  const named = useData((signal) => (value ? get(path("applications", app, "devices", value), {}, { signal }) : Promise.resolve(null)), [app, value]);
  const found = useData((signal) => get(path("applications", app, "devices"), {
    perPage: SHOWN_MAX, sortField: "name", excludeConnectionInfo: true, ...(search ? { filterField: "name", filter: `*${search}*` } : {}),
  }, { signal }), [app, search]);
  useEffect(() => setText(value ? named.value?.name || value : ""), [value, named.value]);
  // A whole name may be typed before its device is found.
  useEffect(() => {
    const device = found.value?.items.find((each) => each.name === text);
    if (!device || !isTyped.current) return;
    isTyped.current = false;
    choose(device.id, device.name);
  }, [found.value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const typed = (event) => {
    const given = event.target.value;
    setText(given);
    clearTimeout(timer.current);
    isTyped.current = false;
    const device = found.value?.items.find((each) => each.name === given);
    if (device) choose(device.id, device.name);
    else if (!given) choose("", "");
    else {
      isTyped.current = true;
      timer.current = setTimeout(() => setSearch(given), TYPING_MS);
    }
  };
  return html`<input type="search" class="device-field" aria-label=${label} placeholder=${label} list=${id} value=${text} onInput=${typed}
      aria-invalid=${value && named.error ? "true" : undefined} autocomplete="off" />
    <datalist id=${id}>${(found.value?.items || []).map((each) => html`<option value=${each.name}></option>`)}</datalist>`;
}
