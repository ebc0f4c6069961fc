// A field of a form beside the picture. What is typed is in the draft at once.

import { exactJson } from "../../lib/exact.js";
import { html, useRef, useState } from "../../lib/ui.js";
import { Field, toText, toValue } from "../../parts/form.js";

// A field whose value is set while it is typed. What cannot be read yet is said below it, and not set. JSON and texts of
// several lines keep their fields when what is typed would fit another one, which would take the focus away.
export function LiveField({ field: given, value, set }) {
  const kept = useRef("");
  if (given.type === "json") kept.current = "json";
  else if (given.type === "text" && /[\r\n]/.test(value ?? "")) kept.current ||= "longtext"; // others would drop the line breaks
  const field = { ...given, type: kept.current || given.type };
  const [typed, setTyped] = useState(null); // {text, value}: what was typed last, and what became of it
  const usual = toText({ ...field, name: "value", value: undefined }, { value });
  const isMine = typed && (typed.error || same(typed.value, value));
  const input = (text) => {
    try {
      const read = readable(field, text);
      setTyped({ text, value: read });
      set(read);
    } catch (error) {
      setTyped({ text, error: error.message });
    }
  };
  const hint = field.hint || (field.needed && (value === undefined || value === "") ? "It has to be set." : undefined);
  return html`<div><${Field} field=${{ ...field, hint }} text=${isMine ? typed.text : usual} set=${input} wrong=${Boolean(isMine && typed.error)} quiet />
    ${isMine && typed.error && html`<p class="problem" role="status">${typed.error} It is not in the draft yet.</p>`}</div>`;
}

const same = (one, other) => exactJson(one) === exactJson(other);

// What a text of a field means. A number that is written as one is a number, else it is a template.
function readable(field, text) {
  if (field.kind === "number" && field.type === "text") return text.trim() !== "" && String(Number(text)) === text.trim() ? Number(text) : text || undefined;
  const value = toValue({ ...field, required: false, blank: undefined }, text);
  if (field.kind === "object" && value !== undefined && (value === null || typeof value !== "object" || Array.isArray(value))) throw new Error(`${field.name} is not an object, such as {"a": 1}.`);
  return value;
}
