// Pages of plain records (their own fields, listed, created, changed and deleted), from a description.

import { del, get, patch, post } from "../lib/api.js";
import { useData } from "../lib/hooks.js";
import { go } from "../lib/router.js";
import { html, useState } from "../lib/ui.js";
import { Card, Empty, Facts, Loaded, Page, Snippet, Time } from "./basics.js";
import { confirmed, openDialog } from "./dialog.js";
import { openForm } from "./form.js";
import { JsonEditor } from "./json.js";
import { RecordTable } from "./table.js";

// A page with the list of records of one kind.
// tab: the title of the browser's tab, if it is another one; noun: "access key"; many: "access keys"; title: "Access keys"; source: path of the list; columns, search, sortField:
// as RecordTable; fields: of the form that creates one, null until they are loaded, with `example` for the call that is shown; href(row): the page
// of a record; lead: what they are for; created(answer): what is done with a new one, such as showing its secret;
// toBody(values): the body from the values of the form, or a promise of it; above: markup between the title and the list; of: data of useData that it depends on; again: change it to load the list again; more: further properties of RecordTable.
export function RecordList({ trail, title, tab, noun, many = noun + "s", lead, source, columns, search = "name", sortField, fields, initial, example, href, toBody = (values) => values, created, actions, above, of, again = 0, more }) {
  const [refresh, setRefresh] = useState(0);
  const create = async () => {
    const answer = await openForm(`Create ${article(noun)}`, {
      fields, initial, button: "Create", submit: async (values) => post(source, await toBody(values)),
    });
    if (!answer) return;
    setRefresh(refresh + 1);
    if (created) await created(answer);
    else if (href && answer.id) go(href(answer));
  };
  const button = fields !== undefined && html`<button class="primary" data-create disabled=${!fields} onClick=${create}>Create ${article(noun)}</button>`;
  const empty = html`<${Empty} title=${`There are no ${many} yet`} call=${example && { method: "POST", path: source, body: example }}>
    ${button && html`<div>${button}</div>`}</${Empty}>`;
  return html`<${Page} ...${{ trail, title, tab, lead, of, actions: html`${actions}${button}` }}>${above}
    <${RecordTable} key=${source} ...${{ noun, many, source, columns, search, sortField, href, empty }} refresh=${`${refresh} ${again}`} ...${more} />
  </${Page}>`;
}

// A page of one record: its facts, its fields in a form, all of it as JSON, and its deletion.
// source: path of the record; facts(record): rows of Facts; fields: of the form that changes it, or fields(record),
// null until they are loaded;
// initial(record): its values at first; toBody(values, record): the body from the values that were changed; editable: the
// names of what PATCH takes, for the JSON editor; home: where to go when it is deleted; children(record, reload): more cards.
export function RecordPage({ trail, noun, source, title = (record) => record.name || record.id, facts, fields, initial = (record) => record, toBody = (values) => values, editable, home, actions, typed, children }) {
  const data = useData((signal) => get(source, {}, { signal, exact: Boolean(editable) }), [source]);
  const change = async (record) => {
    const answer = await openForm(`Change this ${noun}`, {
      fields: typeof fields === "function" ? fields(record) : fields, initial: initial(record), changesOnly: true,
      submit: (values) => patch(source, toBody(values, record)),
    });
    if (answer) data.reload();
  };
  const edit = (record) => openDialog(`Edit this ${noun} as JSON`, (close) => html`<${JsonEditor} changesOnly
    value=${Object.fromEntries(editable.filter((name) => record[name] !== undefined).map((name) => [name, record[name]]))}
    save=${async (value) => { await patch(source, value); data.reload(); close(true); }} />`);
  const remove = async (record) => {
    const done = await confirmed({
      title: `Delete this ${noun}?`, text: html`<b>${title(record)}</b> is deleted for good.`,
      typed: typed?.(record), act: () => del(source),
    });
    if (done) go(home);
  };
  const record = data.value;
  const buttons = record && html`${actions?.(record, data.reload)}
    ${fields !== undefined && html`<button data-write disabled=${!fields} onClick=${() => change(record)}>Change</button>`}
    ${editable && html`<button data-write onClick=${() => edit(record)}>Edit as JSON</button>`}
    ${home && html`<button class="danger" onClick=${() => remove(record)}>Delete</button>`}`;
  return html`<${Page} trail=${trail} title=${record ? title(record) : noun} of=${data} actions=${buttons}>
    <${Loaded} data=${data}>${(value) => html`
      ${facts && html`<${Card} title="About"><${Facts} rows=${[...facts(value), ...stamps(value)]} /></${Card}>`}
      ${children?.(value, data.reload)}`}</${Loaded}>
  </${Page}>`;
}

// The rows of Facts that all records have.
export const stamps = (record) => [
  ["Id", html`<code>${record.id}</code>`],
  record.creationDate && ["Created", html`<${Time} at=${record.creationDate} />`],
  record.lastUpdated && ["Changed", html`<${Time} at=${record.lastUpdated} />`],
].filter(Boolean);

// Show a secret that the server shows once. `more`: markup below it, such as a call that uses the secret.
export function showOnce(title, text, secret, more) {
  return openDialog(title, (close) => html`<div class="stack">
    <p>${text} <b>It is shown now and never again.</b> Copy it before you close this.</p>
    <${Snippet} text=${secret} label="The secret" />${more}
    <div class="buttons"><button class="primary" onClick=${() => close(true)}>I have copied it</button></div></div>`);
}

export const article = (noun) => `${/^(?!use)[aeiou]/i.test(noun) ? "an" : "a"} ${noun}`;
