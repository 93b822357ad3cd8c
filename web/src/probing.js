/**
 * What probes say of the model that is looked at: asked for by panels that are seen, kept by its step and its edits.
 * @import { Answer, ComposeSaid, CopyingSaid, Head, HeadsSaid, HeadScores, OfModel, ProbeAsked } from "./protocol.js"
 */
import { computed, effect, signal } from "@preact/signals";
import { latest } from "./source.js";
import { link, model, run, state, stored, visible } from "./store.js";

/** @typedef {"heads" | "compose" | "copying"} Kind */

/** @param {Kind} kind @param {string[]} panels */
function probe(kind, panels) {
  const told = signal(/** @type {{of: string, said: OfModel | null, error: string} | null} */ (null));
  /** @type {(question: ProbeAsked) => void} */
  const ask = latest((reply, question) => {
    const bad = reply.t === "answer";
    told.value = { of: question.run, said: bad ? null : /** @type {any} */ (reply), error: bad ? (/** @type {Answer} */ (reply).error ?? "") : "" };
  });
  effect(() => {
    const seen = panels.some((name) => visible.value.has(name));
    if (seen && model.value && run.value && link.value === "open" && moment.value) ask({ t: kind, run: run.value, step: stored.value });
  });
  return computed(() => (told.value?.of === run.value ? told.value : null));
}

/** Changes whenever the answers may be others: another step, another edit, newer weights. */
const moment = computed(() => [run.value, stored.value, state.value?.edits?.map((e) => e.edit).join() ?? "", state.value?.live ?? "", state.value?.snapshots.length].join("|"));

const heads = probe("heads", ["heads", "attention"]);
export const composed = probe("compose", ["composition"]);
export const copied = probe("copying", ["heads"]);
export const headsSaid = computed(() => /** @type {HeadsSaid | null} */ (heads.value?.said ?? null));
export const headsWrong = computed(() => heads.value?.error ?? "");
export const composedSaid = computed(() => /** @type {ComposeSaid | null} */ (composed.value?.said ?? null));
export const copiedSaid = computed(() => /** @type {CopyingSaid | null} */ (copied.value?.said ?? null));

/** L19H7 @param {Head} head */
export const nameOf = ([layer, head]) => `L${layer}H${head}`;

/** @param {string} name @returns {Head} */
export function headOf(name) {
  const [, layer, head] = name.match(/^L(\d+)H(\d+)$/) ?? ["", "0", "0"];
  return [Number(layer), Number(head)];
}

/** @param {"previous" | "induction"} kind */
function best(kind) {
  const known = headsSaid.value?.heads ?? [];
  return known.reduce((a, b) => ((b[kind] ?? -1) > (a?.[kind] ?? -1) ? b : a), /** @type {HeadScores | undefined} */ (known[0]));
}

/** The strongest previous-token head and the strongest induction head. */
export const strongest = computed(() => {
  const names = [best("previous")?.head, best("induction")?.head].filter((name) => name !== undefined);
  return [...new Set(names)].map(headOf);
});
