// The readme of an application: shown as Markdown, written as a text.

import { get, patch, path } from "../../lib/api.js";
import { useData } from "../../lib/hooks.js";
import { html, useState } from "../../lib/ui.js";
import { Card, Loaded, Time } from "../../parts/basics.js";
import { Markdown } from "../../parts/markdown.js";
import { note } from "../../parts/notes.js";
import { TextForm } from "../../parts/text.js";

const FIELD = { name: "content", label: "Text", hint: "Markdown: headings, lists, quotes, code, links, bold and italic" };

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
      ${writes && html`<${TextForm} field=${FIELD} value=${content} read=${async () => (await get(source)).content} save=${save} />`}
      ${!writes && (content ? html`<${Markdown} text=${content} />` : html`<p class="quiet">There is no readme yet. Write what the application is for, and who looks after it.</p>`)}
    </${Card}>`}</${Loaded}>`;
}
