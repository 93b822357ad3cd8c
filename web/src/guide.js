/** Where a link of a lesson leads: a run, a step, a panel, and what is chosen in it. @import { Answer, Go, LessonRun } from "./protocol.js" */
import { batch } from "@preact/signals";
import { choose, report } from "./actions.js";
import { search } from "./bench.js";
import { runNamed } from "./lessons.js";
import { duration } from "./html.js";
import { fold } from "./panel.js";
import { chosen } from "./sequence.js";
import { ask, lab } from "./source.js";
import { basis, minus, other, pointed, run, runs, say, shows, states, step, text, tokens, trainer, trains } from "./store.js";

const LOOKS = 60, BETWEEN = 100; // how often, and after how many milliseconds, what is chosen is looked for

/** How a run of the lesson is. @param {LessonRun} r */
export function state(r) {
  const listed = runs.value?.find((one) => one.id === r.run), busy = trainer.value.state === "running" && trainer.value.run !== r.run;
  if (!listed && !trains(r.run)) return { words: `not trained yet; ${duration(r.seconds)}`, needed: true, begun: false, busy };
  const at = trains(r.run) ? trainer.value.step : states.value[r.run]?.step ?? listed?.rows, word = trains(r.run) ? trainer.value.state : listed?.state ?? "";
  const ended = word === "finished";
  return { words: ended ? `${r.steps} steps, finished` : `step ${at ?? 0} of ${r.steps}, ${word}`, needed: !ended && !trains(r.run) && word !== "diverged", begun: true, busy };
}

/** Makes it, or goes on with it; the trainer knows which. @param {LessonRun} r */
export async function train(r) {
  const reply = /** @type {Answer} */ (await ask({ t: "start", preset: r.preset, seed: r.seed, settings: r.settings }));
  if (report(reply, `Training ${r.name}.`)) choose(r.run);
}

const OF_LAB = ["theory", "circuit", "spectrum", "facts", "interventions"]; // panels that a file does not have, or cannot use

/** Whether a link leads anywhere here. @param {Go} go */
export const offered = (go) => lab || !(OF_LAB.includes(go.panel ?? "") || go.text !== undefined);

/** @param {Go} go */
export function follow(go) {
  const r = runNamed(go.run);
  if (!r) return;
  if (lab && !state(r).begun) {
    say(`“${r.name}” is not trained yet: see the top of the lesson.`, true);
    return;
  }
  batch(() => move(r, go));
  const at = go.step === undefined ? "" : `Step ${go.step}`;
  say([at, go.panel].filter(Boolean).join(", "));
  if (go.panel) show(go.panel, target(go));
}

/** @param {LessonRun} r @param {Go} go */
function move(r, go) {
  choose(r.run, run.value === r.run ? undefined : []);
  pointed.value = null;
  if (go.step !== undefined) step.value = go.step === "last" ? r.steps : go.step;
  if (go.panel === "wall") {
    shows.value = go.minus === undefined ? "a" : "less";
    if (go.minus !== undefined) [other.value, minus.value] = [null, go.minus];
    basis.value = go.basis ?? "memory";
  }
  if (go.text !== undefined) [text.value, chosen.value, tokens.value] = [go.text, null, null];
  if (go.find !== undefined) search.value = go.find;
}

/** What a link chooses, as the page calls it. @param {Go} go */
function target(go) {
  if (go.matrix) return `[data-testid="${go.basis ?? "memory"}:${CSS.escape(go.matrix)}"]`;
  if (go.head) return `[data-testid="head-${go.head}"]`;
  return go.part ? `[data-testid="part-${CSS.escape(go.part)}"]` : "";
}

/** @type {Element | null} */
let framed = null;
let planned = 0;

/** Unfolds the panel, and frames what was chosen in it as soon as it is drawn. @param {string} panel @param {string} within */
function show(panel, within) {
  framed?.classList.remove("anchored");
  clearTimeout(planned);
  fold(panel, true);
  planned = setTimeout(() => {
    document.getElementById(`panel-${panel}`)?.scrollIntoView({ block: "start" });
    if (within) seek(`#panel-${panel} ${within}`, LOOKS);
  }, BETWEEN);
}

/** @param {string} what @param {number} left */
function seek(what, left) {
  const found = document.querySelector(what), part = found instanceof SVGElement;
  framed = found?.closest("figure") ?? found;
  framed?.classList.add("anchored");
  if (part && found.getAttribute("aria-pressed") !== "true") found.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  if (found && !part) framed?.scrollIntoView({ block: innerWidth < 900 ? "start" : "nearest" });
  if (!found && left > 0) planned = setTimeout(seek, BETWEEN, what, left - 1);
}
