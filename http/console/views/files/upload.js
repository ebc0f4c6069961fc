// Uploads of files, one after the other, with their progress. They go on while other pages of the console are shown.

import { ApiError, authorization, errorOf, get, ownPath, patch, post } from "../../lib/api.js";
import { session } from "../../lib/session.js";
import { effect, signal } from "../../lib/ui.js";
import { filePath, joined, listPath } from "./trees.js";

// A file of at most so many bytes is sent in one call, a larger one by the form that its record gives.
const ONE_CALL_BYTES_MAX = 5_000_000;

// [{id, app, tree, directory, file, sent (bytes), state: "waiting" | "sending" | "done" | "exists" | "failed", error, found}]
export const uploads = signal([]);
let last = 0;
let busy = false;
const requests = new Map();

// The next person at this browser sees and sends nothing of the last one.
effect(() => {
  if (session.value) return;
  for (const request of requests.values()) request.abort();
  uploads.value = [];
});

const change = (id, changes) => (uploads.value = uploads.value.map((each) => (each.id === id ? { ...each, ...changes } : each)));

// Add files to the queue. `replace`: the id of the file that gets this content.
export function upload(app, tree, directory, files, replace) {
  const added = files.map((file) => ({ id: ++last, app, tree, directory, file, replace, sent: 0, state: "waiting" }));
  uploads.value = [...uploads.value, ...added];
  work();
}

export const replaceExisting = (each) => {
  change(each.id, { state: "waiting", replace: each.found });
  work();
};

export function leaveOut(each) {
  requests.get(each.id)?.abort();
  uploads.value = uploads.value.filter(({ id }) => id !== each.id);
}

export const forgetDone = () => (uploads.value = uploads.value.filter((each) => each.state !== "done"));

async function work() {
  if (busy) return;
  busy = true;
  for (let next; (next = uploads.value.find((each) => each.state === "waiting"));) {
    change(next.id, { state: "sending", error: null });
    try {
      await send(next);
    } catch (error) {
      change(next.id, { state: "failed", error });
    }
  }
  busy = false;
}

// Whether an upload was stopped, or the login has ended, since it began.
const isLeftOut = (item) => !uploads.value.some((each) => each.id === item.id);

async function send(item) {
  const { app, tree, file, directory } = item;
  const name = file.name.normalize("NFC");
  let id = item.replace;
  if (!id) {
    const found = await existing(app, tree, directory, name);
    if (isLeftOut(item)) return;
    if (found?.status === "completed") {
      change(item.id, { state: "exists", found: found.id });
      return;
    }
    id = found?.id;
  }
  const contentType = file.type || undefined;
  const byForm = async () => {
    const fields = { fileSize: file.size, contentType };
    const record = id ? await patch(filePath(app, tree, id), fields) : await post(listPath(app, tree), { name, parentDirectory: directory, type: "file", ...fields });
    await postForm(item, ownPath(record.upload.url), [...Object.entries(record.upload.fields), ["file", file]], {});
  };
  // A file that waits for content may wait for one of another size, so only a new one is sent in one call.
  if (id || file.size > ONE_CALL_BYTES_MAX) {
    await byForm();
  } else {
    id = (await post(listPath(app, tree), { name, parentDirectory: directory, type: "file", contentType })).id;
    try {
      await postForm(item, filePath(app, tree, id) + "/upload", [[tree.part, file]], authorization());
    } catch (error) {
      if (error.status !== 413) throw error;
      await byForm(); // an operator may have lowered what one call takes
    }
  }
  change(item.id, { state: "done", sent: file.size });
}

async function existing(app, tree, directory, name) {
  const found = await get(listPath(app, tree), { directory, filterField: "name", filter: name, perPage: 1000, urlTTL: tree.name === "private" ? 0 : undefined });
  const same = found.items.find((each) => each.name === name);
  if (same?.type === "directory") throw new Error(`${joined(directory, name)} is a directory; rename the file.`);
  return same;
}

// Send a form. Not by fetch, which tells nothing of the progress of a request.
async function postForm(item, target, fields, headers) {
  if (isLeftOut(item)) throw new Error("The upload was stopped.");
  const form = new FormData();
  for (const [name, value] of fields) form.append(name, value);
  await new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    requests.set(item.id, request);
    const over = (settle) => {
      requests.delete(item.id);
      settle();
    };
    request.upload.onprogress = (event) => change(item.id, { sent: Math.min(event.loaded, item.file.size) });
    request.onload = () => over(() => (request.status < 300 ? resolve()
      : errorOf(new Response(request.responseText, { status: request.status })).then(reject)));
    request.onerror = () => over(() => reject(new ApiError(0, "Unreachable", "The upload was cut off. Check that the server runs, and send the file again.")));
    request.onabort = () => over(() => reject(new Error("The upload was stopped.")));
    request.open("POST", target);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.send(form);
  });
}
