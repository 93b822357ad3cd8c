/**
 * How large a score must be for full colour. A scale only grows, so that growth over the steps is seen; locked, it stays.
 * @import { Frame } from "./protocol.js"
 */
import { effect, signal } from "@preact/signals";
import { arrived, find } from "./frames.js";
import { locked, other, run, shared, shows } from "./store.js";
import { wall } from "./view.js";

export const LEAST = 1e-12; // the scale of what has not come yet
/** @type {import("@preact/signals").Signal<Record<string, number>>} */
const sizes = signal({});

/** Differences have a scale of their own; A and B share theirs, so that they can be compared. @param {string} picture */
const keyOf = (picture) => `${shows.value === "less" ? "-" : ""}${picture}`;

/** @param {Frame} frame */
const sizeOf = (frame) => Math.max(Math.abs(frame.lo), Math.abs(frame.hi));

/** @param {Frame} frame */
function grow(frame) {
  const key = keyOf(frame.picture), before = sizes.peek()[key], fixed = locked.value && before !== undefined;
  if (!fixed && !(before >= sizeOf(frame))) sizes.value = { ...sizes.peek(), [key]: sizeOf(frame) };
}

/** What is on the wall now. */
const shown = () => wall.value.map((p) => find(p.name)).filter((frame) => frame !== undefined);

/** The value that has full colour in a picture. @param {string} picture */
export function extent(picture) {
  const names = shared.value ? wall.value.map((p) => p.name) : [picture];
  return Math.max(LEAST, ...names.map((name) => sizes.value[keyOf(name)] ?? 0));
}

/** Measured anew from what is on the wall. */
export function fit() {
  sizes.value = Object.fromEntries(shown().map((frame) => [keyOf(frame.picture), sizeOf(frame)]));
}

const pair = () => `${run.value} ${other.value}`;
let before = pair();
effect(() => { // other runs begin with a scale of their own
  const changed = pair() !== before;
  before = pair();
  if (changed && !locked.peek()) sizes.value = {};
});
effect(() => {
  void arrived.value;
  shown().forEach(grow);
});
