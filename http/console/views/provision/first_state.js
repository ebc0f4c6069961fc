// Waits for the next state of a device, and shows it when it arrives.

import { get, path } from "../../lib/api.js";
import { unitOf, valueText, withUnit } from "../../lib/format.js";
import { useStream } from "../../lib/hooks.js";
import { link } from "../../lib/router.js";
import { html, useEffect, useState } from "../../lib/ui.js";
import { Badge, Live, Notice, Time } from "../../parts/basics.js";

const SHOWN_MAX = 12;

// record: the device. What it reported before this was opened does not count.
export function FirstState({ app, record }) {
  const home = path("applications", app, "devices", record.id);
  const [state, setState] = useState(null);
  const [turn, setTurn] = useState(0);
  const [known, setKnown] = useState(false); // it had reported before
  const [before] = useState(() => get(`${home}/state`).catch(() => []));
  const stream = useStream(`${home}/stateStream`, { onEvent: setState, onReset: () => setTurn((past) => past + 1) });
  const isLive = stream.state === "live";
  // A state may have come before the stream was open, or while it was interrupted.
  useEffect(() => {
    if (!isLive) return;
    Promise.all([before, get(`${home}/state`)]).then(
      ([[old], [newest]]) => {
        setKnown(Boolean(old));
        if (newest && newest.time !== old?.time) setState((shown) => shown || newest);
      },
      () => {}, // the stream tells of its own faults
    );
  }, [isLive, turn]);
  if (!state) {
    return html`<${Notice}><div class="spread" role="status"><span><b>Waiting for the ${known ? "next" : "first"} state of ${record.name}.</b> It appears here as soon as it arrives.</span><${Live} stream=${stream} /></div></${Notice}>`;
  }
  const unit = (name) => unitOf(record.attributes.find((each) => each.name === name));
  return html`<${Notice} tone="good"><div class="stack" role="status">
    <span><b>${record.name} has reported</b> <${Time} at=${state.time} age />.</span>
    <span class="row">${Object.entries(state.data).slice(0, SHOWN_MAX).map(([name, value]) => html`<${Badge} tone="good">${name} ${withUnit(valueText(value), unit(name))}</${Badge}>`)}</span>
    <span><a class="button" href=${link("/applications", app, "devices", record.id)}>Open the device</a></span></div></${Notice}>`;
}
