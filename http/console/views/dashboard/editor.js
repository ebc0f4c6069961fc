// The editor of a dashboard: its blocks are moved, resized, changed, added and removed in a draft, by mouse, touch and keys.
// Nothing is stored before Save.

import { post } from "../../lib/api.js";
import { exactJson } from "../../lib/exact.js";
import { useData } from "../../lib/hooks.js";
import { setQuery } from "../../lib/router.js";
import { html, useEffect, useRef, useState } from "../../lib/ui.js";
import { Empty, Problem } from "../../parts/basics.js";
import { confirmed } from "../../parts/dialog.js";
import { IconButton } from "../../parts/icon.js";
import { note } from "../../parts/notes.js";
import { Block } from "./block.js";
import { WIDTH_PX } from "./board.js";
import { useDrag } from "./drag.js";
import { forgetDraft, useDraft } from "./draft.js";
import { addBlock, editBlock } from "./form.js";
import { columnsOf, freePlace } from "./grid.js";

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const HINT = "Arrow keys move it, with Shift they resize it; Enter opens its settings, Delete removes it.";

// source: the path of the dashboard; save(blocks, etag) stores them and gives a promise; done(): the dashboard is to be shown.
export function Editor({ app, source, dashboard, body, adding, save, done }) {
  const draft = useDraft(dashboard);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const [said, setSaid] = useState("");
  const data = useDraftData(source, draft, body);
  const columns = columnsOf(draft.places);
  const board = useRef(null);
  const drag = useDrag(board, draft.places, columns, (at, place) => draft.move(draft.items[at].key, place, columns));
  const preview = (block) => (signal) => post(`${source}/preview`, { ...body, blocks: [block] }, { signal });
  const nameOf = ({ block }) => block.title || block.blockType;

  const add = async () => {
    const block = await addBlock(app, preview).catch((failure) => note(failure.message, "bad"));
    if (!block) return;
    const { x, y, width, height } = freePlace(draft.places, block.width, block.height, columns);
    draft.add({ ...block, startX: x, startY: y, width, height });
  };
  const edit = async (item) => {
    const block = await editBlock(app, item.block, preview).catch((failure) => note(failure.message, "bad"));
    if (block) draft.put(item.key, block);
  };
  const remove = (item) => {
    draft.remove(item.key);
    setSaid(`${nameOf(item)} is removed. Undo brings it back.`);
  };
  const store = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      if (draft.changed) await save(draft.items.map((each) => each.block), draft.etag);
      forgetDraft(dashboard.dashboardId);
      done();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  const leave = async () => {
    const text = "What was changed since the dashboard was saved is lost.";
    if (draft.changed && !(await confirmed({ title: "Discard the changes?", text, button: "Discard", act: () => true }))) return;
    forgetDraft(dashboard.dashboardId);
    done();
  };
  useKeys({ undo: draft.undo, redo: draft.redo, store });
  useEffect(() => {
    if (!adding) return;
    setQuery({ add: "" });
    add();
  }, []);

  const onKey = (item, at) => (event) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key];
    if (step) {
      const place = draft.places[at], [across, down] = step;
      const wanted = event.shiftKey
        ? { ...place, width: place.width + across, height: place.height + down } : { ...place, x: place.x + across, y: place.y + down };
      if (wanted.width < 1 || wanted.height < 1 || wanted.x < 0 || wanted.y < 0 || wanted.x + wanted.width > columns) return;
      draft.move(item.key, wanted, columns, `${event.shiftKey ? "resize" : "move"} ${item.key}`);
      setSaid(`${nameOf(item)}: column ${wanted.x + 1}, row ${wanted.y + 1}, ${wanted.width} wide, ${wanted.height} high`);
    } else if (event.key === "Enter") edit(item);
    else if (event.key === "Delete") remove(item);
    else return;
    event.preventDefault();
  };

  const places = drag.live || draft.places;
  return html`<div class="edit-bar">
      <div class="row">
        <button data-create onClick=${add}>Add a block</button>
        <button disabled=${!draft.canUndo} title="Ctrl+Z" onClick=${draft.undo}>Undo</button>
        <button disabled=${!draft.canRedo} title="Ctrl+Shift+Z" onClick=${draft.redo}>Redo</button>
      </div>
      <div class="row"><span class="quiet">${draft.changed ? "Not saved yet" : "Nothing is changed"}</span>
        <button onClick=${leave}>Cancel</button>
        <button class="primary" aria-disabled=${busy} title="Ctrl+S" onClick=${store}>Save</button></div>
    </div>
    <${Problem} error=${error} />
    ${data.error && html`<${Problem} error=${data.error} retry=${data.reload} />`}
    <p class="quiet">Drag a block to move it, and its lower right corner to resize it. Or come to it with Tab: ${HINT[0].toLowerCase() + HINT.slice(1)}</p>
    <p class="hidden-label" role="status">${said}</p>
    ${!draft.items.length && html`<${Empty} title="This dashboard has no blocks yet"><p>A block shows a chart, a value, a list or a text.</p>
      <div><button class="primary" onClick=${add}>Add a block</button></div></${Empty}>`}
    <div class="board editing" ref=${board} style=${{ gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` }} onPointerDown=${drag.onPointerDown}>
      ${draft.items.map((item, at) => {
        const { x, y, width, height } = places[at], name = nameOf(item);
        return html`<${Block} key=${item.key} block=${item.block} data=${data.shown.get(item.key)} failed=${data.error} rows=${height} px=${(WIDTH_PX * width) / columns} app=${app}
          place=${{ gridColumn: `${x + 1} / span ${width}`, gridRow: `${y + 1} / span ${height}` }}
          editing=${{ "data-at": at, tabindex: 0, "aria-description": HINT, class: `card board-block${drag.at === at ? " dragged" : ""}`, onKeyDown: onKey(item, at) }}
          tools=${html`<${IconButton} icon="edit" label=${`Edit ${name}`} title="Edit" onClick=${() => edit(item)} />
            <${IconButton} icon="remove" label=${`Remove ${name}`} title="Remove" onClick=${() => remove(item)} />`} />`;
      })}
    </div>`;
}

// What the blocks of a draft show: {shown: by the key of the item, error, reload}. It is read again when more than a place
// has changed.
function useDraftData(source, draft, body) {
  const blocks = draft.items.map((each) => each.block);
  const depends = exactJson(draft.items.map(({ key, block: { startX, startY, width, height, ...rest } }) => [key, rest]));
  const data = useData(async (signal) => {
    if (!blocks.length) return new Map();
    const answer = await post(`${source}/preview`, { ...body, blocks }, { signal });
    return new Map(answer.blocks.map((each) => [draft.items[each.position].key, each]));
  }, [source, depends, JSON.stringify(body)]);
  return { ...data, shown: data.value || new Map() };
}

// Ctrl+Z, Ctrl+Shift+Z and Ctrl+S, also in fields of the page, not in those of a dialog.
function useKeys(actions) {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    const pressed = (event) => {
      if (!(event.ctrlKey || event.metaKey) || document.querySelector("dialog[open]")) return;
      const key = event.key.toLowerCase();
      const act = key === "s" ? latest.current.store : key === "z" ? (event.shiftKey ? latest.current.redo : latest.current.undo) : null;
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
