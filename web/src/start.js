/** A new run from a preset. @import { Answer, FullField, Plain, Preset } from "./protocol.js" */
import { signal } from "@preact/signals";
import { choose, report } from "./actions.js";
import { Dialog } from "./dialog.js";
import { AllFields, more, typeOf, unfolded } from "./fields.js";
import { duration, html, plain } from "./html.js";
import { ask } from "./source.js";
import { dialog, link, presets, say, step, trainer } from "./store.js";
import { forget, misfit, OF_FACTS, question, Upload, upload } from "./upload.js";

const chosen = signal("");
const typed = signal(/** @type {Record<string, string>} */ ({}));
const seed = signal("0");
const answer = signal(/** @type {Answer | null} */ (null));
const busy = signal(false);

const training = () => trainer.value.state === "running";

/** @returns {Preset | undefined} */
const preset = () => presets.value.find((p) => p.name === chosen.value) ?? presets.value[0];

/** @param {{name: string, value: Plain | null}} f */
const isChanged = (f) => typed.value[f.name] !== undefined && typed.value[f.name] !== String(f.value);

/** Only what was changed: everything else is the preset's. @param {Preset} from @returns {Record<string, Plain>} */
function settings(from) {
  const asked = ofFacts() ? OF_FACTS : [...from.fields, ...more(from)];
  return Object.fromEntries(asked.filter(isChanged).map((f) => [f.name, plain(typed.value[f.name], f.type)]));
}

/** What the time of a training grows with; how the fields that were changed change it is a rough guess. */
const COSTLY = ["plan.steps", "plan.batch", "task.T", "model.d"];

/** @param {Preset} from */
function takes(from) {
  const more = from.fields.filter((f) => COSTLY.includes(f.name)).map((f) => Number(typed.value[f.name] ?? f.value) / Number(f.value));
  const seconds = from.seconds === null ? NaN : more.reduce((all, x) => all * x, from.seconds);
  return Number.isFinite(seconds) && seconds > 0 ? `Takes about ${duration(seconds)} here.` : "";
}

/** Whether a table of facts takes the place of a preset. */
const ofFacts = () => upload.value?.kind === "facts";

/** @param {string} error @param {string | null} [field] */
const refuse = (error, field = null) => (answer.value = { t: "answer", id: 0, ok: false, error, field });

/** @param {Event} e */
async function start(e) {
  e.preventDefault();
  const from = preset(), number = Number(seed.value);
  if (!from || busy.value) return;
  if (seed.value.trim() === "" || !Number.isSafeInteger(number) || number < 0) {
    refuse("a seed is a whole number from 0", "seed");
    return;
  }
  busy.value = true;
  const file = upload.value, asked = settings(from);
  const reply = /** @type {Answer} */ (await ask(file ? question(file, from.name, number, asked) : { t: "start", preset: from.name, seed: number, settings: asked }));
  busy.value = false;
  answer.value = reply;
  const { field } = reply;
  if (report(reply, "The run was started.", true)) begun(reply);
  else if (field && more(from).some((f) => f.name === field)) showError(field);
}

/** An error in a field that is folded away, or far below. @param {string} name */
function showError(name) {
  unfolded.value = true;
  requestAnimationFrame(() => document.getElementById(`field-${name}`)?.focus());
}

/** @param {Answer} reply */
function begun(reply) {
  dialog.value = answer.value = null;
  forget();
  if (reply.note) say(reply.note);
  if (reply.run) choose(reply.run, []);
  step.value = null;
  requestAnimationFrame(() => document.activeElement instanceof HTMLElement && document.activeElement.blur()); // space pauses, and opens no dialog again
}

/** The error beside a field need not name it. @param {string} name */
function errorOf(name) {
  if (!answer.value || answer.value.ok || answer.value.field !== name) return null;
  return answer.value.error?.replace(`${name}: `, "");
}

/** @param {{field: {name: string, meaning: string, choices: Plain[] | null}, value: string, set: (value: string) => void, kind?: string}} props kind: its type and default, in words */
function Entry({ field: { name, meaning, choices }, value, set, kind = "" }) {
  const error = errorOf(name), id = `field-${name}`;
  const common = { id, "data-testid": id, value, "aria-invalid": !!error, "aria-describedby": `error-${name}` };
  const changed = (/** @type {any} */ e) => {
    if (errorOf(name)) answer.value = null;
    set(e.target.value);
  };
  return html`<label for=${id} title=${meaning}>${name}</label>
    <div class="entry">${choices?.length ? html`<select ...${common} onChange=${changed}>${choices.map((c) => html`<option key=${c} value=${String(c)}>${String(c)}</option>`)}</select>`
      : html`<input ...${common} spellcheck=${false} autocomplete="off" onInput=${changed} />`}
    <span class="error" id=${`error-${name}`} data-testid=${`field-error-${name}`}>${error}</span>
    ${!error && (meaning || kind) && html`<small class="meaning">${meaning}${kind && html` <span class="kind">${kind}</span>`}</small>`}</div>`;
}

/** @param {string} name @param {string} value */
const put = (name, value) => (typed.value = { ...typed.value, [name]: value });

/** One of all. @param {FullField} f */
const further = (f) => html`<${Entry} key=${f.name} field=${f} kind=${typeOf(f)} value=${typed.value[f.name] ?? f.value} set=${(/** @type {string} */ value) => put(f.name, value)} />`;

/** @param {{from: Preset}} props */
function Fields({ from }) {
  const seedField = { name: "seed", type: "integer", value: 0, choices: null, meaning: "of data and initial weights: another one, another training" };
  return html`<div class="fields">
    ${(ofFacts() ? OF_FACTS : from.fields).map((f) => html`<${Entry} key=${f.name} field=${f} value=${typed.value[f.name] ?? String(f.value)}
      set=${(/** @type {string} */ value) => put(f.name, value)} />`)}
    <${Entry} field=${seedField} value=${seed.value} set=${(/** @type {string} */ value) => (seed.value = value)} /></div>
    ${!ofFacts() && html`<${AllFields} from=${from} typed=${typed.value} changed=${isChanged} entry=${further} wrongAt=${answer.value?.field ?? null} />`}`;
}

export function Start() {
  const from = preset(), known = [...(ofFacts() ? OF_FACTS : [...(from?.fields ?? []), ...more(from)])].map((f) => f.name).concat("seed");
  const general = answer.value && !answer.value.ok && !known.includes(answer.value.field ?? "");
  return html`<${Dialog} name="start" title="New run"><form class="start" onSubmit=${start}>
    ${from ? html`<label class="preset">preset <select autofocus data-testid="preset" value=${from.name} onChange=${(/** @type {any} */ e) => {
        chosen.value = e.target.value;
        typed.value = {};
        answer.value = null;
      }}>${presets.value.map((p) => html`<option key=${p.name} value=${p.name}>${[p.experiment, p.title].filter(Boolean).join(" · ")}</option>`)}</select></label>
      <p class="about">${ofFacts() ? "As engram fact learn does; the preset is not used." : html`${from.about} <b data-testid="takes">${takes(from)}</b>`}</p><${Upload} from=${from} /><${Fields} from=${from} />` : html`<p class="hint">The presets have not arrived yet.</p>`}
    ${training() && html`<p class="hint" data-testid="start-stops">The training that is running stops at the step where it is; it can go on later.</p>`}
    <footer>${general && html`<p class="error" role="alert" data-testid="start-error">${answer.value?.error?.replace("content: ", "")}</p>`}<button type="button" onClick=${() => (dialog.value = null)}>Cancel</button>
      <button class="primary" data-testid="start" disabled=${!from || busy.value || misfit(from) !== "" || link.value !== "open"}>Start</button></footer>
  </form><//>`;
}
