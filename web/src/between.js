/** Steps between stored ones: the server computes the one that the slider rests on, where it can. @import { Answer } from "./protocol.js" */
import { computed, effect, signal } from "@preact/signals";
import { ask } from "./source.js";
import { info, link, now, ofOthers, run, state, step, stored, trainer } from "./store.js";

const REST = 300; // milliseconds without a movement

const trains = computed(() => trainer.value.state === "running");

/** Why the step of the moment is not computed. */
export const refused = signal("");
const computing = signal(false);

/** The newest weights of a run at rest; while it trains they may be a moment behind the rows. */
const newest = computed(() => {
  const { snapshots = [], computed: known = [], live = null } = state.value ?? {};
  return info.value?.state === "running" || trains.value ? now.value : Math.max(...snapshots, ...known, live ?? 0);
});

/** The stored step that is shown in place of the one that is asked for; null where it is that one. */
const instead = computed(() => {
  if (!state.value) return null;
  const shown = step.value === null ? newest.value : stored.value;
  return shown === now.value ? null : shown;
});

/** What is said beside pictures that are not of the step that is looked at. */
export const atOther = computed(() => {
  if (instead.value === null) return "";
  return computing.value ? `computing step ${now.value} …` : `of step ${instead.value}, not ${now.value}`;
});

/** @param {string} of @param {number} at */
async function compute(of, at) {
  computing.value = true;
  const reply = /** @type {Answer} */ (await ask({ t: "weights", run: of, step: at }));
  if (run.value !== of || now.value !== at) return; // the person went on meanwhile
  if (reply.ok) return; // the state tells that it is there
  computing.value = false;
  refused.value = reply.error ?? "";
}

let planned = 0;
effect(() => {
  void trains.value; // what was refused beside a training may be asked for after it
  clearTimeout(planned);
  refused.value = "";
  computing.value = false;
  if (instead.value === null || !run.value || ofOthers.value || link.value !== "open") return;
  planned = setTimeout(compute, REST, run.value, now.value);
});
