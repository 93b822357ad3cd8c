/** A, the run that is looked at, and B, another moment: of the same run, of a branch, or of any other run. @import { Frame, Run } from "./protocol.js" */
import { batch } from "@preact/signals";
import { html } from "./html.js";
import { words } from "./picker.js";
import { lab } from "./source.js";
import { abouts, beside, info, minus, now, ofOthers, other, run, runs, shows, states, subtracted } from "./store.js";

const MOST = 100; // other runs in the list, the newest first
/** @type {["a" | "b" | "less", string, string][]} */
const WAYS = [["a", "A", "The run at the step of the slider"], ["b", "B", "Another step, or another run"], ["less", "A − B", "What A has more than B"]];

/** @param {Run} r */
const branchName = (r) => r.events.at(-1)?.what ?? "without interventions";

/** A run in few words, within the company of those that are compared. @param {string} id */
export function short(id) {
  const found = runs.value?.find((r) => r.id === id);
  if (!found) return id;
  return found.family === info.value?.family ? branchName(found) : words(found);
}

/** A moment as it is spoken of. @param {{run: string, step: number}} moment */
export const nameOf = (moment) => (moment.run === run.value ? `at step ${moment.step}` : `in B (${short(moment.run)}) at step ${moment.step}`);

/** What a picture is of: "step 16 − step 8", "B, step 8". @param {Frame} frame */
export function momentOf(frame) {
  const less = frame.minus === null ? "" : ` − ${frame.minus_run ? "B, " : ""}step ${frame.minus}`;
  return `${shows.value === "b" ? "B, " : ""}step ${frame.step}${less}`;
}

/** Where B is not chosen. */
export const chosenElsewhere = () => beside.value && html`<p class="hint">B is ${beside.value.run === run.value ? "this run" : short(beside.value.run)} at step ${beside.value.step}, as chosen in Memories.</p>`;

/** @param {string} id */
function compare(id) {
  other.value = id === run.value ? null : id;
  minus.value = id === run.value ? 0 : null;
}

/** @param {string} id */
export function compareWith(id) {
  batch(() => {
    compare(id);
    shows.value = "less";
  });
  document.getElementById("panel-wall")?.scrollIntoView({ block: "nearest" });
}

/** Whether two runs are asked about one sequence of their task. A lab asks B on that of A, a file has each run on its own. @param {string} a @param {string} b */
function onOneSequence(a, b) {
  const task = (/** @type {string} */ id) => JSON.stringify([abouts.value[id]?.seed, abouts.value[id]?.settings.filter((s) => s.name.startsWith("task."))]);
  return lab || task(a) === task(b);
}

/** Whether it is not yet known what B is, and so which of its pictures can be asked for. */
export const unknown = () => subtracted.value !== null && !abouts.value[subtracted.value.run];

/** Why a picture of A cannot be less that of B; "" where it can, or where nothing is subtracted. @param {string} picture */
export function refusedFor(picture) {
  const b = subtracted.value?.run, a = run.value;
  if (!a || !b || a === b || !abouts.value[a] || !abouts.value[b]) return "";
  const [mine, theirs] = [a, b].map((id) => abouts.value[id].pictures.find((p) => p.name === picture));
  if (!theirs) return "B has no such picture.";
  if (!mine?.shape || !theirs.shape) return onOneSequence(a, b) ? "" : "In this file each run has attention on a sequence of its own, so there is no A − B.";
  const [sizeA, sizeB] = [mine.shape, theirs.shape].map((shape) => shape.join(" × "));
  return sizeA === sizeB ? "" : `There is no A − B: the picture of A is ${sizeA}, that of B ${sizeB}.`;
}

export function Shows() {
  return html`<div class="segments" role="group" aria-label="A, B or their difference">${WAYS.map(([way, text, title]) => html`<button key=${way}
    aria-pressed=${shows.value === way} title=${title} data-testid=${`shows-${way}`} onClick=${() => (shows.value = way)}>${text}</button>`)}</div>`;
}

/** The runs that B may be of: this one, its branches, all others. */
function Choice() {
  const all = [...(runs.value ?? [])].reverse().filter((r) => r.state !== "model" && r.id !== run.value);
  const mine = all.filter((r) => r.family === info.value?.family), rest = all.filter((r) => !mine.includes(r));
  const far = rest.filter((r, i) => i < MOST || r.id === other.value);
  const group = (/** @type {string} */ label, /** @type {Run[]} */ of, /** @type {(r: Run) => string} */ name) =>
    of.length > 0 && html`<optgroup label=${label}>${of.map((r) => html`<option key=${r.id} value=${r.id}>${name(r)}</option>`)}</optgroup>`;
  return html`<select aria-label="Run of B" data-testid="other-run" value=${other.value ?? run.value}
    onChange=${(/** @type {any} */ e) => batch(() => compare(e.target.value))}>
    <option value=${run.value}>this run</option>${group("Its branches", mine, branchName)}${group("Other runs", far, words)}</select>`;
}

/** @param {string} text */
function typeStep(text) {
  const asked = Math.round(Number(text)), own = !other.value || other.value === run.value;
  minus.value = text.trim() && Number.isFinite(asked) ? Math.max(0, asked) : own ? 0 : null;
}

/** What B is, in words; and what of it there is not. */
function Told() {
  const b = beside.value, far = b && b.run !== run.value, asked = minus.value ?? now.value;
  if (!b) return null;
  if (far && states.value[b.run] && !states.value[b.run].snapshots.length) return html`<span class="error" data-testid="no-other">No weights of B are stored.</span>`;
  const from = b.step === asked ? "" : `, the stored step before ${asked}`;
  return html`<span class="hint" data-testid="other-step">B is at step ${b.step}${from}${far && minus.value === null ? ", and goes with the slider" : ""}.</span>`;
}

/** What A is compared with, while it is. */
export function Beside() {
  if (!beside.value) return null;
  const far = other.value !== null && other.value !== run.value;
  return html`<div class="beside" role="group" aria-label="B">
    <b>B</b>${!ofOthers.value && html`<${Choice} />`}
    <label>at step <input class="tiny" inputmode="numeric" data-testid="minus" value=${minus.value ?? ""} placeholder=${far ? "as A" : ""} aria-label="Step of B"
      onChange=${(/** @type {any} */ e) => typeStep(e.target.value)} /></label>
    <button class="quiet" title="The step that is looked at now" onClick=${() => (minus.value = now.value)}>this step</button>
    <${Told} /></div>`;
}
