// Where the line of a chart is broken: between two values that are much farther apart than is usual for them, such as
// those before and after an outage. A straight line there would show values that nobody reported.

const TIMES_USUAL = 4;
const USUAL_SHARE = 0.9; // what is usual: nine of ten distances are not longer
const DISTANCES_MIN = 3;
const SAMPLES = 200; // a chart that is drawn in each frame has no time to sort thousands

// The breaks as [[time before, time after], ...]. values: of these times, null or undefined where there is none.
export function gapsOf(times, values) {
  const known = new Float64Array(times.length);
  let count = 0;
  for (let at = 0; at < times.length; at++) if (values[at] !== null && values[at] !== undefined) known[count++] = times[at];
  if (count <= DISTANCES_MIN) return [];
  const longest = TIMES_USUAL * usualDistance(known, count);
  const found = [];
  for (let at = 1; at < count; at++) if (known[at] - known[at - 1] > longest) found.push([known[at - 1], known[at]]);
  return found;
}

// Of many distances, some are looked at. The step is odd, since points that were reduced come in groups of four.
function usualDistance(known, count) {
  const step = 2 * Math.floor((count - 1) / SAMPLES / 2) + 1;
  const some = new Float64Array(Math.ceil((count - 1) / step));
  for (let at = 0; at < some.length; at++) some[at] = known[at * step + 1] - known[at * step];
  return some.sort()[Math.floor((some.length - 1) * USUAL_SHARE)];
}
