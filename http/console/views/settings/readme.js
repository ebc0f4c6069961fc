// The readme of an application: shown as Markdown, written as a text.

import { get, patch, path } from "../../lib/api.js";
import { useData } from "../../lib/hooks.js";
import { html, useState } from "../../lib/ui.js";
import { Card, Loaded, Time } from "../../parts/basics.js";
import { Form } from "../../parts/form.js";
import { Markdown } from "../../parts/markdown.js";
import { note } from "../../parts/notes.js";

export function Readme({ app }) {
  const source = path("applications", app, "readme");
  const data = useData((signal) => get(source, {}, { signal }), [source]);
  const [writes, setWrites] = useState(false);
  const save = async (values) => {
    await patch(source, values);
    note("The readme is saved.");
    setWrites(false);
    data.reload();
  };
  return html`<${Loaded} data=${data}>${({ content, lastUpdated }) => html`
    <${Card} title="Readme" actions=${html`${lastUpdated && html`<span class="quiet">changed <${Time} at=${lastUpdated} age /></span>`}
        <button data-write onClick=${() => setWrites(!writes)}>${writes ? "Cancel" : "Write"}</button>`}>
      ${writes && html`<${Form} wide initial=${{ content }} submit=${save} fields=${[{ name: "content", label: "Text", type: "longtext", rows: 20, blank: "", hint: "Markdown: headings, lists, quotes, code, links, bold and italic" }]} />`}
      ${!writes && (content ? html`<${Markdown} text=${content} />` : html`<p class="quiet">There is no readme yet. Write what the application is for, and who looks after it.</p>`)}
    </${Card}>`}</${Loaded}>`;
}
