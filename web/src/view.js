/**
 * Tells the server what is on the screen: at most once a frame, the latest wins.
 * @import { View } from "./protocol.js"
 */
import { computed, effect } from "@preact/signals";
import { missingFrom } from "./rows.js";
import { send } from "./source.js";
import { strongest } from "./probing.js";
import { refusedFor, unknown } from "./compare.js";
import { ablate, aboutSeen, also, basis, beside, info, link, model, picked, promised, rows, run, runs, shows, stored, tokens, visible } from "./store.js";

const HZ = 2; // news a second while following live: training goes first

/** @param {string} kind */
const ofKind = (kind) => aboutSeen.value?.pictures.filter((p) => p.name.startsWith(`${kind}:`)) ?? [];

/** Whether the run has matrices that are read as associations. */
export const associates = computed(() => ofKind("memory").length > 0);

/** The memories on the wall, in the basis that was chosen, if the run has it. */
export const wall = computed(() => ofKind(associates.value ? basis.value : "raw"));

/** Heads that have pictures; of large ones a file may have left some out. */
const drawable = computed(() => {
  const names = new Set(ofKind("attention").map((p) => p.name));
  return (aboutSeen.value?.heads ?? []).filter(([layer, head]) => names.has(`attention:${layer}.${head}`));
});

/** The heads whose attention is drawn: all of them, or of many those that were picked. */
const shown = computed(() => (model.value ? (picked.value.length ? picked.value : strongest.value) : drawable.value));

/** One attention picture a head. */
export const maps = computed(() =>
  shown.value.map(([layer, head]) => ({ layer, head, name: `attention:${layer}.${head}` })));

const pictures = computed(() => [
  ...(visible.value.has("wall") ? wall.value.map((p) => p.name) : []),
  ...(visible.value.has("attention") ? maps.value.map((m) => m.name) : []),
].filter((name) => !unknown() && !refusedFor(name)));

/** B, where it is another run. */
const otherRun = computed(() => (beside.value && beside.value.run !== run.value ? beside.value.run : null));

/** @type {View | null} */
let sent = null;
let asked = "";
let planned = false;
let serial = 0;

/** @returns {View | null} */
function wanted() {
  if (!run.value || !runs.value) return null; // without the list it is not known whether there is such a run
  if (!promised.has(run.value) && !info.value) return null;
  return {
    t: "view", run: run.value, step: stored.value, pictures: pictures.value,
    minus: beside.value?.step ?? null, minus_run: otherRun.value, shows: shows.value === "b" ? "other" : "run",
    tokens: tokens.value, ablate: ablate.value, dtype: "u8", hz: HZ,
    reads: visible.value.has("attention") && maps.value.length > 0, also: also.value, rows_from: {}, serial: 0,
  };
}

function leave() {
  planned = false;
  const view = wanted();
  if (!view || JSON.stringify(view) === asked) return;
  const message = { ...view, rows_from: Object.fromEntries([view.run, ...view.also, ...(view.minus_run ? [view.minus_run] : [])].map(held)), serial: ++serial };
  if (!send(message)) return;
  asked = JSON.stringify(view);
  sent = message;
}

/** @param {string} id */
const held = (id) => [id, missingFrom(rows.peek()[id])];

/** A hidden page has no animation frames, but must still say that it needs nothing. */
function plan() {
  if (planned) return;
  planned = true;
  if (document.hidden) setTimeout(leave, 0);
  else requestAnimationFrame(leave);
}

/** After a connection opened all is asked anew. */
export function askAgain() {
  asked = "";
  plan();
}

export const lastView = () => sent;

/**
 * Whether what was made for a view is still wanted. If not, all is asked anew: the page may soon want again what it has
 * just dropped, and the server believes that it was sent.
 * @param {number} serialOf
 */
export function stillWanted(serialOf) {
  if (serialOf !== sent?.serial) return false;
  const still = JSON.stringify(wanted()) === asked;
  if (!still) askAgain();
  return still;
}

effect(() => {
  if (wanted() && link.value === "open") plan();
});
