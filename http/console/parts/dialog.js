// Dialogs over the page. One at a time; Escape closes it, and the focus goes back to where it was.

import { html, signal, useEffect, useId, useRef, useState } from "../lib/ui.js";
import { Problem } from "./basics.js";
import { note } from "./notes.js";

const shown = signal(null);
let last = 0;

// Open a dialog: `body(close)` is its content. Returns a promise of what `close(value)` got, undefined when dismissed.
// `close.during(work)`: the content waits for an answer. If the dialog is dismissed meanwhile, the promise has what `work`
// gives, so that nothing is lost, such as a secret that is shown once; unless the reader has left the view by then.
// `close.during(null)`: the content goes on without it.
export function openDialog(title, body) {
  return new Promise((resolve) => (shown.value = { id: ++last, title, body, resolve }));
}

// For what goes on when a dialog is closed: `open()` tells whether it still is in the page.
export function useOpen() {
  const open = useRef(true);
  useEffect(() => () => (open.current = false), []);
  return () => open.current;
}

// Ask before something that cannot be undone. `act(open)` does it; its error is shown in the dialog, or as a note if that
// was closed meanwhile. True if it was done.
// `typed`: a text that the reader has to type first, for what removes much.
export function confirmed({ title, text, button = "Delete", typed, act }) {
  return openDialog(title, (close) => html`<${Confirmation} ...${{ text, button, typed, act, close }} />`);
}

function Confirmation({ text, button, typed, act, close }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const [given, setGiven] = useState("");
  const id = useId();
  const open = useOpen();
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const work = Promise.resolve(act(open)).then(() => true);
      close.during(work);
      close(await work);
    } catch (failure) {
      if (!open()) note(failure.message, "bad");
      setError(failure);
      setBusy(false);
    }
  };
  return html`<form onSubmit=${submit} class="stack">
    <p>${text}</p>
    ${typed && html`<div class="field"><label for=${id}>To confirm, type <code>${typed}</code></label>
      <input id=${id} autocomplete="off" value=${given} onInput=${(event) => setGiven(event.target.value)} /></div>`}
    <${Problem} error=${error} />
    <div class="buttons"><button type="button" onClick=${() => close()}>Cancel</button>
      <button class="danger" disabled=${busy || (typed && given !== typed)}>${button}</button></div>
  </form>`;
}

// Where dialogs are shown; once in the frame.
export function Dialogs() {
  const dialog = shown.value;
  const element = useRef(null);
  const title = useId();
  useEffect(() => {
    if (!dialog) return;
    element.current.showModal();
    element.current.querySelector("input, select, textarea")?.focus();
  }, [dialog]);
  // A dialog belongs to the view over which it was opened.
  useEffect(() => {
    if (!dialog) return undefined;
    const left = () => {
      hide();
      dialog.resolve();
    };
    addEventListener("hashchange", left);
    return () => removeEventListener("hashchange", left);
  }, [dialog]);
  // Nor is it shown to who logs in next.
  useEffect(() => () => {
    shown.value?.resolve();
    shown.value = null;
  }, []);
  const hide = () => {
    if (shown.value !== dialog) return;
    element.current?.close();
    shown.value = null;
  };
  const close = (value) => {
    hide();
    const place = location.hash;
    dialog.resolve(value ?? dialog.work?.then((late) => (location.hash === place ? late : undefined), () => undefined));
  };
  close.during = (work) => (dialog.work = work);
  if (!dialog) return null;
  return html`<dialog key=${dialog.id} ref=${element} aria-labelledby=${title} onCancel=${(event) => { event.preventDefault(); close(); }} onClose=${() => close()}>
    <h2 id=${title}>${dialog.title}</h2>
    ${dialog.body(close)}
  </dialog>`;
}
