// A cell that is edited where it stands: Enter saves, Escape leaves it as it was.

import { html, useEffect, useRef, useState } from "../../lib/ui.js";
import { Problem } from "../../parts/basics.js";
import { textOf, valueOf } from "./values.js";

// save(value): gives a promise; its error is shown below the field. Without it the cell only shows its value.
export function Cell({ column, value, save }) {
  const [text, setText] = useState(null); // null: it is not edited
  const [error, setError] = useState(null);
  const field = useRef(null);
  const shows = useRef(null);
  const edited = useRef(false);
  // The focus goes to the field, and back to the cell.
  useEffect(() => {
    if (text !== null) field.current.focus();
    else if (edited.current && document.activeElement === document.body) shows.current.focus();
    edited.current = text !== null;
  }, [text === null]);
  if (text === null) {
    const shown = value === null || value === undefined || value === "" ? html`<span class="quiet">${value === "" ? '""' : "null"}</span>` : textOf(value);
    if (!save) return html`<span class="cell">${shown}</span>`;
    return html`<button ref=${shows} class="cell" title=${`Change ${column.name}`} onClick=${() => setText(textOf(value))}>${shown}</button>`;
  }
  const close = () => {
    setText(null);
    setError(null);
  };
  const submit = async (event) => {
    event?.preventDefault();
    if (text === textOf(value)) return close();
    try {
      await save(valueOf(column.dataType, text));
      return close();
    } catch (failure) {
      return setError(failure);
    }
  };
  const keys = (event) => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
    else return;
    event.stopPropagation();
    event.preventDefault();
  };
  const common = { ref: field, value: text, onInput: (event) => setText(event.target.value), onKeyDown: keys, "aria-label": column.name };
  let input = html`<input ...${common} inputmode="decimal" placeholder="null" />`;
  if (column.dataType === "boolean") {
    input = html`<select ...${common}>${["", "true", "false"].map((each) => html`<option value=${each} selected=${each === text}>${each || "null"}</option>`)}</select>`;
  } else if (column.dataType === "string") {
    input = html`<textarea ...${common} rows=${Math.min(6, text.split("\n").length)} placeholder="null"></textarea>`;
  }
  return html`<form class="cell-form" onSubmit=${submit}>${input}
    <span class="row"><button class="small primary">Save</button><button type="button" class="small" onClick=${close}>Cancel</button></span>
    <${Problem} error=${error} /></form>`;
}
