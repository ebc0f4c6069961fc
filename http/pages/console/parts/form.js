// Forms from descriptions of their fields. What is wrong with a value, the server says; the form shows its sentence,
// and marks the field that the sentence begins with.

import { html, useId, useState } from "../lib/ui.js";
import { openDialog } from "./dialog.js";
import { Problem } from "./basics.js";

// A field: {name, label, type, hint, options, required, placeholder, rows, value, show(values), autocomplete}
// type: "text" (default), "password", "email", "number", "checkbox", "select", "lines", "longtext", "json", "tags",
// "time", "secret". `options` of a select: texts or [value, text]. "lines" gives an array of texts, "json" a value,
// "tags" [{key, value}] from "key=value" lines. A field that is empty and not required gives undefined.
export function Form({ fields, initial = {}, submit, button = "Save", close, extra }) {
  const [texts, setTexts] = useState(() => Object.fromEntries(fields.map((each) => [each.name, toText(each, initial)])));
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const shown = fields.filter((each) => !each.show || each.show(texts));
  const set = (name, value) => setTexts((before) => ({ ...before, [name]: value }));
  const send = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const values = {};
      for (const field of shown) {
        const value = toValue(field, texts[field.name]);
        if (value !== undefined) values[field.name] = value;
      }
      const answer = await submit(values);
      close?.(answer ?? true);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  const wrong = error && shown.find((each) => error.message.startsWith(each.name));
  return html`<form class="form" onSubmit=${send} noValidate>
    ${shown.map((field) => html`<${Field} key=${field.name} field=${field} text=${texts[field.name]} set=${(value) => set(field.name, value)} wrong=${wrong === field} />`)}
    ${extra}
    <${Problem} error=${error} />
    <div class="buttons row">
      ${close && html`<button type="button" onClick=${() => close()}>Cancel</button>`}
      <button class="primary" disabled=${busy}>${button}</button>
    </div>
  </form>`;
}

// A form in a dialog. The promise has what `submit` gave, undefined when it was dismissed.
export function openForm(title, form) {
  return openDialog(title, (close) => html`<${Form} ...${form} close=${close} />`);
}

function Field({ field, text, set, wrong }) {
  const id = useId();
  const type = field.type || "text";
  const onInput = (event) => set(type === "checkbox" ? event.target.checked : event.target.value);
  const common = { id, name: field.name, onInput, "aria-invalid": wrong ? "true" : undefined, "aria-describedby": field.hint ? id + "-hint" : undefined };
  const hint = field.hint && html`<span class="hint" id=${id + "-hint"}>${field.hint}</span>`;
  const label = html`<label for=${id}>${field.label}${field.required ? "" : type === "checkbox" || type === "select" ? "" : html` <span class="quiet">(optional)</span>`}</label>`;
  if (type === "checkbox") {
    return html`<div class="field inline"><input type="checkbox" ...${common} checked=${text} />${label}${hint}</div>`;
  }
  let input;
  if (type === "select") {
    const options = field.options.map((each) => (Array.isArray(each) ? each : [each, each]));
    input = html`<select ...${common} value=${text}>${options.map(([value, shown]) => html`<option value=${value} selected=${value === text}>${shown}</option>`)}</select>`;
  } else if (["lines", "longtext", "json", "tags"].includes(type)) {
    input = html`<textarea ...${common} rows=${field.rows || (type === "json" ? 10 : 4)} spellcheck=${type === "longtext"} placeholder=${field.placeholder || (type === "tags" ? "key=value" : "")} value=${text}></textarea>`;
  } else {
    const html_type = { number: "text", secret: "password", time: "datetime-local" }[type] || type;
    input = html`<input ...${common} type=${html_type} step="any" inputmode=${type === "number" ? "decimal" : undefined} autocomplete=${field.autocomplete || "off"} placeholder=${field.placeholder || ""} value=${text} />`;
  }
  return html`<div class="field">${label}${input}${hint}</div>`;
}

function toText(field, initial) {
  const value = initial[field.name] ?? field.value;
  switch (field.type) {
    case "checkbox": return Boolean(value);
    case "select": return value ?? (Array.isArray(field.options[0]) ? field.options[0][0] : field.options[0]);
    case "lines": return (value || []).join("\n");
    case "json": return value === undefined ? "" : JSON.stringify(value, null, 2);
    case "tags": return (value || []).map((tag) => `${tag.key}=${tag.value}`).join("\n");
    default: return value === undefined || value === null ? "" : String(value);
  }
}

function toValue(field, text) {
  if (field.type === "checkbox") return text;
  if (text === "" && !field.required) return field.blank;
  const lines = () => text.split("\n").map((each) => each.trim()).filter(Boolean);
  switch (field.type) {
    case "number": {
      const number = Number(text);
      if (text.trim() === "" || Number.isNaN(number)) throw new Error(`${field.name} is "${text}"; it must be a number.`);
      return number;
    }
    case "lines": return lines();
    case "tags":
      return lines().map((line) => {
        const cut = line.indexOf("=");
        if (cut < 1) throw new Error(`${field.name}: "${line}" must have the form key=value.`);
        return { key: line.slice(0, cut).trim(), value: line.slice(cut + 1).trim() };
      });
    case "json":
      try {
        return JSON.parse(text);
      } catch (error) {
        throw new Error(`${field.name} is not JSON: ${error.message}.`);
      }
    case "time": return new Date(text).toISOString();
    default: return text;
  }
}
