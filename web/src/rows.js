/** Measured rows, held as columns. @import { Columns } from "./protocol.js" */
import { lowerBound } from "./steps.js";

/** News replace what is held from their first step on. @param {Columns | undefined} held @param {number} from @param {Columns} news @returns {Columns} */
export function merge(held, from, news) {
  const first = Math.min(from, news.step[0] ?? from);
  const keep = held ? lowerBound(held.step, first) : 0;
  const names = new Set([...Object.keys(held ?? {}), ...Object.keys(news)]);
  /** @type {Columns} */
  const merged = { step: [] };
  for (const name of names) {
    const before = held?.[name]?.slice(0, keep) ?? Array(keep).fill(null);
    merged[name] = before.concat(news[name] ?? Array(news.step.length).fill(null));
  }
  return merged;
}

/** The first step that is not held. @param {Columns | undefined} held */
export function missingFrom(held) {
  return held && held.step.length ? held.step[held.step.length - 1] + 1 : 0;
}

/** The value last measured at a step or before it. @param {Columns | undefined} held @param {string} name @param {number} step @returns {number | null} */
export function measured(held, name, step) {
  const values = held?.[name];
  if (!held || !values) return null;
  for (let i = lowerBound(held.step, step + 1) - 1; i >= 0; i--) {
    if (values[i] !== null) return values[i];
  }
  return null;
}
