// Where the line of a chart is broken: between two values that are much farther apart than is usual for them, such as
// those before and after an outage. A straight line there would show values that nobody reported.

const TIMES_USUAL = 4;
const USUAL_SHARE = 0.9; // what is usual: nine of ten distances are not longer
const DISTANCES_MIN = 3;

// The breaks as [[time before, time after], ...]. values: of these times, null or undefined where there is none.
export function gapsOf(times, values) {
  const known = [];
  for (let at = 0; at < times.length; at++) if (values[at] !== null && values[at] !== undefined) known.push(times[at]);
  if (known.length <= DISTANCES_MIN) return [];
  const distances = new Float64Array(known.length - 1);
  for (let at = 1; at < known.length; at++) distances[at - 1] = known[at] - known[at - 1];
  const usual = distances.slice().sort()[Math.floor((distances.length - 1) * USUAL_SHARE)];
  const found = [];
  distances.forEach((distance, at) => { if (distance > TIMES_USUAL * usual) found.push([known[at], known[at + 1]]); });
  return found;
}
