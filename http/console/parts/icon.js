// The icons and marks of the console: own drawings on a grid of 16 by 16, in the colour of the text round them. Icons are
// lines of one width; each stands beside a word, or in a button that has a name. Marks are areas whose form says the tone.

import { html } from "../lib/ui.js";

const ICONS = {
  account: "M8 8.2a2.8 2.8 0 1 0 0-5.7 2.8 2.8 0 0 0 0 5.7ZM2.5 14c.5-3 2.5-4 5.5-4s5 1 5.5 4",
  actors: "M8 6a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM4 14a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM12 14a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM7 6l-2 4M9 6l2 4",
  alarms: "M4 11.5V7a4 4 0 0 1 8 0v4.5M2.5 11.5h11M6.5 14h3",
  applications: "M8 2l5.5 3v6L8 14l-5.5-3V5ZM2.5 5 8 8l5.5-3M8 8v6",
  boards: "M2.5 2.5h4.5v6H2.5ZM10 2.5h3.5V5H10ZM10 8h3.5v5.5H10ZM2.5 11.5h4.5v2H2.5Z",
  certificates: "M8 9.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM6 9l-1 5 3-1.5 3 1.5-1-5",
  credentials: "M3.5 7h9v6.5h-9ZM5.5 7V5a2.5 2.5 0 0 1 5 0v2",
  devices: "M4.5 4.5h7v7h-7ZM6.5 2v2.5M9.5 2v2.5M6.5 11.5V14M9.5 11.5V14M2 6.5h2.5M2 9.5h2.5M11.5 6.5H14M11.5 9.5H14",
  edit: "M3 13v-2.5L10.5 3 13 5.5 5.5 13ZM9 4.5 11.5 7",
  events: "M4 14V2.5h8.5l-2.5 3 2.5 3H4",
  experience: "M2 3h12v10H2ZM2 6.5h12M4.5 4.8h.01",
  files: "M2 13V3.5h4.5l1.5 2h6V13Z",
  integrations: "M6 2v3M10 2v3M4 5h8v2.5a4 4 0 0 1-8 0ZM8 11.5V14",
  jobs: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM8 5v3l2.2 1.4",
  keyboard: "M1.5 4h13v8h-13ZM4.5 6.5h.01M8 6.5h.01M11.5 6.5h.01M5 9.5h6",
  keys: "M5 13.5a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM7 8.7l6.5-6.2M10.5 5.4l2 2.1",
  leave: "M9.5 5V2.5h-7v11h7V11M6 8h8M11.5 5.5 14 8l-2.5 2.5",
  menu: "M2 4h12M2 8h12M2 12h12",
  moon: "M13.5 9.5A6 6 0 1 1 6.5 2.5a5 5 0 0 0 7 7Z",
  organizations: "M3 14V2.5h6V14M9 6h4v8M1.5 14h13M5.5 5.5h1M5.5 8.5h1M5.5 11.5h1",
  overview: "M2 11.5a6 6 0 1 1 12 0M8 11.5l2.5-4M5 13.5h6",
  recipes: "M8 2l6 3-6 3-6-3ZM2 8l6 3 6-3M2 11l6 3 6-3",
  remove: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.5 9h6l.5-9",
  server: "M2.5 3h11v4h-11ZM2.5 9h11v4h-11ZM5 5h.01M5 11h.01",
  settings: "M2 4.5h7M12 4.5h2M2 11.5h2M7 11.5h7M10.5 3v3M5.5 10v3",
  sun: "M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM8 1.5V3M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1",
  tables: "M2.5 3h11v10h-11ZM2.5 6.3h11M2.5 9.6h11M6.5 3v10",
  tokens: "M6.5 2.5c-2.5 0-2 1.5-2 3S4 8 2.5 8C4 8 4.5 9 4.5 10.5s-.5 3 2 3M9.5 2.5c2.5 0 2 1.5 2 3s.5 2.5 2 2.5c-1.5 0-2 1-2 2.5s.5 3-2 3",
  topics: "M6.5 2.5l-1.5 11M11 2.5l-1.5 11M3 6h10.5M2.5 10H13",
  webhooks: "M13.5 8H6M9 5 6 8l3 3M9.5 2.5h-7v11h7",
  workflows: "M2.5 2.5h4v4h-4ZM9.5 9.5h4v4h-4ZM4.5 6.5v5h5",
};
ICONS.dashboards = ICONS.boards;

const MARKS = {
  good: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm-1.2 10.2L3.7 8.1l1.2-1.2 1.9 1.9 4.3-4.3 1.2 1.2Z",
  warn: "M8 1.3 15.4 14.5H.6ZM7.1 6v4.4h1.8V6Zm0 5.4v1.7h1.8v-1.7Z",
  bad: "M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1Zm2 3v5h1.8V4Zm0 6.2V12h1.8v-1.8Z",
  accent: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm-.9 3v1.8h1.8V4Zm0 3.2V12h1.8V7.2Z",
  "": "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm0 1.7a5.3 5.3 0 1 1 0 10.6A5.3 5.3 0 0 1 8 2.7Z",
};

export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${ICONS[name]} /></svg>`;

// A small button with an icon alone, and its name for who hears or points at it.
export const IconButton = ({ icon, label, title = label, onClick }) =>
  html`<button class="small" aria-label=${label} title=${title} onClick=${onClick}><${Icon} name=${icon} /></button>`;

// The mark alone, for what has a word beside it.
export const Mark = ({ tone = "" }) => html`<svg class="mark ${tone}" viewBox="0 0 16 16" aria-hidden="true"><path d=${MARKS[tone]} fill-rule="evenodd" fill="currentColor" /></svg>`;
