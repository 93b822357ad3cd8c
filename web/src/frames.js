/**
 * Pictures that came, kept so that scrubbing back is instant.
 * @import { Frame } from "./protocol.js"
 */
import { signal } from "@preact/signals";
import { ablate, now, run, seen, shows, step, stored, subtracted, tokens } from "./store.js";

const MOST = 400;

/** @type {Map<string, Frame>} in order of use */
const held = new Map();
/** @type {Map<string, Frame>} the newest of each picture */
const newest = new Map();
/** How many came; reading it makes a drawing wait for the next. */
export const arrived = signal(0);

/** What is subtracted, of which run. @param {{run: string, step: number} | null} [from] */
const less = (from = subtracted.value) => (from ? `${from.step} ${from.run}` : "");

/** @param {Frame} frame */
const isWanted = (frame) => less() === less(frame.minus === null ? null : { run: frame.minus_run ?? frame.run, step: frame.minus });

/** What besides the step decides how a picture looks. @param {string} picture @param {string} ofRun */
function setting(picture, ofRun) {
  const sequence = picture.startsWith("attention:") ? `${tokens.value ?? run.value}|${ablate.value}` : "";
  return `${ofRun}|${picture}|${less()}|${sequence}`;
}

/** @param {Frame} frame */
export function keep(frame) {
  if (isWanted(frame)) {
    const place = setting(frame.picture, frame.run), key = `${frame.step}|${place}`;
    held.delete(key);
    held.set(key, frame);
    newest.delete(place);
    newest.set(place, frame);
    for (const map of [held, newest]) if (map.size > MOST) map.delete(/** @type {string} */ (map.keys().next().value));
  }
  arrived.value++;
}

/** What a picture may be shown under: attention belongs to one sequence. @param {string} picture */
export const sequenceOf = (picture) => (picture.startsWith("attention:") ? `${run.value}|${tokens.value ?? ""}` : "");

/** The picture as it is wanted now, if it came. @param {string} picture @returns {Frame | undefined} */
export function find(picture) {
  const place = setting(picture, seen.value.run ?? "");
  if (shows.value === "b") return used(`${seen.value.step}|${place}`);
  if (step.value === null) return newest.get(place);
  return used(`${now.value}|${place}`) ?? used(`${stored.value}|${place}`); // live weights are not stored, but may be held
}

/** @param {string} key */
function used(key) {
  const frame = held.get(key);
  if (!frame) return undefined;
  held.delete(key);
  held.set(key, frame);
  return frame;
}
