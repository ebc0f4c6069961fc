// Light or dark: as the system says, or as the reader has chosen on this machine.

import { computed, effect, signal } from "./ui.js";

const KEY = "trunkline.theme";
const query = matchMedia("(prefers-color-scheme: dark)");
const system = signal(query.matches ? "dark" : "light");
query.addEventListener("change", () => (system.value = query.matches ? "dark" : "light"));

// "light", "dark", or null for that of the system.
export const chosenTheme = signal(localStorage.getItem(KEY));
// What the view suggests to readers who have chosen none: "light", "dark" or null.
export const suggestedTheme = signal(null);
export const theme = computed(() => chosenTheme.value || suggestedTheme.value || system.value);

effect(() => (document.documentElement.dataset.theme = theme.value));

export function chooseTheme(value) {
  chosenTheme.value = value;
  if (value) localStorage.setItem(KEY, value);
  else localStorage.removeItem(KEY);
}
