// The files of an application: the private and the public tree, a directory at a time, and one file.

import { get, post } from "../lib/api.js";
import { bytes } from "../lib/format.js";
import { route } from "../lib/router.js";
import { html, useState } from "../lib/ui.js";
import { Badge, Empty, Notice, Page, Tabs, Time } from "../parts/basics.js";
import { DropFiles } from "../parts/drop.js";
import { openForm } from "../parts/form.js";
import { noted } from "../parts/notes.js";
import { RecordTable } from "../parts/table.js";
import { FilePage, move, remove, trailOf } from "./files/file.js";
import { directoryLink, download, fileLink, joined, listPath, TREES } from "./files/trees.js";
import { upload } from "./files/upload.js";
import { Uploads } from "./files/uploads.js";

const LEADS = {
  private: "Files that are read by links that expire, and by those who may read the application.",
  public: "Files with an address that anybody may read, without a login.",
};
const DELETING_MS = 1000;

export function Files({ app }) {
  const { query } = route.value;
  const tree = TREES[query.tree] || TREES.private;
  if (query.file) return html`<${FilePage} key=${tree.name + query.file} app=${app} tree=${tree} id=${query.file} />`;
  return html`<${Directory} app=${app} tree=${tree} directory=${query.directory || "/"} />`;
}

function Directory({ app, tree, directory }) {
  const [refresh, setRefresh] = useState(0);
  const [missing, setMissing] = useState(false);
  const again = () => setRefresh((before) => before + 1);
  const source = listPath(app, tree);
  // A search goes through all directories below the application, the list through one.
  const load = async (asked, signal) => {
    const list = await get(source, { ...asked, directory: asked.filter ? undefined : directory, urlTTL: tree === TREES.private ? 0 : undefined }, { signal });
    setMissing(list.parentExists === false);
    return list;
  };
  const create = async () => {
    const made = await openForm("Create a directory", {
      fields: [{ name: "name", label: "Name", required: true, hint: "With slashes, several are created in each other." }], button: "Create",
      submit: ({ name }) => post(source, { name, parentDirectory: directory, type: "directory" }),
    });
    if (made) again();
  };
  const searching = Boolean(route.value.query.filter);
  const columns = [
    { label: "Name", sort: "name", render: (row) => (searching ? joined(row.parentDirectory, row.name) : row.name) + (row.type === "directory" ? "/" : "") },
    { label: "Size", number: true, render: (row) => (row.type === "directory" ? "" : html`<span class="nowrap">${bytes(row.fileSize)}</span>`) },
    { label: "Type", sort: "type", render: (row) => (row.type === "directory" ? "directory" : row.contentType || "not known") },
    { label: "Changed", sort: "lastUpdated", render: (row) => html`<${Time} at=${row.lastUpdated} />` },
    { label: "Status", render: (row) => row.status !== "completed" && html`<${Badge} tone="warn">${row.status}</${Badge}>` },
    { label: html`<span class="hidden-label">Actions</span>`, render: (row) => html`<span class="file-actions">
      ${row.type === "file" && row.status === "completed" && button("Download", row, () => noted(download(app, tree, row.id)))}
      ${button("Move", row, () => move(app, tree, row).then((done) => done && again()), { "data-write": true })}
      ${button("Delete", row, () => remove(app, tree, row).then((done) => done && again()), { class: "small danger" })}</span>` },
  ];
  const trail = [[tree === TREES.private ? "Private files" : "Public files", directoryLink(app, tree, "/")], ...trailOf(app, tree, directory)];
  const filters = html`<nav class="trail" aria-label="Directory">${trail.map(([text, address], at) => html`${at > 0 && html`<span aria-hidden="true">/</span>`}
    <a href=${address} aria-current=${at === trail.length - 1 ? "page" : undefined}>${text}</a>`)}</nav>`;
  const example = { name: "notes.txt", parentDirectory: directory, type: "file", fileSize: 5, contentType: "text/plain" };
  const empty = html`<${Empty} title=${directory === "/" ? `There are no ${tree.name} files yet` : "This directory is empty"} call=${directory === "/" && { method: "POST", path: source, body: example }}>
    <p data-write>Choose files above, or drop them there.${directory === "/" ? " A program creates a file with its size; the answer has the form by which it sends the content." : ""}</p></${Empty}>`;
  return html`<${Page} title="Files" lead=${LEADS[tree.name]} actions=${html`<button data-create onClick=${create}>Create a directory</button>`}>
    <${Tabs} label="Trees of files" current=${tree.name} items=${[["private", "Private", directoryLink(app, TREES.private, "/")], ["public", "Public", directoryLink(app, TREES.public, "/")]]} />
    <div data-write><${DropFiles} multiple label="Choose files to upload" take=${(files) => upload(app, tree, directory, files)}><span>to store them in <b class="break">${directory}</b></span></${DropFiles}></div>
    <${Uploads} app=${app} ended=${again} />
    ${missing && html`<${Notice} tone="warn">There is no directory ${directory}. <a href=${directoryLink(app, tree, "/")}>Go to the first one.</a> An upload creates it.</${Notice}>`}
    <${RecordTable} key=${tree.name} noun="entry" many="entries" source=${load} refresh=${`${directory} ${refresh}`} columns=${columns} filters=${filters} empty=${empty} sortField="name"
      every=${(list) => (list.items.some((each) => each.status === "deleting") ? DELETING_MS : 0)}
      href=${(row) => (row.type === "directory" ? directoryLink(app, tree, joined(row.parentDirectory, row.name)) : fileLink(app, tree, row.id))} />
  </${Page}>`;
}

const button = (text, row, act, more) =>
  html`<button class="small" onClick=${act} ...${more}>${text}<span class="hidden-label"> ${row.name}</span></button>`;
