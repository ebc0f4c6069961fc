// The application of the current view: its id is in the address, its name is loaded once for each.

import { get, path } from "./api.js";
import { useData } from "./hooks.js";
import { route } from "./router.js";
import { signal, useEffect } from "./ui.js";

// The id; undefined outside of an application.
export const currentApplication = () => /^\/applications\/([0-9a-f]{24})/.exec(route.value.path)?.[1];

const known = signal({}); // {id, name}

// The name: undefined until it is there, "" outside of an application and if it cannot be read.
export const applicationName = () => (known.value.id === currentApplication() ? known.value.name || "" : undefined);

// Load the name of the application. For the frame of the console.
export function useApplication(app) {
  const data = useData((signal) => (app ? get(path("applications", app), {}, { signal }) : Promise.resolve(null)), [app]);
  useEffect(() => { if (data.value || data.error) known.value = data.value || { id: app }; }, [data.value, data.error]);
}

// The application with which the console starts on this machine: the one whose overview was open last.
const LAST = "trunkline.application";
export const rememberApplication = (id) => localStorage.setItem(LAST, id);
export const rememberedApplication = () => localStorage.getItem(LAST);
