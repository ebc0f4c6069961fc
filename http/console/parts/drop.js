// A place where files are dropped, with a field to choose them.

import { html, useId, useState } from "../lib/ui.js";

// take(files): called with an array of files. `multiple`: more than one at a time.
export function DropFiles({ label, accept, multiple = false, take, disabled, children }) {
  const [over, setOver] = useState(false);
  const id = useId();
  const given = (list) => {
    const files = [...list].slice(0, multiple ? undefined : 1);
    if (files.length && !disabled) take(files);
  };
  const chosen = (event) => {
    const { files } = event.target;
    given(files);
    event.target.value = "";
  };
  const dropped = (event) => {
    event.preventDefault();
    setOver(false);
    given(event.dataTransfer.files);
  };
  const entered = (event) => {
    event.preventDefault();
    setOver(true);
  };
  return html`<div class=${over ? "drop over" : "drop"} onDragOver=${entered} onDragLeave=${() => setOver(false)} onDrop=${dropped}>
    <label class="hidden-label" for=${id}>${label}</label>
    <input id=${id} type="file" accept=${accept} multiple=${multiple} disabled=${disabled} onChange=${chosen} />
    <span class="quiet">or drop ${multiple ? "files" : "it"} here</span>
    ${children}
  </div>`;
}
