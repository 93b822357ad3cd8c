/**
 * What the model says about a sequence: the task's own, or one that was typed.
 * @import { ReadingSaid, SequenceAsked } from "./protocol.js"
 */
import { batch, computed, effect, signal } from "@preact/signals";
import { latest } from "./socket.js";
import { same } from "./steps.js";
import { ablate, about, link, run, text, tokens, visible } from "./store.js";

/** @typedef {Omit<ReadingSaid, "asked"> & {asked: number[]}} Reading asked: positions */

/** The answer that is shown. @type {import("@preact/signals").Signal<Reading | null>} */
export const reading = signal(null);
/** Why there is none. */
export const problem = signal("");
/** The position whose attention is drawn as arcs, if one was chosen. @type {import("@preact/signals").Signal<number | null>} */
export const chosen = signal(null);

/** Arrays that say the same stay the same, so that what is drawn from them stays too. @param {ReadingSaid} reply @returns {Reading} */
function told(reply) {
  const before = reading.peek();
  if (before && same(before.tokens, reply.tokens) && same(before.marks, reply.marks)) {
    return { ...reply, tokens: before.tokens, marks: before.marks, asked: before.asked };
  }
  return { ...reply, asked: reply.asked?.flatMap((yes, t) => (yes ? [t] : [])) ?? [] };
}

/** Whether this is what the page shows now: the person may have gone on meanwhile. @param {ReadingSaid} said */
function wanted(said) {
  const mine = said.own ? tokens.value === null : same(said.tokens, tokens.value);
  return mine && said.run === run.value && String(said.ablate) === String(ablate.value);
}

/** What the model predicts, whenever it changes. @param {ReadingSaid} said */
export function read(said) {
  if (wanted(said)) reading.value = told(said);
}

/** Only the server knows the letters of a run: it says which tokens a text is. @type {(question: SequenceAsked) => void} */
const askTokens = latest((reply, question) => batch(() => {
  const asked = /** @type {SequenceAsked} */ (question);
  if (asked.run !== run.value || asked.text !== text.value) return;
  problem.value = reply.t === "answer" ? reply.error ?? "" : "";
  if (reply.t === "sequence" && !same(reply.tokens, tokens.value)) tokens.value = reply.tokens;
}));

effect(() => {
  if (!run.value || !about.value?.heads.length || link.value !== "open" || !visible.value.has("attention")) return;
  if (text.value) askTokens({ t: "sequence", run: run.value, step: null, text: text.value });
  else problem.value = "";
});

/** Whether what came after the last visit of this token comes again: the case of an induction head. @param {number[]} ids @param {number} t */
function repeats(ids, t) {
  const before = ids.lastIndexOf(ids[t], t - 1);
  return t > 0 && before >= 0 && t + 1 < ids.length && ids[before + 1] === ids[t + 1];
}

/** The position that is looked from: the chosen one, or the last at which the context repeats itself. */
export const query = computed(() => {
  const ids = reading.value?.tokens ?? [];
  if (chosen.value !== null && chosen.value < ids.length) return chosen.value;
  const found = ids.findLastIndex((_, t) => repeats(ids, t));
  return found >= 0 ? found : ids.length - 1;
});

/** The shares of a position, by part. @param {Reading} said @param {number} position @returns {Record<string, number>} */
export function partsAt(said, position) {
  return Object.fromEntries(Object.entries(said.parts).map(([part, shares]) => [part, shares[position]]));
}
