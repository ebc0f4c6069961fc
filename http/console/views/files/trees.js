// The two trees of files of an application: the names of their calls, and paths in them.

import { del, get, ownPath, path, post } from "../../lib/api.js";
import { link } from "../../lib/router.js";

// list: the segment of their list; record: that of one of them; part: the name of the part of a form with a content.
export const TREES = {
  private: { name: "private", list: "privateFiles", record: "privateFiles", part: "privateFile" },
  public: { name: "public", list: "files", record: "file", part: "file" },
};

export const listPath = (app, tree) => path("applications", app, tree.list);
export const filePath = (app, tree, id) => path("applications", app, tree.record, id);

// The directory of a file is shown with a slash at the end, and without one in addresses of the console.
export const joined = (directory, name) => directory.replace(/\/$/, "") + "/" + name;

// The addresses in the console of a directory and of a file.
export const directoryLink = (app, tree, directory) =>
  link("/applications", app, "files", { tree: tree.name === "private" ? "" : tree.name, directory: directory.replace(/\/$/, "") });
export const fileLink = (app, tree, id) => link("/applications", app, "files", { tree: tree.name === "private" ? "" : tree.name, file: id });

export const readFile = (app, tree, id, options) => get(filePath(app, tree, id), {}, options);

export const removeFile = (app, tree, id) => del(filePath(app, tree, id));

// What is undefined stays as it is.
export async function moveFile(app, tree, id, { name, parentDirectory }) {
  if (name === "") throw new Error("name: is empty; give one.");
  return post(filePath(app, tree, id) + "/move", undefined, { query: { name, parentDirectory } });
}

// Download a file by a link that is made now: one that is shown for long has expired.
export async function download(app, tree, id) {
  const { url, name } = await readFile(app, tree, id);
  const element = document.createElement("a");
  element.href = ownPath(url);
  element.download = name;
  element.click();
}
