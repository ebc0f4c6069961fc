// The content of a file, if it is a picture or a text. It is fetched and shown as a blob, so it can do nothing here.

import { ownPath, request } from "../../lib/api.js";
import { bytes } from "../../lib/format.js";
import { useData } from "../../lib/hooks.js";
import { html, useEffect, useState } from "../../lib/ui.js";
import { Loaded } from "../../parts/basics.js";

const PICTURE_BYTES_MAX = 20_000_000;
const TEXT_BYTES_MAX = 100_000;
const TEXTS = /^(text\/|application\/(json|xml|javascript|yaml|x-yaml|toml|x-ndjson))|[+](json|xml)\b/;

const kindOf = ({ contentType = "" }) => (contentType.startsWith("image/") ? "picture" : TEXTS.test(contentType) ? "text" : null);

export function Preview({ file }) {
  const kind = kindOf(file);
  if (!kind) return html`<p class="quiet">Files of the type ${file.contentType || "that is not known"} are not shown here. Download it.</p>`;
  if (kind === "picture" && file.fileSize > PICTURE_BYTES_MAX) return html`<p class="quiet">Pictures of more than ${bytes(PICTURE_BYTES_MAX)} are not shown here. Download it.</p>`;
  return html`<${Content} key=${file.s3etag} file=${file} kind=${kind} />`;
}

function Content({ file, kind }) {
  const cut = kind === "text" && file.fileSize > TEXT_BYTES_MAX;
  const data = useData(async (signal) => {
    const answer = await request("GET", ownPath(file.url), { token: false, signal, headers: cut ? { range: `bytes=0-${TEXT_BYTES_MAX - 1}` } : {} });
    return kind === "text" ? answer.text() : answer.blob();
  }, [file.s3etag]);
  return html`<${Loaded} data=${data}>${(value) => (kind === "picture" ? html`<${Picture} file=${file} blob=${value} />`
    : html`<pre class="preview-text" tabindex="0">${value}</pre>${cut && html`<p class="quiet">These are the first ${bytes(TEXT_BYTES_MAX)}.</p>`}`)}</${Loaded}>`;
}

function Picture({ file, blob }) {
  const [url, setUrl] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return url && html`<img class="preview-picture" src=${url} alt=${file.name} />`;
}
