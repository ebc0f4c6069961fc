// What tells of new alarms while the console is open: a sound, and a notification of the browser.

import { signal } from "../../lib/ui.js";

const SOUND_KEY = "trunkline.alarmSound";
const TONES = [[660, 0], [880, 0.18]];
const TONE_S = 0.16;

export const sound = signal(localStorage.getItem(SOUND_KEY) !== "off");
export const permission = signal(window.Notification ? Notification.permission : "denied");

export function switchSound() {
  sound.value = !sound.value;
  localStorage.setItem(SOUND_KEY, sound.value ? "on" : "off");
  if (sound.value) play();
}

export const askPermission = async () => (permission.value = await Notification.requestPermission());

const known = new Map(); // by application, the events that were told

// Tell of the alarms of a list that are new since the last one. The first list tells of none.
export function tell(app, items) {
  const before = known.get(app);
  known.set(app, new Set(items.map((each) => each.eventId)));
  const fresh = before ? items.filter((each) => each.state === "new" && !before.has(each.eventId)) : [];
  if (!fresh.length) return;
  if (sound.value) play();
  if (permission.value !== "granted") return;
  for (const alarm of fresh.slice(0, 3)) {
    const shown = new Notification(alarm.subject, { body: alarm.message, tag: alarm.eventId });
    shown.onclick = () => { window.focus(); location.hash = `/applications/${app}/alarms`; };
  }
}

function play() {
  const context = new AudioContext();
  const start = context.currentTime;
  for (const [hertz, after] of TONES) {
    const tone = new OscillatorNode(context, { frequency: hertz });
    const loud = new GainNode(context, { gain: 0.15 });
    tone.connect(loud).connect(context.destination);
    tone.start(start + after);
    tone.stop(start + after + TONE_S);
  }
  setTimeout(() => context.close(), 1000);
}
