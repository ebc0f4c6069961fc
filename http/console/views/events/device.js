// A field that finds a device of the application by a part of its name.

import { get, path } from "../../lib/api.js";
import { useData } from "../../lib/hooks.js";
import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "../../lib/ui.js";

const SHOWN_MAX = 20;
const TYPING_MS = 250;

// value: the id of the chosen device, "" without one; choose(id, name) is called when a name is given that is one of a
// device, and with "" when the field is emptied.
export function DeviceField({ app, value, choose, label = "Device" }) {
  const [text, setText] = useState("");
  const [search, setSearch] = useState("");
  const timer = useRef(0);
  const isTyped = useRef(false); // the text was typed, and names no device yet
  const own = useRef(null); // what was chosen here last, whose text stays as it was typed; null if it was chosen elsewhere
  const id = useId();
  const named = useData((signal) => (value ? get(path("applications", app, "devices", value), {}, { signal }) : Promise.resolve(null)), [app, value]);
  const found = useData((signal) => get(path("applications", app, "devices"), {
    perPage: SHOWN_MAX, sortField: "name", excludeConnectionInfo: true, ...(search ? { filterField: "name", filter: `*${search}*` } : {}),
  }, { signal }), [app, search]);
  // Before the next key, which may choose another device.
  useLayoutEffect(() => {
    if (value === own.current) return;
    own.current = null;
    setText(value ? named.value?.name || value : "");
  }, [value, named.value]);
  const chosen = (device) => {
    own.current = device?.id || "";
    choose(own.current, device?.name || "");
  };
  // A whole name may be typed before its device is found.
  useEffect(() => {
    const device = found.value?.items.find((each) => each.name === text);
    if (!device || !isTyped.current) return;
    isTyped.current = false;
    chosen(device);
  }, [found.value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const typed = (event) => {
    const given = event.target.value;
    setText(given);
    clearTimeout(timer.current);
    isTyped.current = false;
    const device = found.value?.items.find((each) => each.name === given);
    if (device) chosen(device);
    else if (!given) chosen(null);
    else {
      isTyped.current = true;
      timer.current = setTimeout(() => setSearch(given), TYPING_MS);
    }
  };
  return html`<input type="search" class="device-field" aria-label=${label} placeholder=${label} list=${id} value=${text} onInput=${typed}
      aria-invalid=${value && named.error ? "true" : undefined} autocomplete="off" />
    <datalist id=${id}>${(found.value?.items || []).map((each) => html`<option value=${each.name}></option>`)}</datalist>`;
}
