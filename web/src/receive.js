/**
 * What the server says goes into the store.
 * @import { Frame, Heard, ReadingSaid, RunsSaid, State } from "./protocol.js"
 */
import { batch, effect } from "@preact/signals";
import { choose, parentOf } from "./actions.js";
import { arrived, keep } from "./frames.js";
import { VERSION } from "./protocol.js";
import { merge } from "./rows.js";
import { read } from "./sequence.js";
import { send } from "./source.js";
import { same } from "./steps.js";
import { abouts, also, alsoOf, curvesOf, info, link, missing, other, presets, promised, rows, run, runs, say, shows, states, trainer } from "./store.js";
import { stillWanted } from "./view.js";

const PATIENCE = 4;
/** How often the list is asked for again before a run that is not in it is given up. */
let patience = PATIENCE;
/** The run for which it was asked. @type {string | null} */
let wanted = null;

/** What belongs together waits for its tick: the page is drawn once for all of it. */
const waiting = { news: /** @type {Heard[]} */ ([]), readings: /** @type {ReadingSaid[]} */ ([]), frames: /** @type {Frame[]} */ ([]) };

/** @param {Frame} frame */
export const seen = (frame) => void waiting.frames.push(frame);

/** @param {Heard} message */
export function heard(message) {
  if (["about", "columns", "rows", "state"].includes(message.t)) waiting.news.push(message);
  else if (message.t === "reading") waiting.readings.push(message);
  else if (message.t === "tick") batch(() => drawAll(message.serial));
  else take(message);
}

/** Pictures made for another view than that of now are dropped: the server makes them again. @param {number} serial */
function drawAll(serial) {
  const { news, readings, frames } = { ...waiting };
  forget();
  news.forEach(take);
  if (!stillWanted(serial)) return;
  readings.forEach(read);
  frames.forEach(keep);
}

/** What the last connection did not end will come again. */
export function forget() {
  Object.assign(waiting, { news: [], readings: [], frames: [] });
}

/** @param {Heard} message */
function take(message) {
  switch (message.t) {
    case "hello":
      if (message.v !== VERSION) link.value = "other";
      return undefined;
    case "runs": return list(message);
    case "about":
      abouts.value = { ...abouts.value, [message.run]: message };
      return undefined;
    case "columns":
      curvesOf.value = { ...curvesOf.value, [message.run]: message.columns };
      return undefined;
    case "rows":
      rows.value = { ...rows.value, [message.run]: merge(rows.value[message.run], message.from, message.columns) };
      return undefined;
    case "state": return progress(message);
    case "error": return say(message.message, true);
    default: return undefined; // a newer server may say more
  }
}

/** @param {RunsSaid} message */
function list(message) {
  const known = (/** @type {string} */ id) => promised.has(id) || message.runs.some((r) => r.id === id);
  const lost = run.value !== null && !known(run.value);
  if (run.value !== wanted) patience = PATIENCE;
  wanted = run.value;
  if (lost && patience-- > 0) setTimeout(send, 500, { t: "runs" }); // a run that was ordered with the page may not have begun yet
  batch(() => {
    runs.value = message.runs;
    presets.value = message.presets;
    const newest = trainer.value.run ?? message.runs[message.runs.length - 1]?.id;
    missing.value = lost && patience < 0 ? run.value : null;
    if (!run.value && newest) choose(newest);
    also.value = also.value.filter(known);
    if (other.value && !known(other.value)) [shows.value, other.value] = ["a", null];
    if (run.value && info.value && alsoOf.value !== run.value) also.value = parentOf(alsoOf.value = run.value);
  });
}

effect(() => { // an address may be changed by hand
  if (run.value && runs.peek() && !promised.has(run.value) && !runs.peek()?.some((r) => r.id === run.value)) send({ t: "runs" });
});

/** @param {State} message */
function progress(message) {
  const was = trainer.value, listed = runs.value?.find((r) => r.id === message.run);
  const before = states.value[message.run]?.snapshots;
  if (before && same(before, message.snapshots)) message.snapshots = before; // what is drawn from them stays
  states.value = { ...states.value, [message.run]: message };
  trainer.value = message.trainer;
  const changed = was.run !== message.trainer.run || was.state !== message.trainer.state;
  if (changed && message.trainer.error) say(message.trainer.error, true);
  if (changed || (listed && listed.state !== message.state)) send({ t: "runs" });
}

/** How many frames came, for the tests. */
export const frames = () => arrived.peek();
