/** What is known of the facts of the run that is looked at: asked for while the bench is seen. @import { Answer, Fact, FactsAsked, FactsSaid } from "./protocol.js" */
import { computed, effect, signal } from "@preact/signals";
import { latest } from "./source.js";
import { about, following, link, run, state, stored, trainer, training, visible } from "./store.js";

const SLOW = 20, LEAST = 2000; // while it trains: a wait of so many times what the last answer took, and milliseconds at least
const LOOK_BACK = 0.2, SOON = 60; // seconds that one answer looks back, and milliseconds between two

const told = signal(/** @type {FactsSaid | null} */ (null));
const failed = signal({ of: "", error: "" });
/** The fact that a form is about, by its place in the table. */
export { fact as chosen } from "./store.js";

export const ofFacts = computed(() => about.value?.facts === true);
export const said = computed(() => (told.value?.run === run.value ? told.value : null));
export const wrong = computed(() => (failed.value.of === run.value ? failed.value.error : ""));

/** Changes whenever the table may be another one. */
const moment = computed(() => [run.value, stored.value, following.value ? (state.value?.live ?? state.value?.snapshots.length) : ""].join("|"));
const seen = computed(() => ofFacts.value && visible.value.has("facts") && link.value === "open" && run.value !== null);
const running = () => training.value && trainer.value.state === "running";

let due = 0, timer = 0, asked = "";

/** @type {(question: FactsAsked) => void} */
const ask = latest((reply, question) => {
  const bad = reply.t === "answer", news = /** @type {FactsSaid} */ (/** @type {unknown} */ (reply));
  failed.value = { of: question.run, error: bad ? (/** @type {Answer} */ (reply).error ?? "") : "" };
  if (!bad) told.value = news;
  due = performance.now() + (running() ? Math.max(LEAST, SLOW * 1000 * (news.seconds ?? 0)) : SOON);
  if (!bad && news.pending) plan(LOOK_BACK);
});

/** At once where a person moved; what comes by itself waits, so that training keeps its cores. @param {number} back */
function plan(back) {
  clearTimeout(timer);
  if (!seen.peek()) return;
  const wait = back || (running() && following.peek()) ? Math.max(0, due - performance.now()) : 0;
  timer = setTimeout(() => {
    if (run.peek() && seen.peek()) ask({ t: "facts", run: /** @type {string} */ (run.peek()), step: stored.peek(), look_back: back });
  }, wait);
}

effect(() => {
  const now = moment.value;
  if (!seen.value) return void (asked = "");
  if (now !== asked) plan(0);
  asked = now;
});

/** The table as rows. */
export const facts = computed(() => {
  const columns = Object.entries(said.value?.facts ?? {});
  return /** @type {Fact[]} */ ((columns[0]?.[1] ?? []).map((_, i) => ({ i, ...Object.fromEntries(columns.map(([name, of]) => [name, of[i]])) })));
});

/** The learned fact with the smallest margin. */
export const weakest = computed(() => (said.value?.weakest == null ? null : (facts.value[said.value.weakest] ?? null)));

/** The answers that a relation has. @param {string} relation */
export const answersTo = (relation) => [...new Set(facts.value.filter((f) => f.relation === relation).map((f) => f.answer))].sort();
