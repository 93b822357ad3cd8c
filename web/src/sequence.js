/**
 * What the model says about a sequence: the task's own, or one that was typed.
 * @import { ReadingSaid, TokensAsked } from "./protocol.js"
 */
import { batch, computed, effect, signal } from "@preact/signals";
import { percent } from "./html.js";
import { latest } from "./source.js";
import { same } from "./steps.js";
import { about, aboutSeen, link, run, seen, text, tokens } from "./store.js";

/** @typedef {Omit<ReadingSaid, "asked"> & {asked: number[]}} Reading asked: positions */

const PAUSE = 200; // milliseconds without typing before the server is asked

const newest = signal(/** @type {Reading | null} */ (null));
/** What the model predicts; nothing while it is still that of another run. */
export const reading = computed(() => (newest.value?.run === seen.value.run ? newest.value : null));
effect(() => {
  void tokens.value;
  newest.value = null; // what was said of another sequence is not shown under this one
});
/** The text whose tokens are known. */
const translated = signal("");
const wrongText = signal(""), wrongReading = signal("");
/** Whether what was typed is not yet what the pictures show. */
export const pending = computed(() => text.value !== "" && text.value !== translated.value && !wrongText.value);
/** What the pictures show while what was typed is no sequence. */
const instead = computed(() => (tokens.value === null ? "a sequence of the task’s own" : `“${translated.value}”`));
/** Why there is none, or what is shown in its place. */
export const problem = computed(() => (wrongText.value ? `${wrongText.value}; below is ${instead.value}` : wrongReading.value));
/** What a head is called: by its place, and by the role that probes confirm at this step. @param {number} layer @param {number} head */
export function headName(layer, head) {
  const role = roleOf(layer, head);
  return `layer ${layer}, head ${head}${role && ` · ${role}`}`;
}

/** "induction head, 70 % of its attention" @param {number} layer @param {number} head */
export function roleOf(layer, head) {
  const found = reading.value?.heads.find((h) => h.layer === layer && h.head === head);
  return found?.role ? `${found.role}, ${percent(found.share)} of its attention` : "";
}

/** What a part of the model is called. @param {string} part */
export function partName(part) {
  const layer = Number(part.match(/^head(\d+)$/)?.[1]), heads = aboutSeen.value?.heads.filter(([l]) => l === layer) ?? [];
  if (!layer) return part;
  return heads.length === 1 ? headName(layer, heads[0][1]) : `heads of layer ${layer}`;
}

/** The position whose attention is drawn as arcs, if one was chosen. @type {import("@preact/signals").Signal<number | null>} */
export const chosen = signal(null);

/** @param {ReadingSaid} said */
export function read(said) {
  newest.value = said.error === null ? told(said) : null;
  wrongReading.value = said.error ?? "";
}

/** Arrays that say the same stay the same, so that what is drawn from them stays too. @param {ReadingSaid} said @returns {Reading} */
function told(said) {
  const before = newest.peek();
  if (before && same(before.tokens, said.tokens) && same(before.marks, said.marks)) {
    return { ...said, tokens: before.tokens, marks: before.marks, asked: before.asked };
  }
  return { ...said, asked: said.asked?.flatMap((yes, t) => (yes ? [t] : [])) ?? [] };
}

/** Only the server knows the letters of a run: it says which tokens a text is. @type {(question: TokensAsked) => void} */
const askTokens = latest((reply, question) => batch(() => {
  const asked = /** @type {TokensAsked} */ (question);
  if (asked.run !== run.value || asked.text !== text.value) return; // the person went on meanwhile
  wrongText.value = reply.t === "answer" ? (reply.error ?? "").replace(/^text: /, "") : "";
  if (reply.t !== "tokens") return;
  translated.value = asked.text;
  if (!same(reply.tokens, tokens.value)) tokens.value = reply.tokens;
}));

let planned = 0;
effect(() => {
  clearTimeout(planned);
  if (!run.value || !about.value?.heads.length || link.value !== "open") return;
  if (text.value) planned = setTimeout(askTokens, PAUSE, { t: "tokens", run: run.value, text: text.value });
  else wrongText.value = "";
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
  return Object.fromEntries(Object.entries(said.parts).map(([part, shares]) => [part, shares[position] ?? 0]));
}
