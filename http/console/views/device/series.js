// The points of one attribute that a chart shows, in the order of their times, and never more than it can show.
//
// The time of the chart is cut into buckets; when there are too many points, each bucket keeps its first, its last, its
// smallest and its largest (M4, as the server's downsampling does), so that the line looks as with all points.

const BUCKETS = 500;
const POINTS_MAX = 4000;
const TRIM_MIN = 256;

export class Series {
  // `spanS`: the width of the chart in seconds.
  constructor(spanS) {
    this.times = [];
    this.values = [];
    this.bucketS = spanS / BUCKETS;
  }

  // Add a point. One with the same time takes the place of the one that is there.
  add(time, value) {
    const { times, values } = this;
    if (!times.length || time > times.at(-1)) {
      times.push(time);
      values.push(value);
    } else {
      const at = this.place(time);
      if (times[at] === time) {
        values[at] = value;
      } else {
        times.splice(at, 0, time);
        values.splice(at, 0, value);
      }
    }
    if (times.length > POINTS_MAX) this.compact();
  }

  // Join the points of the history with those that the stream has brought meanwhile. Where both have a time, the stream
  // is right, since it is newer.
  join(times, values) {
    const own = { times: this.times, values: this.values };
    this.times = times;
    this.values = values;
    own.times.forEach((time, at) => this.add(time, own.values[at]));
  }

  // Forget what is before the left edge, but for one point, so that the line begins there.
  trim(from) {
    const before = this.place(from) - 1;
    if (before < TRIM_MIN) return;
    this.times.splice(0, before);
    this.values.splice(0, before);
  }

  // The index of the first point that is not before this time.
  place(time) {
    let low = 0, high = this.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  compact() {
    const { times, values, bucketS } = this;
    const kept = { times: [], values: [] };
    for (let start = 0; start < times.length;) {
      const bucket = Math.floor(times[start] / bucketS);
      let end = start, least = start, most = start;
      for (; end < times.length && Math.floor(times[end] / bucketS) === bucket; end++) {
        if (values[end] < values[least]) least = end;
        if (values[end] > values[most]) most = end;
      }
      for (const at of [...new Set([start, least, most, end - 1])].sort((a, b) => a - b)) {
        kept.times.push(times[at]);
        kept.values.push(values[at]);
      }
      start = end;
    }
    // Times outside of the range, as of a wrong clock, could fill any number of buckets.
    const excess = Math.max(0, kept.times.length - POINTS_MAX / 2 - BUCKETS);
    this.times = kept.times.slice(excess);
    this.values = kept.values.slice(excess);
  }
}
