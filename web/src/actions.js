/**
 * What a person can do, by mouse or by key.
 * @import { Answer, Control } from "./protocol.js"
 */
import { batch } from "@preact/signals";
import { ask, send } from "./source.js";
import { atOrBefore, lowerBound, nearest } from "./steps.js";
import { forkedFrom } from "./forks.js";
import { ablate, about, also, alsoOf, events, fact, info, last, matrix, now, other, part, picked, pointed, promised, run, runs, say, shows, stages, state, step, stops, tokens, trainer, training } from "./store.js";

/** Look at the stored step nearest to x; from now on new data do not move it. @param {number} x */
export function scrubTo(x) {
  pointed.value = null;
  step.value = nearest(stops.value, x);
}

/** Over so many stored steps. @param {number} by */
export function move(by) {
  const at = lowerBound(stops.value, atOrBefore(stops.value, now.value));
  pointed.value = null;
  step.value = stops.value[Math.min(stops.value.length - 1, Math.max(0, at + by))];
}

/** To the next of these steps in a direction. @param {number[]} places @param {number} direction */
function moveAmong(places, direction) {
  const inOrder = [...places].sort((a, b) => direction * (a - b));
  const next = inOrder.find((place) => direction * (place - now.value) > 0);
  if (next !== undefined) scrubTo(next);
}

/** @param {number} direction */
export const moveToMark = (direction) =>
  moveAmong([...(state.value?.births ?? []), ...events.value, ...stages.value].map((mark) => mark.step), direction);

/** @param {number} direction */
export const moveToWeights = (direction) => moveAmong(state.value?.snapshots ?? [], direction);

export function toggleLive() {
  pointed.value = null;
  step.value = step.value === null ? last.value : null;
}

/** What a branch was forked from: its curves are drawn, too. @param {string} id */
export function parentOf(id) {
  const all = runs.value ?? [], own = all.find((r) => r.id === id);
  const parent = own && forkedFrom(own, all.filter((r) => r.family === own.family));
  return parent ? [parent.id] : [];
}

const MOST = 48; // curves of other runs

/** Draws the curves of runs beside those of the run that is looked at, or draws them no longer. @param {string[]} ids @param {boolean} on */
export function drawBeside(ids, on) {
  const rest = also.value.filter((id) => !ids.includes(id));
  alsoOf.value = run.value;
  also.value = on ? [...rest, ...ids.filter((id) => id !== run.value)].slice(-MOST) : rest;
}

/** Branches of one training are compared at one step; another training is followed live. @param {string} id @param {string[]} [beside] */
export function choose(id, beside) {
  if (id === run.value) return;
  const family = runs.value?.find((r) => r.id === id)?.family;
  batch(() => {
    const related = family !== undefined && family === info.value?.family, drawn = also.value.includes(id);
    if (!related) step.value = null;
    if (!related) tokens.value = null; // another training may have other letters,
    if (!related) ablate.value = []; // and other heads
    if (!related) picked.value = [];
    [part.value, fact.value, matrix.value] = ["", null, ""]; // they were chosen in another run
    if (other.value === id) other.value = run.value; // A and B change places
    else if (!related) [shows.value, other.value] = ["a", null];
    const swapped = also.value.map((other) => (other === id ? /** @type {string} */ (run.value) : other)); // both stay in sight
    also.value = beside ?? (related || drawn ? swapped : parentOf(id));
    alsoOf.value = id;
    run.value = id;
  });
}

/** @param {Control["op"]} op @param {number} [value] */
export async function control(op, value = 0) {
  const reply = await ask({ t: "control", op, value });
  const done = { pause: "Paused", resume: "Training goes on", step: "Taking a step", limit: "Speed limit set" };
  report(reply, `${done[op]}.`);
}

/**
 * Says how it went. A form shows its own errors, so for one they are only read aloud.
 * @param {import("./source.js").Reply} reply @param {string} good @param {boolean} [ofForm]
 * @returns {reply is Answer} whether it went well
 */
export function report(reply, good, ofForm = false) {
  const answer = /** @type {Answer} */ (reply);
  say(answer.ok ? good : `Refused: ${answer.error ?? "no reason was given"}`, !answer.ok && !ofForm);
  if (answer.ok && answer.run) promised.add(answer.run);
  if (answer.ok) send({ t: "runs" });
  return answer.ok;
}

export function pauseOrResume() {
  if (!training.value) return;
  void control(trainer.value.state === "running" ? "pause" : "resume");
}

/** Go on with a run that was interrupted. */
export async function goOn() {
  if (!run.value) return;
  const reply = await ask({ t: "start", run: run.value });
  if (report(reply, "The run goes on.")) step.value = null;
}

/** @param {number} layer @param {number} head */
export function toggleHead(layer, head) {
  const rest = ablate.value.filter(([l, h]) => l !== layer || h !== head);
  const heads = about.value?.heads ?? [];
  if (rest.length < ablate.value.length) ablate.value = rest;
  else ablate.value = heads.filter(([l, h]) => (l === layer && h === head) || rest.some((r) => r[0] === l && r[1] === h));
}
