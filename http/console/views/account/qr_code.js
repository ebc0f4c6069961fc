// A QR code (ISO/IEC 18004) of a text, drawn as SVG: bytes, error correction level L, versions 1 to 10 (271 bytes).

import { html, useMemo } from "../../lib/ui.js";

// For each version: all codewords, codewords of error correction in a block, blocks, centres of the alignment patterns.
const VERSIONS = [
  [26, 7, 1, []], [44, 10, 1, [6, 18]], [70, 15, 1, [6, 22]], [100, 20, 1, [6, 26]], [134, 26, 1, [6, 30]],
  [172, 18, 2, [6, 34]], [196, 20, 2, [6, 22, 38]], [242, 24, 2, [6, 24, 42]], [292, 30, 2, [6, 26, 46]], [346, 18, 4, [6, 28, 50]],
];
// Readers accept each of the eight masks; always the first one, so its format bits with level L are a constant.
const FORMAT = 0x77c4;
const VERSION_BITS = { 7: 0x07c94, 8: 0x085bc, 9: 0x09a99, 10: 0x0a4d3 };
const masked = (row, column) => (row + column) % 2 === 0;
const QUIET_ZONE = 4;

// The text as a picture; nothing if it is too long.
export function QrCode({ text, label }) {
  const modules = useMemo(() => qrModules(text), [text]);
  if (!modules) return null;
  const size = modules.length + 2 * QUIET_ZONE;
  const dark = modules.flatMap((row, y) => row.map((on, x) => (on ? `M${x + QUIET_ZONE} ${y + QUIET_ZONE}h1v1h-1z` : ""))).join("");
  return html`<svg class="qr-code" role="img" aria-label=${label} viewBox=${`0 0 ${size} ${size}`} shape-rendering="crispEdges">
    <rect width=${size} height=${size} fill="white" /><path d=${dark} fill="black" /></svg>`;
}

// Rows of modules, true where they are dark; null if the text is too long.
export function qrModules(text) {
  const bytes = [...new TextEncoder().encode(text)];
  const version = 1 + VERSIONS.findIndex(([total, correction, blocks], at) => bytes.length + (at < 9 ? 2 : 3) <= total - correction * blocks);
  if (!version) return null;
  return place(version, codewords(version, bytes));
}

// The data in blocks with their error correction, in the order in which they are drawn.
function codewords(version, bytes) {
  const [total, correction, blocks] = VERSIONS[version - 1];
  const room = total - correction * blocks;
  let bits = "0100" + bytes.length.toString(2).padStart(version < 10 ? 8 : 16, "0") + bytes.map((each) => each.toString(2).padStart(8, "0")).join("");
  bits += "0".repeat(Math.min(4, room * 8 - bits.length));
  bits += "0".repeat((8 - (bits.length % 8)) % 8);
  const data = bits.match(/.{8}/g).map((each) => parseInt(each, 2));
  for (let at = 0; data.length < room; at++) data.push(at % 2 ? 0x11 : 0xec);
  const short = Math.floor(room / blocks), longer = room % blocks;
  const parts = [];
  for (let at = 0, start = 0; at < blocks; at++) {
    const length = short + (at < blocks - longer ? 0 : 1);
    parts.push(data.slice(start, start + length));
    start += length;
  }
  const generator = generatorOf(correction);
  return [...interleaved(parts), ...interleaved(parts.map((part) => remainder(part, generator)))];
}

function interleaved(parts) {
  const longest = Math.max(...parts.map((each) => each.length));
  return Array.from({ length: longest }, (_, at) => parts.filter((each) => at < each.length).map((each) => each[at])).flat();
}

// Reed-Solomon over the field of 256 elements with the polynomial 0x11d.
const EXPONENTS = [], LOGARITHMS = [];
for (let at = 0, value = 1; at < 255; at++) {
  EXPONENTS[at] = value;
  LOGARITHMS[value] = at;
  value = (value << 1) ^ (value > 127 ? 0x11d : 0);
}
const product = (one, other) => (one && other ? EXPONENTS[(LOGARITHMS[one] + LOGARITHMS[other]) % 255] : 0);

// The coefficients of the generator polynomial after the leading 1.
function generatorOf(degree) {
  let found = [1];
  for (let at = 0; at < degree; at++) {
    found = [...found, 0].map((each, index) => each ^ product(found[index - 1] ?? 0, EXPONENTS[at]));
  }
  return found.slice(1);
}

function remainder(data, generator) {
  const rest = [...data, ...generator.map(() => 0)];
  for (let at = 0; at < data.length; at++) {
    const factor = rest[at];
    generator.forEach((each, index) => (rest[at + 1 + index] ^= product(each, factor)));
  }
  return rest.slice(data.length);
}

function place(version, words) {
  const size = 17 + 4 * version;
  const modules = Array.from({ length: size }, () => Array(size));  // undefined: free for data
  const set = (row, column, on) => { if (modules[row]?.length > column && column >= 0) modules[row][column] = Boolean(on); };
  for (const [top, left] of [[0, 0], [0, size - 7], [size - 7, 0]]) {
    for (let row = -1; row < 8; row++) {
      for (let column = -1; column < 8; column++) {
        const ring = Math.max(Math.abs(row - 3), Math.abs(column - 3));
        set(top + row, left + column, ring !== 2 && ring < 4);
      }
    }
  }
  const centres = VERSIONS[version - 1][3];
  for (const row of centres) {
    for (const column of centres) {
      if (modules[row][column] !== undefined) continue;  // beside a finder pattern
      for (let y = -2; y < 3; y++) for (let x = -2; x < 3; x++) set(row + y, column + x, Math.max(Math.abs(y), Math.abs(x)) !== 1);
    }
  }
  for (let at = 8; at < size - 8; at++) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  const bit = (value, at) => (value >> at) & 1;
  for (let at = 0; at < 15; at++) {
    const on = bit(FORMAT, at);
    // Beside the upper left finder pattern, past the timing patterns; and again along the two others.
    if (at < 8) set(at < 6 ? at : at + 1, 8, on);
    else set(8, at === 8 ? 7 : 14 - at, on);
    if (at < 8) set(8, size - 1 - at, on);
    else set(size - 15 + at, 8, on);
  }
  set(size - 8, 8, true);
  if (version >= 7) {
    for (let at = 0; at < 18; at++) {
      const on = bit(VERSION_BITS[version], at), near = Math.floor(at / 3), far = size - 11 + (at % 3);
      set(near, far, on);
      set(far, near, on);
    }
  }
  const bits = words.flatMap((word) => Array.from({ length: 8 }, (_, at) => bit(word, 7 - at)));
  let next = 0;
  for (let right = size - 1, up = true; right > 0; right -= 2, up = !up) {
    if (right === 6) right = 5;  // the timing pattern
    for (let step = 0; step < size; step++) {
      const row = up ? size - 1 - step : step;
      for (const column of [right, right - 1]) {
        if (modules[row][column] === undefined) modules[row][column] = Boolean(bits[next++] ?? 0) !== masked(row, column);
      }
    }
  }
  return modules;
}
