/**
 * What the model says about a sequence: the task's own, or one that was typed.
 * @import { SequenceAsked, SequenceSaid } from "./protocol.js"
 */
import { batch, computed, effect, signal } from "@preact/signals";
import { latest } from "./socket.js";
import { ablate, about, last, link, run, stored, text, tokens, visible } from "./store.js";

/** @typedef {Omit<SequenceSaid, "asked"> & {asked: number[]}} Reading asked: positions */

/** The answer that is shown. @type {import("@preact/signals").Signal<Reading | null>} */
export const reading = signal(null);
/** Why there is none. */
export const problem = signal("");
/** The position whose attention is drawn as arcs, if one was chosen. @type {import("@preact/signals").Signal<number | null>} */
export const chosen = signal(null);

/** @param {number[] | null} a @param {number[] | null} b */
const same = (a, b) => a === b || (a !== null && b !== null && a.length === b.length && a.every((x, i) => x === b[i]));

/** @type {(question: SequenceAsked) => void} */
const askSequence = latest((reply, question) => batch(() => {
  const asked = /** @type {SequenceAsked} */ (question);
  if (asked.run !== run.value || (asked.text ?? "") !== text.value) return; // the person went on meanwhile
  if (reply.t !== "sequence") {
    problem.value = reply.t === "answer" ? reply.error ?? "" : "";
    return;
  }
  problem.value = "";
  reading.value = { ...reply, asked: reply.asked?.flatMap((yes, t) => (yes ? [t] : [])) ?? [] };
  const mine = asked.text === null ? null : reply.tokens;
  if (!same(mine, tokens.value)) tokens.value = mine;
}));

effect(() => {
  if (!run.value || !about.value?.heads.length || link.value !== "open" || !visible.value.has("attention")) return;
  if (stored.value === null) void last.value; // live: asked again whenever there is something newer
  askSequence({ t: "sequence", run: run.value, step: stored.value, text: text.value || null, ablate: ablate.value });
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
