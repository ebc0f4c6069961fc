// A form for one long text of a record, such as a template.

import { html, useRef } from "../lib/ui.js";
import { Form } from "./form.js";

// It is saved over the text with which the form began, and over no other. value: this text; read(): a promise of the text as
// it is stored now; save(values): stores it.
export function TextForm({ field, value, read, save }) {
  const base = useRef(value);
  const submit = async (values) => {
    if ((await read()) !== base.current) {
      throw new Error(`${field.name}: somebody else has saved it since it was read here. Copy your text, load the page again, and make your changes there.`);
    }
    await save(values);
    base.current = values[field.name] ?? base.current;
  };
  return html`<${Form} wide changesOnly initial=${{ [field.name]: value }} fields=${[{ ...field, type: "longtext", rows: 20, blank: "" }]} submit=${submit} />`;
}
