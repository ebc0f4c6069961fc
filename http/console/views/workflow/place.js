// Where a part of a JSON text stands, so that an editor can show it.

// The range [start, end] of the value at a path such as ["nodes", 2, "outputIds"], or of the nearest one around it.
// The text must be JSON.
export function rangeOf(text, path) {
  let at = 0;
  const blank = () => { while (/\s/.test(text[at])) at += 1; };
  const string = () => {
    const start = at++;
    while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
    at += 1;
    return JSON.parse(text.slice(start, at));
  };
  // Passes a value; `wanted` is the rest of the path if the value is on it, else null.
  const value = (wanted) => {
    blank();
    const start = at;
    let inner = null;
    const item = (key) => {
      const found = value(wanted?.length && wanted[0] === key ? wanted.slice(1) : null);
      if (found) inner = found;
    };
    if (text[at] === "{" || text[at] === "[") {
      const close = text[at] === "{" ? "}" : "]";
      at += 1;
      blank();
      for (let index = 0; text[at] !== close; index++) {
        let key = index;
        if (close === "}") {
          blank();
          key = string();
          blank();
          at += 1; // the colon
        }
        item(key);
        blank();
        if (text[at] === ",") at += 1;
        blank();
      }
      at += 1;
    } else if (text[at] === '"') {
      string();
    } else {
      while (at < text.length && !/[\s,\]}]/.test(text[at])) at += 1;
    }
    return wanted ? inner || [start, at] : null;
  };
  return value(path);
}

// The path that a sentence of the server begins with: "nodes[2].outputIds[0]: ..." as ["nodes", 2, "outputIds", 0].
export function pathOf(sentence) {
  const found = /^(triggers|nodes|globals)((?:\[\d+\]|\.[\w-]+)*)/.exec(sentence);
  if (!found) return null;
  const rest = [...found[2].matchAll(/\[(\d+)\]|\.([\w-]+)/g)].map(([, index, name]) => (index === undefined ? name : Number(index)));
  return [found[1], ...rest];
}

// The path of a part by its key in the picture; see partsOf.
export function pathOfPart(definition, key) {
  if (key.startsWith("@")) return ["triggers", Number(key.slice(1))];
  const at = (definition.nodes || []).findIndex((node, index) => (node.id || `#${index}`) === key);
  return at < 0 ? null : ["nodes", at];
}
