// Short notes at the corner: what was done, or why it was not.

import { html, signal, useLayoutEffect } from "../lib/ui.js";

const SHOWN_MS = 6000;
const notes = signal([]);
let last = 0;
let shown = false; // whether Notes is in the page

// Show a note. Errors stay until they are closed.
export function note(text, tone = "good") {
  if (!shown) return;
  const id = ++last;
  notes.value = [...notes.value.slice(-4), { id, text, tone }];
  if (tone !== "bad") setTimeout(() => close(id), SHOWN_MS);
}

// Do something, and show what came of it. Returns true if it succeeded.
export async function noted(promise, text) {
  try {
    const value = await promise;
    if (text) note(typeof text === "function" ? text(value) : text);
    return true;
  } catch (error) {
    note(error.message, "bad");
    return false;
  }
}

const close = (id) => (notes.value = notes.value.filter((each) => each.id !== id));

export function Notes() {
  // They are not for who logs in next; nor are those that come when the login has ended.
  useLayoutEffect(() => {
    shown = true;
    return () => {
      shown = false;
      notes.value = [];
    };
  }, []);
  return html`<div class="notes" role="status" aria-live="polite">
    ${notes.value.map((each) => html`<div key=${each.id} class=${each.tone}><span>${each.text}</span>
      <button class="small" onClick=${() => close(each.id)} aria-label="Close this note">Close</button></div>`)}
  </div>`;
}
