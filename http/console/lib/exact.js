// JSON in which whole numbers keep all their digits: those that a double cannot hold are BigInt. A double beyond them is
// written with an exponent, since without one it would be read as a whole number with these digits.

const WHOLE = /^-?\d+$/;

export const parseExact = (text) => JSON.parse(text, (name, value, context) => {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  if (!Number.isFinite(value)) throw new SyntaxError(`${source ?? "a number"} is too large; a number must be below 1.8e308`);
  return source && WHOLE.test(source) ? BigInt(source) : value;
});

export function exactJson(value, indent) {
  return JSON.stringify(value, (name, each) => {
    if (isLargeDouble(each) && JSON.rawJSON) return JSON.rawJSON(each.toExponential());
    if (typeof each !== "bigint") return each;
    if (!JSON.rawJSON) throw new Error(`This browser cannot send ${each} exactly. Use a newer one.`);
    return JSON.rawJSON(String(each));
  }, indent);
}

export const isLargeDouble = (value) => Number.isInteger(value) && !Number.isSafeInteger(value);
