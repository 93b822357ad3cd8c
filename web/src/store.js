/**
 * All that the page knows, as signals.
 * @import { About, Column, Columns, Head, Preset, Run, State, Trainer } from "./protocol.js"
 */
import { computed, signal } from "@preact/signals";
import { atOrBefore, reach, union } from "./steps.js";

/** @template T @typedef {import("@preact/signals").Signal<T>} Signal */

// From the server
/** @type {Signal<"opening" | "open" | "lost" | "other">} */
export const link = signal("opening");
/** @type {Signal<Run[] | null>} */
export const runs = signal(null);
/** @type {Signal<Preset[]>} */
export const presets = signal([]);
/** @type {Signal<Record<string, About>>} */
export const abouts = signal({});
/** @type {Signal<Record<string, Column[]>>} what can be drawn */
export const curvesOf = signal({});
/** @type {Signal<Record<string, Columns>>} */
export const rows = signal({});
/** @type {Signal<Record<string, State>>} */
export const states = signal({});
/** @type {Signal<Trainer>} */
export const trainer = signal({ run: null, state: "none", step: null, limit: 0, error: null });

/** A run that the address names and that is not here. @type {Signal<string | null>} */
export const missing = signal(null);
/** Runs that the server spoke of before they stand in its list. @type {Set<string>} */
export const promised = new Set();

// Chosen by the person
/** @type {Signal<string | null>} */
export const run = signal(null);
/** @type {Signal<number | null>} null: follow live */
export const step = signal(null);
/** @type {Signal<string[]>} further runs whose curves are drawn */
export const also = signal([]);
/** Runs that differ in nothing but their seed are drawn as one band. */
export const banded = signal(true);
/** The run beside which they were chosen. @type {Signal<string | null>} */
export const alsoOf = signal(null);
/** @type {Signal<"memory" | "raw">} */
export const basis = signal("memory");
/** What pictures show: the run that is looked at, A; another moment, B; or what is left of A less B. @type {Signal<"a" | "b" | "less">} */
export const shows = signal("a");
/** The run of B; null: the run that is looked at. @type {Signal<string | null>} */
export const other = signal(null);
/** The step of B; null: that of A. @type {Signal<number | null>} */
export const minus = signal(0);
export const shared = signal(false);
export const locked = signal(false);
/** Colours follow the root of a score, so that small ones are seen beside large ones. */
export const rooted = signal(false);
/** @type {Signal<Head[]>} heads left out of attention pictures and predictions */
export const ablate = signal([]);
/** @type {Signal<Head[]>} heads whose attention is drawn, where a model has many; empty: the strongest */
export const picked = signal([]);
/** @type {Signal<string>} a sequence of one's own; empty: the task's */
export const text = signal("");
/** @type {Signal<number[] | null>} what the server made of it */
export const tokens = signal(null);
/** The last edit of a model, with the run that it was made in. @type {Signal<{run: string, said: import("./protocol.js").EditSaid} | null>} */
export const edited = signal(null);
/** What was typed for a truncation. */
export const truncation = signal({ layer: "", matrix: "", share: "0.05", prompt: "The capital of France is", answer: "Paris", rival: "the" });
/** @type {Signal<string[]>} */
export const folded = signal([]);
/** What is chosen in panels, so that a link can hold it: a part or line of the circuit, a fact by its place, a matrix of the spectrum. */
export const part = signal(""), matrix = signal("");
/** @type {Signal<number | null>} */
export const fact = signal(null);
export const logSteps = signal(false);
/** @type {Signal<Record<string, boolean>>} groups of curves, beside losses, accuracies and recalls, switched on or off by hand */
export const groupsSwitched = signal({});

/** The lesson that is read beside the run. @type {Signal<string | null>} */
export const lessonName = signal(null);
export const lessonOpen = signal(true);
/** What was predicted, by lesson and question. @type {Signal<Record<string, string>>} */
export const predicted = signal({});

// Of the moment
/** @type {Signal<Set<string>>} panels on the screen */
export const visible = signal(new Set());
/** @type {Signal<"start" | "help" | "runs" | "lessons" | null>} */
export const dialog = signal(null);
/** @type {Signal<{text: string, bad: boolean}>} the last thing worth saying aloud */
export const said = signal({ text: "", bad: false });
/** @type {Signal<number | null>} the step under the mouse on the timeline */
export const pointed = signal(null);
/** @type {Signal<number | null>} where slider and curves end as long as a hand is on them, however far the run gets */
export const held = signal(null);

// Derived
export const about = computed(() => (run.value ? abouts.value[run.value] : undefined));
export const state = computed(() => (run.value ? states.value[run.value] : undefined));
export const curves = computed(() => (run.value ? curvesOf.value[run.value] : undefined) ?? []);
export const columns = computed(() => (run.value ? rows.value[run.value] : undefined));
/** What is known of a model with many heads. */
export const model = computed(() => about.value?.model ?? null);
/** Whether it is a model of others, which is probed and edited but not trained. */
export const ofOthers = computed(() => (model.value?.revisions ?? 0) > 0);
export const info = computed(() => runs.value?.find((r) => r.id === run.value));
/** Whether the trainer has something to do with a run; of one that it has brought to its end the record says all. @param {string | null} id */
export const trains = (id) => id !== null && trainer.value.run === id && !["none", "idle"].includes(trainer.value.state);
export const training = computed(() => trains(run.value));
export const following = computed(() => step.value === null);
/** The step of the newest weights of a run at rest, which stay where they are. */
const resting = computed(() => {
  const live = state.value?.live ?? null, moves = trains(run.value) && trainer.value.state === "running";
  return live === null || moves ? [] : [live];
});
export const stops = computed(() => {
  const known = union(columns.value?.step ?? [], union(state.value?.snapshots ?? [], resting.value));
  return known.length ? known : [0];
});
export const last = computed(() => Math.max(stops.value[stops.value.length - 1], state.value?.live ?? 0, state.value?.step ?? 0));
/** The last step that slider and curves have room for. */
export const end = computed(() => held.value ?? reach(last.value, about.value?.steps ?? 0));
/** The same for the curves, where other runs may be longer. */
export const curvesEnd = computed(() => Math.max(end.value, ...also.value.map((id) => rows.value[id]?.step.at(-1) ?? 0)));
/** The step that is looked at; an address may name one that the run does not have. */
export const now = computed(() => (step.value === null ? last.value : state.value ? Math.min(step.value, last.value) : step.value));
/** The weights of a step are those stored last up to it, unless they were computed. @param {number} x */
function kept(x) {
  if (state.value?.computed?.includes(x)) return x;
  const known = union(state.value?.snapshots ?? [], resting.value);
  return known.length ? atOrBefore(known, x) : x;
}
/** The step of the weights that are looked at; null: the newest. */
export const stored = computed(() => (step.value === null ? null : kept(now.value)));
/** The step of B whose weights are stored. Of a run that is not looked at nothing else is at hand. */
const otherStep = computed(() => {
  const asked = minus.value ?? now.value, far = states.value[other.value ?? ""];
  if (!other.value || other.value === run.value) return kept(asked);
  return far?.snapshots.length ? atOrBefore(far.snapshots, asked) : asked;
});
/** A moment of a run; null: the newest. @typedef {{run: string | null, step: number | null}} Moment */
/** B, where pictures show it, or are less it. @type {import("@preact/signals").ReadonlySignal<{run: string, step: number} | null>} */
export const beside = computed(() => (shows.value === "a" || !run.value ? null : { run: other.value ?? run.value, step: otherStep.value }));
/** What is subtracted. */
export const subtracted = computed(() => (shows.value === "less" ? beside.value : null));
/** What pictures are of. @type {import("@preact/signals").ReadonlySignal<Moment>} */
export const seen = computed(() => (shows.value === "b" ? beside.value : null) ?? { run: run.value, step: stored.value });
export const aboutSeen = computed(() => (seen.value.run ? abouts.value[seen.value.run] : undefined));
export const events = computed(() => about.value?.events ?? info.value?.events ?? []);
/** Where a curriculum goes over to its next stage. */
export const stages = computed(() => about.value?.stages ?? []);

/** Whether a head is taken away. @param {number} layer @param {number} head */
export const isOff = (layer, head) => ablate.value.some(([l, h]) => l === layer && h === head);

/** @param {string} message @param {boolean} [bad] */
export function say(message, bad = false) {
  said.value = { text: message, bad };
}
