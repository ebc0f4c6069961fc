// Forms from descriptions of their fields. What is wrong with a value, the server says; the form shows its sentence,
// and marks the field that the sentence begins with.

import { exactJson, parseExact } from "../lib/exact.js";
import { localTime, tagText, timeStep } from "../lib/format.js";
import { html, useId, useRef, useState } from "../lib/ui.js";
import { openDialog, useOpen } from "./dialog.js";
import { Problem } from "./basics.js";
import { RecordChoice } from "./choose.js";
import { note } from "./notes.js";

const SEARCHED_FROM = 12;

// A field: {name, label, type, hint, options, required, placeholder, rows, value, show(values), autocomplete}
// type: "text" (default), "password", "email", "number", "checkbox", "select", "lines", "longtext", "json", "tags",
// "time", "secret", "map", "choices", "records" (ids of the records of the list `source`, found by their field `by`). `options` of a select and of choices: texts or [value, text]. "lines" gives an
// array of texts, "json" a value, "tags" [{key, value}] and "map" an object from "key=value" lines, "filters" filters of tags, "choices" an array.
// A field that is empty and not required gives its `blank`, by default undefined. A "longtext" with `file` (the types of
// files) can be read from a file.
// A dot in a name leads into an object: "mqttConfig.host". With `changesOnly`, `submit` gets what the reader changed
// since it was last saved.
// `wide`: as wide as the page, for long texts. `extra`: markup above the buttons, or extra(read), where read() gives the
// values of what stands in the form.
export function Form({ fields, initial = {}, submit, button = "Save", close, extra, changesOnly = false, wide = false }) {
  const first = useRef(null);
  first.current ||= textsOf(fields, initial);
  const [texts, setTexts] = useState(first.current);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const open = useOpen();
  const shown = shownOf(fields, texts);
  const set = (name, value) => setTexts((before) => ({ ...before, [name]: value }));
  const send = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      const values = {}, sent = { ...first.current };
      const partial = [...event.target.elements].find((each) => /^date/.test(each.type) && each.validity.badInput);
      if (partial) throw new Error(`${partial.name}: the date or the time is not complete; give all parts of it, or none.`);
      for (const field of shown) {
        if (changesOnly && String(texts[field.name]) === String(first.current[field.name])) continue;
        const value = toValue(field, texts[field.name]);
        sent[field.name] = texts[field.name];
        if (value !== undefined) put(values, field.name, value);
      }
      const work = Promise.resolve(submit(values)).then((answer) => answer ?? true);
      close?.during?.(work);
      const answer = await work;
      first.current = sent; // a form that stays counts later changes from here
      close?.(answer);
    } catch (failure) {
      if (!open()) note(failure.message, "bad");
      setError(failure);
    }
    setBusy(false);
  };
  const read = () => valuesOf(fields, texts);
  const wrong = error && shown.find((each) => error.message.startsWith(each.name) && !/\w/.test(error.message[each.name.length]));
  // The button is not `disabled` while the form is busy, because it would lose the focus.
  return html`<form class=${wide ? "form wide" : "form"} onSubmit=${send} noValidate>
    ${shown.map((field) => html`<${Field} key=${field.name} field=${field} text=${texts[field.name]} set=${(value) => set(field.name, value)} wrong=${wrong === field} quiet=${changesOnly} />`)}
    ${typeof extra === "function" ? extra(read) : extra}
    <${Problem} error=${error} />
    <div class="buttons row">
      ${close && html`<button type="button" onClick=${() => close()}>Cancel</button>`}
      <button class="primary break" data-write=${close ? undefined : ""} aria-disabled=${busy}>${button}</button>
    </div>
  </form>`;
}

// A form in a dialog. The promise has what `submit` gave, undefined when it was dismissed.
export function openForm(title, form) {
  return openDialog(title, (close) => html`<${Form} ...${form} close=${close} />`);
}

// `text` is what stands in the field, see toText. `quiet`: what is optional is not marked.
export function Field({ field, text, set, wrong, quiet }) {
  const id = useId();
  const type = field.type || "text";
  const step = useRef(type === "time" ? timeStep(text) : undefined).current; // of the first text: a change hides no part
  const onInput = (event) => set(type === "checkbox" ? event.target.checked : event.target.value);
  const common = { id, name: field.name, onInput, "aria-invalid": wrong ? "true" : undefined, "aria-describedby": field.hint ? id + "-hint" : undefined };
  const hint = field.hint && html`<span class="hint" id=${id + "-hint"}>${field.hint}</span>`;
  const label = html`<label for=${id}>${field.label}${field.required || quiet ? "" : type === "checkbox" || type === "select" ? "" : html` <span class="quiet">(optional)</span>`}</label>`;
  if (type === "checkbox") {
    return html`<div class="field inline"><input type="checkbox" ...${common} checked=${text} />${label}${hint}</div>`;
  }
  if (type === "records") return html`<${RecordChoice} field=${field} chosen=${text} set=${set} />`;
  if (type === "choices") return html`<${Choices} field=${field} chosen=${text} set=${set} />`;
  let input;
  if (type === "select") {
    const options = field.options.map((each) => (Array.isArray(each) ? each : [each, each]));
    input = html`<select ...${common} value=${text}>${options.map(([value, shown]) => html`<option value=${value} selected=${value === text}>${shown}</option>`)}</select>`;
  } else if (["lines", "longtext", "json", "tags", "filters", "map"].includes(type)) {
    input = html`<textarea ...${common} rows=${field.rows || (type === "json" ? 10 : 4)} spellcheck=${type === "longtext"} placeholder=${field.placeholder || (["tags", "filters", "map"].includes(type) ? "key=value" : "")} value=${text}></textarea>`;
  } else {
    const html_type = { number: "text", secret: "password", time: "datetime-local" }[type] || type;
    input = html`<input ...${common} type=${html_type} step=${step} inputmode=${type === "number" ? "decimal" : undefined} autocomplete=${field.autocomplete || "off"} placeholder=${field.placeholder || ""} value=${text} />`;
  }
  const file = field.file && html`<input type="file" accept=${field.file} aria-label=${`Read ${field.label} from a file`}
    onChange=${async (event) => event.target.files[0] && set(await event.target.files[0].text())} />`;
  return html`<div class="field">${label}${input}${file}${hint}</div>`;
}

// A list of boxes to check. A long list has a box to search in it; what is checked is always shown.
function Choices({ field, chosen, set }) {
  const [search, setSearch] = useState("");
  const options = field.options.map((each) => (Array.isArray(each) ? each : [each, each]));
  const wanted = search.toLowerCase();
  const shown = options.filter(([value, text]) => chosen.includes(value) || `${value} ${text}`.toLowerCase().includes(wanted));
  const toggle = (value) => set(chosen.includes(value) ? chosen.filter((each) => each !== value) : [...chosen, value]);
  return html`<fieldset class="field choices"><legend>${field.label}</legend>
    ${options.length > SEARCHED_FROM && html`<input type="search" aria-label=${`Search in ${field.label}`} placeholder="Search" value=${search} onInput=${(event) => setSearch(event.target.value)} />`}
    <div class="choice-list">${shown.map(([value, text]) => html`<label key=${value}><input type="checkbox" name=${field.name} value=${value} checked=${chosen.includes(value)} onChange=${() => toggle(value)} /> <span>${text}</span></label>`)}
      ${shown.length === 0 && html`<span class="quiet">${options.length ? "Nothing matches." : "There is nothing to choose yet."}</span>`}</div>
    ${field.hint && html`<span class="hint">${field.hint}</span>`}
  </fieldset>`;
}

// The fields that a form with these texts shows.
const shownOf = (fields, texts) => fields.filter((each) => !each.show || each.show(texts));

// What stands in the fields of a form at first, by their names.
export const textsOf = (fields, initial) => Object.fromEntries(fields.map((each) => [each.name, toText(each, initial)]));

// The values of what stands in a form; throws an error with a sentence if something in it is no value.
export function valuesOf(fields, texts) {
  const values = {};
  for (const field of shownOf(fields, texts)) {
    const value = toValue(field, texts[field.name]);
    if (value !== undefined) put(values, field.name, value);
  }
  return values;
}

// What stands in a field: a text, for some types something else.
export function toText(field, initial) {
  const given = field.name.split(".").reduce((inner, name) => inner?.[name], initial);
  const value = given ?? field.value;
  switch (field.type) {
    case "checkbox": return Boolean(value);
    case "select": return value ?? (Array.isArray(field.options[0]) ? field.options[0][0] : field.options[0]) ?? "";
    case "lines": return (value || []).join("\n");
    case "json": return given === null ? "null" : value === undefined ? "" : exactJson(value, 2);
    case "choices": case "records": return value || [];
    case "map": return Object.entries(value || {}).map(([key, each]) => lineOf({ key, value: each })).join("\n");
    case "tags": case "filters": return (value || []).map(lineOf).join("\n");
    case "time": return value ? localTime(value) : "";
    default: return value === undefined || value === null ? "" : String(value);
  }
}

// A value that a line cannot have as it is, since it has line breaks, or blanks at its ends, stands there as in JSON.
const lineOf = ({ key, value }) => tagText({ key, value: value === undefined ? undefined : written(String(value)) });
const written = (value) => (value === value.trim() && !/[\r\n]/.test(value) && readValue(value) === value ? value : JSON.stringify(value));

function readValue(given) {
  const text = given.trim();
  if (text.length < 2 || !text.startsWith('"') || !text.endsWith('"')) return text;
  try {
    const value = JSON.parse(text);
    return written(value) === text ? value : text;
  } catch {
    return text;
  }
}

// A filter of tags: key=value, or one of them alone as key or =value.
function filterOf(line) {
  const cut = line.indexOf("=");
  const key = (cut < 0 ? line : line.slice(0, cut)).trim();
  return { ...(key ? { key } : {}), ...(cut < 0 ? {} : { value: readValue(line.slice(cut + 1)) }) };
}

function put(values, name, value) {
  const path = name.split(".");
  const last = path.pop();
  path.reduce((inner, each) => (inner[each] ||= {}), values)[last] = value;
}

// The value of what stands in a field. Throws an error with a sentence if it is none.
export function toValue(field, text) {
  if (field.type === "checkbox") return text;
  if (text.length === 0 && !field.required) return field.blank;
  const lines = () => text.split("\n").map((each) => each.trim()).filter(Boolean);
  const pairs = () => lines().map((line) => {
    const cut = line.indexOf("=");
    if (cut < 1) throw new Error(`${field.name}: "${line}" must have the form key=value.`);
    return { key: line.slice(0, cut).trim(), value: readValue(line.slice(cut + 1)) };
  });
  switch (field.type) {
    case "number": {
      const number = Number(text);
      if (text.trim() === "" || !Number.isFinite(number)) throw new Error(`${field.name} is "${text}"; it must be a number.`);
      if (Number.isInteger(number) && !Number.isSafeInteger(number)) throw new Error(`${field.name} is "${text}"; it must be at most ${Number.MAX_SAFE_INTEGER}.`);
      return number;
    }
    case "lines": return lines();
    case "tags": return pairs();
    case "filters": return lines().map(filterOf);
    case "map": return Object.fromEntries(pairs().map(({ key, value }) => [key, value]));
    case "json":
      try {
        return parseExact(text);
      } catch (error) {
        throw new Error(`${field.name} is not JSON: ${error.message}.`);
      }
    case "time": return new Date(text).toISOString();
    default: return text;
  }
}
