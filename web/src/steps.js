/** Steps in order: finding one, and where it stands on a track. */

/** The first index whose step is not below x. @param {number[]} steps @param {number} x */
export function lowerBound(steps, x) {
  let low = 0, high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The last step not above x, or the first of all. @param {number[]} steps @param {number} x */
export function atOrBefore(steps, x) {
  return steps[Math.max(0, lowerBound(steps, x + 1) - 1)];
}

/** @param {number[]} steps @param {number} x */
export function nearest(steps, x) {
  const right = lowerBound(steps, x);
  if (right === 0) return steps[0];
  if (right === steps.length) return steps[right - 1];
  return x - steps[right - 1] <= steps[right] - x ? steps[right - 1] : steps[right];
}

/** @param {readonly unknown[] | null | undefined} a @param {readonly unknown[] | null | undefined} b */
export function same(a, b) {
  return a === b || (!!a && !!b && a.length === b.length && a.every((x, i) => x === b[i]));
}

/** @param {number[]} a @param {number[]} b */
export function union(a, b) {
  return [...new Set([...a, ...b])].sort((x, y) => x - y);
}

/** Where a step stands between 0 and 1; beyond the end, at the end. asinh is a logarithm that knows 0. @param {number} step @param {number} last @param {boolean} log */
export function toTrack(step, last, log) {
  if (last <= 0) return 0;
  return Math.min(1, log ? Math.asinh(step) / Math.asinh(last) : step / last);
}

/** @param {number} place @param {number} last @param {boolean} log */
export function fromTrack(place, last, log) {
  const inside = Math.min(1, Math.max(0, place));
  return log ? Math.sinh(inside * Math.asinh(last)) : inside * last;
}

/** Round numbers for the ticks of a track. @param {number} last @param {boolean} log */
export function ticks(last, log) {
  if (last <= 0) return [0];
  if (log) return [0, ...[1, 10, 100, 1000, 1e4, 1e5, 1e6].filter((step) => step <= last)];
  const rough = last / 8, power = 10 ** Math.floor(Math.log10(rough));
  const every = Math.max(1, (([1, 2, 5, 10].find((m) => m * power >= rough)) ?? 10) * power);
  return Array.from({ length: Math.floor(last / every) + 1 }, (_, i) => i * every);
}

/** Where a track ends: a round number, so that a growing run moves what is on it only now and then. @param {number} last @param {number} planned */
export function reach(last, planned) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, last)));
  const round = ([1, 2, 5, 10].find((m) => m * power >= last) ?? 10) * power;
  return last >= planned ? last : Math.min(planned, Math.max(10, round));
}
