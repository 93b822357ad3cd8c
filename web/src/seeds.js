/** Runs that differ in nothing but their seed, as one curve: their mean, in the band of its interval. @import { Columns } from "./protocol.js" */
import { computed } from "@preact/signals";
import { also, banded, rows, run, runs } from "./store.js";

/** Student's t at 97.5 %, by degrees of freedom; from the fourth on a series in 1 / df is as exact as any picture. */
const FIRST = [12.7062, 4.30265, 3.18245];
const SERIES = [1.95996, 2.3724, 2.8225, 2.5558, 1.5895];

/** @param {number} df */
export const student = (df) => FIRST[df - 1] ?? SERIES.reduce((sum, c, i) => sum + c / df ** i, 0);

/** @typedef {{mean: number | null, low: number | null, high: number | null}} Interval */

/** The 95 % interval of a mean; nothing where a seed has no value. @param {(number | null)[]} values @returns {Interval} */
export function interval(values) {
  const known = values.filter((x) => x !== null), n = known.length;
  if (n < values.length || n < 2) return { mean: null, low: null, high: null };
  const mean = known.reduce((sum, x) => sum + x, 0) / n;
  const half = student(n - 1) * Math.sqrt(known.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (n - 1) / n);
  return { mean, low: mean - half, high: mean + half };
}

/** What two runs share if only the seed tells them apart. @param {string} id */
const kin = (id) => runs.value?.find((r) => r.id === id)?.seedless || id;

/** All runs like the one that is looked at but for the seed. */
export const seedsOfRun = computed(() => (runs.value ?? []).filter((r) => r.id !== run.value && run.value !== null && kin(r.id) === kin(run.value)).map((r) => r.id));

/** The runs that are drawn: that which is looked at comes first. */
export const drawnRuns = computed(() => [...(run.value ? [run.value] : []), ...also.value.filter((id) => id !== run.value)]);

/** Runs that are drawn as one band, and the others, each as it is. */
export const cohorts = computed(() => {
  const groups = new Map(/** @type {[string, string[]][]} */ ([]));
  for (const id of drawnRuns.value) groups.set(kin(id), [...(groups.get(kin(id)) ?? []), id]);
  return banded.value ? [...groups.values()].filter((ids) => ids.length > 1) : [];
});

/** Mean and both ends over the seeds, where all have rows. @param {string[]} ids @param {string[]} names @returns {{steps: number[], of: Record<string, Interval[]>}} */
export function bandOf(ids, names) {
  const tables = ids.map((id) => rows.value[id] ?? { step: [] }), places = tables.map((t) => new Map(t.step.map((s, i) => [s, i])));
  const steps = tables[0].step.filter((s) => places.every((of) => of.has(s)));
  const at = (/** @type {Columns} */ t, /** @type {string} */ name, /** @type {number} */ i) => t[name]?.[i] ?? null;
  return { steps, of: Object.fromEntries(names.map((name) => [name,
    steps.map((s) => interval(tables.map((t, k) => at(t, name, /** @type {number} */ (places[k].get(s))))))])) };
}
