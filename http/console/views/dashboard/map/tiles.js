// Tiles of a map from the server that the operator names; nothing else may be loaded by the policy of the console. Without one
// there are none.

const KEPT = 400;

let settings = null;

// A promise of {url: a template with {z}, {x} and {y}, or null; attribution}.
export function tileSettings() {
  settings ||= fetch("/console/map/tiles.json").then((answer) => answer.json());
  settings.catch(() => (settings = null));
  return settings;
}

// A function that gives the picture of a tile once it is there, else null; `arrived()` is called when one came.
export function tileSource(url, arrived) {
  const kept = new Map();
  return ({ column, row, zoom }) => {
    const key = `${zoom}/${column}/${row}`;
    let image = kept.get(key);
    if (!image) {
      image = new Image();
      image.onload = arrived;
      image.src = url.replace("{z}", zoom).replace("{x}", column).replace("{y}", row);
    }
    kept.delete(key);
    kept.set(key, image); // the newest last
    if (kept.size > KEPT) kept.delete(kept.keys().next().value);
    return image.complete && image.naturalWidth ? image : null;
  };
}
