// One file: what it is, its content, links to it, and what can be done with it.

import { get, ownPath, request } from "../../lib/api.js";
import { bytes } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { go } from "../../lib/router.js";
import { html } from "../../lib/ui.js";
import { Badge, Card, Facts, Loaded, Page, Snippet } from "../../parts/basics.js";
import { confirmed, openDialog } from "../../parts/dialog.js";
import { DropFiles } from "../../parts/drop.js";
import { openForm } from "../../parts/form.js";
import { note, noted } from "../../parts/notes.js";
import { stamps } from "../../parts/records.js";
import { Preview } from "./preview.js";
import { directoryLink, download, filePath, joined, moveFile, readFile, removeFile, TREES } from "./trees.js";
import { upload } from "./upload.js";
import { Uploads } from "./uploads.js";

export function FilePage({ app, tree, id }) {
  const data = useData((signal) => readFile(app, tree, id, { signal }), [tree, id]);
  const file = data.value;
  const complete = file?.status === "completed";
  const other = tree === TREES.private ? TREES.public : TREES.private;
  const copy = () => confirmed({
    title: `Copy it to the ${other.name} files?`, button: "Copy",
    text: other === TREES.public ? "Anybody can read a public file, without a login. The private file stays." : "The public file stays, with its address, until you delete it.",
    act: async () => {
      const content = await (await request("GET", ownPath((await readFile(app, tree, id)).url), { token: false })).blob();
      upload(app, other, file.parentDirectory, [new File([content], file.name, { type: file.contentType || "" })]);
      note(`The copy is sent to the ${other.name} files.`);
    },
  });
  const replace = ([chosen]) => {
    const begin = async () => upload(app, tree, file.parentDirectory, [new File([chosen], file.name, { type: chosen.type })], id);
    return complete ? confirmed({ title: "Replace the content?", text: html`The content of <b class="break">${file.name}</b> is lost. <b class="break">${chosen.name}</b> takes its place.`, button: "Replace", act: begin }) : begin();
  };
  const actions = file && html`
    ${complete && html`<button class="primary" onClick=${() => noted(download(app, tree, id))}>Download</button>
      <button onClick=${() => makeLink(app, tree, file)}>Link</button>
      <button data-write onClick=${copy}>Copy to ${other.name} files</button>`}
    <button data-write onClick=${() => move(app, tree, file).then((done) => done && data.reload())}>Rename or move</button>
    <button data-write class="danger" onClick=${() => remove(app, tree, file).then((done) => done && go(directoryLink(app, tree, file.parentDirectory)))}>Delete</button>`;
  return html`<${Page} trail=${[[`${tree === TREES.private ? "Private" : "Public"} files`, directoryLink(app, tree, "/")], ...(file ? trailOf(app, tree, file.parentDirectory) : [])]} title=${file?.name || "File"} actions=${actions}>
    <${Uploads} app=${app} ended=${data.reload} unfinished />
    <${Loaded} data=${data}>${(shown) => html`
      ${complete && html`<${Card} title="Content"><${Preview} file=${shown} /></${Card}>`}
      <${Card} title="About"><${Facts} rows=${[
        ["Status", shown.status === "completed" ? html`<${Badge} tone="good">completed</${Badge}>` : html`<${Badge} tone="warn">${shown.status}</${Badge}>`],
        ["Path", joined(shown.parentDirectory, shown.name)],
        ["Size", bytes(shown.fileSize)],
        ["Type", shown.contentType || "not known"],
        ["Picture", shown.fileDimensions && `${shown.fileDimensions.width} x ${shown.fileDimensions.height}`],
        ["Hash", shown.s3etag && html`<code class="break">${shown.s3etag}</code>`],
        ["Address", tree === TREES.public && shown.url ? html`<a href=${ownPath(shown.url)} target="_blank" rel="noopener" class="break">${shown.url}</a>` : null],
        ["Author", html`${shown.authorType} <code>${shown.authorId}</code>`],
        ...stamps(shown),
      ]} /></${Card}>
      <${Card} data-write title=${complete ? "New content" : "The content has not arrived"}>
        <${DropFiles} label="Choose the new content" take=${replace} />
      </${Card}>`}</${Loaded}>
  </${Page}>`;
}

// The directories on the way to a path, as [[name, address], ...].
export function trailOf(app, tree, directory) {
  const names = directory.split("/").filter(Boolean);
  return names.map((name, at) => [name, directoryLink(app, tree, "/" + names.slice(0, at + 1).join("/"))]);
}

export function move(app, tree, file) {
  const fields = [
    { name: "name", label: "Name", required: true },
    { name: "parentDirectory", label: "Directory", blank: "/", hint: "Such as /pumps/pictures. Directories that are missing are created." },
  ];
  return openForm(`Rename or move this ${file.type}`, { fields, initial: file, changesOnly: true, submit: (values) => moveFile(app, tree, file.id, values) });
}

export function remove(app, tree, file) {
  const directory = file.type === "directory";
  return confirmed({
    title: `Delete this ${file.type}?`, typed: directory ? file.name : undefined,
    text: html`<b class="break">${joined(file.parentDirectory, file.name)}</b> is deleted for good${directory ? ", with all that is in it. A job does this." : "."}`,
    act: () => removeFile(app, tree, file.id),
  });
}

async function makeLink(app, tree, file) {
  const text = "Anybody who has this link can read the file, without a login.";
  const show = (url) => openDialog("A link to this file", (close) => html`<div class="stack"><p>${text}</p><${Snippet} text=${url} label="Link" />
    <div class="buttons"><button onClick=${() => close()}>Close</button></div></div>`);
  if (tree === TREES.public) return show(file.url);
  const made = await openForm("Make a link to this file", {
    fields: [{ name: "hours", label: "It works for so many hours", type: "number", required: true, value: 1, hint: "At most 168, a week." }],
    button: "Make a link",
    submit: async ({ hours }) => {
      const urlTTL = Math.round(hours * 3600);
      if (urlTTL === 0) throw new Error(`hours is ${hours}; it must be more than 0.`);
      return get(filePath(app, tree, file.id), { urlTTL });
    },
  });
  return made && show(made.url);
}
