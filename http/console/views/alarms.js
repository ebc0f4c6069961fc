// Alarms: what is wrong now, the worst first, and the rules that say what must not be so.

import { get, patch, path, post } from "../lib/api.js";
import { count, plural, valueText } from "../lib/format.js";
import { useData } from "../lib/hooks.js";
import { go, link } from "../lib/router.js";
import { html, useState } from "../lib/ui.js";
import { Badge, Card, Empty, Fresh, Loaded, Page, Shape, Time } from "../parts/basics.js";
import { openForm, textsOf, valuesOf } from "../parts/form.js";
import { note } from "../parts/notes.js";
import { RecordLinks } from "../parts/choose.js";
import { RecordPage } from "../parts/records.js";
import { RecordTable } from "../parts/table.js";
import { ruleFields } from "./alarms/form.js";
import { groupOptions, home, rules, useGroupNames, Views } from "./alarms/tabs.js";
import { Trial } from "./alarms/trial.js";
import { askPermission, permission, sound, switchSound } from "./alarms/watch.js";
import { bodyOf, changesOf, conditionWords, devicesWords, formValues, noticeWords, time } from "./alarms/words.js";
import { LevelBadge } from "./events/badges.js";

const EVERY_MS = 3000;
const LISTED = 100;
const RULE = { name: "Too warm", severity: "error", condition: { type: "attribute", attribute: "temperature", comparison: "above", value: 30, hysteresis: 2 }, durationSeconds: 120, notify: { steps: [{ emails: ["night.shift@example.com"] }] } };
const LEAD = "What is wrong with devices now, the worst first. An alarm ends by itself when its rule holds no longer.";

const attributesOf = async (app) => (await get(path("applications", app, "devices", "attributeNames"))).attributeNames;

const trial = (app, rule) => (read) => html`<${Trial} ...${{ app, read, rule }} />`;

async function createRule(app) {
  const fields = ruleFields(app, await attributesOf(app), await groupOptions(app));
  const made = await openForm("Create an alarm rule", { fields, button: "Create", extra: trial(app), submit: (values) => post(rules(app), bodyOf(values)) });
  if (made) {
    note("The rule is on.");
    go(home(app, "rules", made.id));
  }
}

const CreateRule = ({ app }) => html`<button class="primary" data-create onClick=${() => createRule(app)}>Create a rule</button>`;

export function Alarms({ app }) {
  const data = useData((signal) => get(path("applications", app, "alarms"), { perPage: LISTED }, { signal }), [app], { every: EVERY_MS });
  const some = useData((signal) => get(rules(app), { perPage: 1 }, { signal }), [app]);
  const actions = html`<${Fresh} data=${data} />
    <button aria-pressed=${sound.value} onClick=${switchSound}>Sound ${sound.value ? "on" : "off"}</button>
    ${permission.value === "default" && html`<button onClick=${askPermission}>Notify me in this browser</button>`}
    <${CreateRule} app=${app} />`;
  return html`<${Page} title="Alarms" lead=${LEAD} actions=${actions} of=${data}>
    <${Views} app=${app} current="open" />
    <${Loaded} data=${data}>${(list) => (list.items.length ? html`<${OpenAlarms} ...${{ app, list, reload: data.reload }} />` : html`<${Nothing} ...${{ app, some: some.value }} />`)}</${Loaded}>
  </${Page}>`;
}

function Nothing({ app, some }) {
  if (!some) return html`<${Shape} />`;
  if (some.totalCount) return html`<${Card}><p class="all-well"><b>No alarm is open.</b> The devices of this application are watched by ${plural(some.totalCount, "rule")}.</p></${Card}>`;
  return html`<section class="card flush"><${Empty} title="Nothing is watched yet" call=${{ method: "POST", path: rules(app), body: RULE }}>
    <p>A rule says what must not be so: a value that is too high for two minutes, a device that is silent. Where it is so, there is an alarm here, and a mail if you like.</p>
    <div><${CreateRule} app=${app} /></div></${Empty}></section>`;
}

function OpenAlarms({ app, list, reload }) {
  return html`<p role="status"><b>${plural(list.totalCount, "open alarm")}</b>${list.newCount > 0 && `, ${count(list.newCount)} that nobody has acknowledged`}${list.totalCount > list.items.length && `; the worst ${count(list.items.length)} are shown`}.</p>
    <ul class="alarms" aria-label="Open alarms">${list.items.map((alarm) => html`<${Alarm} key=${alarm.eventId} ...${{ app, alarm, reload }} />`)}</ul>`;
}

function Alarm({ app, alarm, reload }) {
  const [busy, setBusy] = useState(false);
  const acknowledge = async () => {
    setBusy(true);
    try {
      await patch(path("applications", app, "events", alarm.eventId), { state: "acknowledged" });
      reload();
    } catch (error) {
      note(error.message, "bad");
    }
    setBusy(false);
  };
  const { value } = alarm;
  const isEvent = alarm.conditionType === "event";
  return html`<li class=${`card alarm ${alarm.level}`}>
    <div class="stack">
      <div class="row"><${LevelBadge} level=${alarm.level} /><a class="subject" href=${link("/applications", app, "events", alarm.eventId)}>${alarm.alarmRuleName || alarm.subject}</a>
        ${alarm.deviceId && html`<span>on</span><a href=${link("/applications", app, "devices", alarm.deviceId)}>${alarm.deviceName || alarm.deviceId}</a>`}</div>
      <div>${alarm.message}${value !== undefined && (!isEvent || alarm.count > 1) && html`${" "}<span class="quiet">${isEvent ? "The newest:" : "Now"} ${valueText(value)}.</span>`}</div>
      <div class="row quiet"><span>since <${Time} at=${alarm.openedAt} age /></span>${alarm.count > 1 && html`<span>${plural(alarm.count, isEvent ? "event" : "report")}</span>`}
        <a href=${home(app, "rules", alarm.alarmRuleId)} aria-label=${`The rule ${alarm.alarmRuleName}`}>Rule</a></div>
    </div>
    ${alarm.state === "new" ? html`<button data-write disabled=${busy} aria-label=${`Acknowledge: ${alarm.subject}`} onClick=${acknowledge}>Acknowledge</button>` : html`<${Badge} tone="warn">${alarm.state}</${Badge}>`}
  </li>`;
}

export function AlarmRules({ app }) {
  const names = useGroupNames(app);
  const empty = html`<${Empty} title="There are no rules yet" call=${{ method: "POST", path: rules(app), body: RULE }}>
    <p>A rule says what must not be so of devices. Where it is so, there is an alarm.</p><div><${CreateRule} app=${app} /></div></${Empty}>`;
  return html`<${Page} title="Alarm rules" lead="What must not be so of devices, and who is told." trail=${[["Alarms", home(app)]]} actions=${html`<${CreateRule} app=${app} />`}>
    <${Views} app=${app} current="rules" />
    <${RecordTable} noun="rule" source=${rules(app)} empty=${empty} href=${(row) => home(app, "rules", row.id)} columns=${[
      { label: "Name", sort: "name", render: (row) => row.name },
      { label: "Condition", render: conditionWords },
      { label: "Devices", render: devicesWords },
      { label: "Severity", render: (row) => html`<${LevelBadge} level=${row.severity} />` },
      { label: "Tells", render: (row) => noticeWords(row.notify, names) },
      { label: "State", render: (row) => html`<${Badge} tone=${row.enabled ? "good" : ""}>${row.enabled ? "enabled" : "disabled"}</${Badge}>` },
    ]} />
  </${Page}>`;
}

export function AlarmRule({ app, rule }) {
  const source = `${rules(app)}/${rule}`;
  const names = useGroupNames(app);
  const change = async (record, reload) => {
    const fields = ruleFields(app, await attributesOf(app), await groupOptions(app), record);
    const initial = formValues(record), unchanged = bodyOf(valuesOf(fields, textsOf(fields, initial)), record);
    const done = await openForm("Change this alarm rule", {
      fields, initial, extra: trial(app, record), submit: (values) => patch(source, changesOf(bodyOf(values, record), unchanged)),
    });
    if (done) reload();
  };
  return html`<${RecordPage} noun="alarm rule" source=${source} trail=${[["Alarms", home(app)], ["Rules", home(app, "rules")]]} home=${home(app, "rules")}
    actions=${(record, reload) => html`<button data-write onClick=${() => change(record, reload)}>Change</button>`}
    facts=${(record) => [
      ["Condition", conditionWords(record)],
      ["Devices", record.deviceIds?.length ? html`<${RecordLinks} source=${path("applications", app, "devices")} ids=${record.deviceIds} href=${(id) => link("/applications", app, "devices", id)} />` : devicesWords(record)],
      ["Severity", html`<${LevelBadge} level=${record.severity} />`],
      ["Tells", noticeWords(record.notify, names)],
      record.notify?.repeatSeconds && ["Tells again", `every ${time(record.notify.repeatSeconds)}`],
      record.notify?.quietHours && ["Quiet hours", `${record.notify.quietHours.start} to ${record.notify.quietHours.end}, ${record.notify.quietHours.timeZone || "UTC"}`],
      ["State", record.enabled ? "enabled" : "disabled"],
    ].filter(Boolean)}
  />`;
}
