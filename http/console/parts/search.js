// The search of a list as an advanced query, for what is done with all that the list shows.

// The parts of a search between its `*`, which stand for any characters.
const partsOf = (text) => text.split("*").filter(Boolean);

// Queries have no `*`: each part of the text is looked for, wherever it is in the field. So the filter of a list does not
// choose the same as this; a list whose search has a `*` is asked for with these conditions instead.
export const searchConditions = (field, text) => partsOf(text).map((part) => ({ [field]: { $contains: part, $ci: true } }));
export const hasWildcard = (text = "") => text.includes("*");

// Whether a text has what is searched for.
export const isFound = (search, text) => partsOf(search.toLowerCase()).every((part) => text.toLowerCase().includes(part));
