// The fields of the forms that create and change a device.

import { CLASSES } from "../devices/choice.js";

export const DATA_TYPES = ["number", "string", "boolean", "gps", "blob"];

// `created`: with the attributes, which are declared one by one on a device that is there.
export function deviceFields({ created = true } = {}) {
  return [
    { name: "name", label: "Name", required: true },
    { name: "deviceClass", label: "Class", type: "select", options: CLASSES },
    { name: "gatewayId", label: "Id of its gateway", blank: created ? undefined : "", show: (values) => values.deviceClass === "peripheral" },
    { name: "parentId", label: "Id of the system above it", blank: created ? undefined : null },
    { name: "description", label: "Description", type: "longtext", rows: 2, blank: created ? undefined : "" },
    { name: "expectedIntervalSeconds", label: "Reports every so many seconds", type: "number", hint: "Without it this is learned from what the device reports. After three intervals without a sign of life it is silent.", blank: created ? undefined : null },
    { name: "tags", label: "Tags", type: "tags", rows: 3, hint: "One key=value a line. command=setTarget value:number makes a form for this command.", blank: created ? undefined : [] },
    created && {
      name: "attributes", label: "Attributes", type: "tags", rows: 4, placeholder: "temperature=number \u00b0C",
      hint: `One name=type a line, with its unit behind a blank. Types: ${DATA_TYPES.join(", ")}. Only declared attributes are accepted in states.`,
    },
  ].filter(Boolean);
}

// The body of the call from the values of the form.
export function toDevice({ attributes, ...values }) {
  return { ...values, ...(attributes ? { attributes: attributes.map(toAttribute) } : {}) };
}

function toAttribute({ key, value }) {
  const [, dataType, unit] = /^(\S*)\s*(.*)$/.exec(value);
  return { name: key, dataType, ...(unit && { attributeTags: { unit } }) };
}
