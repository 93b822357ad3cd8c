/**
 * What can be done to a training. Every intervention forks the run: what was measured stays.
 * @import { Answer, Plain } from "./protocol.js"
 */
import { computed, effect, signal } from "@preact/signals";
import { choose, report, scrubTo } from "./actions.js";
import { html } from "./html.js";
import { fold, Panel } from "./panel.js";
import { ask } from "./socket.js";
import { about, events, last, link, now, run, step } from "./store.js";

/** @typedef {{title: string, about: string, fields: string[]}} Kind */

/** @type {Record<string, Kind>} */
const KINDS = {
  freeze: { title: "Freeze a matrix", about: "From this step on it does not move.", fields: ["matrix"] },
  unfreeze: { title: "Unfreeze a matrix", about: "It moves again.", fields: ["matrix"] },
  reset: { title: "Reset a matrix", about: "It has the values of an earlier stored step.", fields: ["matrix", "to"] },
  truncate: { title: "Truncate the rank", about: "Only its largest singular values are kept.", fields: ["matrix", "rank"] },
  noise: { title: "Add noise", about: "Gaussian, as a share of the root mean square of its entries.", fields: ["matrix", "size"] },
  ablate: { title: "Ablate a head", about: "It writes nothing, and learns nothing through what it would write.", fields: ["head"] },
  restore: { title: "Restore a head", about: "It writes again.", fields: ["head"] },
  change: { title: "Change a setting", about: "It has another value from this step on.", fields: ["field", "value"] },
};

const kind = signal("freeze");
/** What was put into the fields; those not touched have the first choice or a plain default. */
const typed = signal(/** @type {Record<string, string>} */ ({}));
/** Null: as it suits, now when following live, here when looking at a step. */
const when = signal(/** @type {"now" | "at" | null} */ (null));
const at = signal(/** @type {string | null} */ (null));
const answer = signal(/** @type {Answer | null} */ (null));

const timing = computed(() => when.value ?? (step.value === null ? "now" : "at"));
const atStep = computed(() => at.value ?? String(now.value));

/** @type {Record<string, () => string[]>} */
const CHOICES = {
  matrix: () => about.value?.matrices ?? [],
  head: () => (about.value?.heads ?? []).map(([layer, head]) => `${layer}.${head}`),
  field: () => (about.value?.settings ?? []).map((f) => f.name),
};
/** The setting that would be changed. */
const setting = () => about.value?.settings.find((f) => f.name === valueOf("field"));
/** @type {Record<string, string>} */
const DEFAULTS = { to: "0", rank: "1", size: "0.5" };
/** @type {Record<string, string>} */
const LABELS = { matrix: "matrix", to: "to step", rank: "rank", size: "size", head: "layer.head", field: "setting", value: "value" };

/** @param {string} name @returns {string} */
function valueOf(name) {
  const choices = CHOICES[name]?.(), mine = typed.value[name];
  if (choices) return choices.includes(mine) ? mine : choices[0] ?? "";
  if (mine !== undefined) return mine;
  return name === "value" ? String(setting()?.value ?? "") : DEFAULTS[name];
}

/** A number if it reads as one. @param {string} word @returns {Plain} */
export function plain(word) {
  const trimmed = word.trim();
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  return trimmed !== "" && Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed;
}

/** @returns {Record<string, Plain>} */
function fields() {
  return Object.fromEntries(KINDS[kind.value].fields.flatMap((name) => {
    const value = valueOf(name);
    if (name === "head") return value.split(".").map((part, i) => [["layer", "head"][i], Number(part)]);
    return [[name, name === "matrix" || name === "field" ? value : plain(value)]];
  }));
}

/** @param {Event} e */
async function apply(e) {
  e.preventDefault();
  const parent = run.value;
  if (!parent) return;
  const place = timing.value === "now" ? null : plain(atStep.value);
  if (place !== null && !(Number.isInteger(place) && Number(place) >= 0)) {
    answer.value = { t: "answer", id: 0, ok: false, error: "a step is a whole number from 0", field: "at" };
    return;
  }
  const question = { t: /** @type {const} */ ("intervene"), run: parent, kind: kind.value, at: /** @type {number | null} */ (place), fields: fields() };
  const reply = /** @type {Answer} */ (await ask(question));
  const good = `${KINDS[kind.value].title}: done${reply.step == null ? "" : ` at step ${reply.step}`}.`;
  if (report(reply, good, true)) forked(reply, parent);
  answer.value = reply;
}

effect(() => { // what was answered, and when, belong to the run they were about
  void run.value;
  answer.value = when.value = at.value = null;
});

/** The fork is followed live, its parent stays beside it. @param {Answer} reply @param {string} parent */
function forked(reply, parent) {
  if (reply.run && reply.run !== parent) choose(reply.run, [parent]);
  step.value = null;
  when.value = at.value = null;
}

/** Goes to the form, from anywhere; a second time it turns freeze into unfreeze. */
export function toFreeze() {
  fold("interventions", true);
  kind.value = kind.value === "freeze" && document.activeElement?.id === "kind" ? "unfreeze" : "freeze";
  requestAnimationFrame(() => {
    document.getElementById("kind")?.focus({ preventScroll: true });
    document.getElementById("panel-interventions")?.scrollIntoView({ block: "nearest" });
  });
}

/** Beside a field it need not be named. */
const reason = () => answer.value?.error?.replace(/^[\w.]+: /, "");

/** @param {{name: string}} props */
function Input({ name }) {
  const choices = name === "value" ? setting()?.choices?.map(String) : CHOICES[name]?.(), wrong = answer.value?.ok === false && wrongField() === name;
  /** @param {any} e */
  const set = (e) => {
    const { value: _, ...rest } = typed.value; // another setting has another value
    typed.value = { ...(name === "field" ? rest : typed.value), [name]: e.target.value };
    answer.value = null;
  };
  const common = { id: `i-${name}`, "data-testid": `intervention-${name}`, value: valueOf(name), "aria-invalid": wrong };
  return html`<label>${LABELS[name]}
    ${choices ? html`<select ...${common} onChange=${set}>${choices.map((c) => html`<option key=${c}>${c}</option>`)}</select>`
      : html`<input ...${common} class="short" onInput=${set} />`}
    ${wrong && html`<span class="error">${reason()}</span>`}</label>`;
}

/** The field of this form that an answer speaks of. */
function wrongField() {
  if (kind.value === "change" && answer.value?.field === valueOf("field")) return "value";
  const field = answer.value?.field?.split(".").pop() ?? "";
  if (field === "step" || field === "at") return "at";
  return field === "layer" ? "head" : field;
}

function When() {
  const wrong = answer.value?.ok === false && wrongField() === "at";
  return html`<div class="when"><label>when <select data-testid="intervention-when" value=${timing.value}
      onChange=${(/** @type {any} */ e) => {
        when.value = e.target.value;
        answer.value = null;
      }}>
      <option value="now">now</option><option value="at">at step</option></select></label>
    ${timing.value === "at" && html`<label>step <input class="short" inputmode="numeric" data-testid="intervention-at"
      aria-invalid=${wrong} value=${atStep.value} onInput=${(/** @type {any} */ e) => {
        at.value = e.target.value;
        answer.value = null;
      }} />
      ${wrong && html`<span class="error">${reason()}</span>`}</label>`}</div>`;
}

function Outcome() {
  const reply = answer.value, own = [...KINDS[kind.value].fields, "at"];
  if (!reply) return html`<p class="hint" data-testid="intervention-answer">${KINDS[kind.value].about}</p>`;
  if (!reply.ok && own.includes(wrongField())) return html`<p class="error" data-testid="intervention-answer">Refused: see above. <span class="sr">${reply.error}</span></p>`;
  return html`<p class=${reply.ok ? "good" : "error"} data-testid="intervention-answer">
    ${reply.ok ? `Done${reply.step == null ? "" : ` at step ${reply.step}`}: the run was forked, and this is the fork.` : reply.error}</p>`;
}

function Form() {
  return html`<form class="intervene" onSubmit=${apply}>
    <label>what <select id="kind" data-testid="intervention-kind" value=${kind.value}
      onChange=${(/** @type {any} */ e) => {
        kind.value = e.target.value;
        answer.value = null;
      }}>${Object.entries(KINDS).map(([name, { title }]) => html`<option key=${name} value=${name}>${title}</option>`)}</select></label>
    ${KINDS[kind.value].fields.map((name) => html`<${Input} key=${name} name=${name} />`)}
    <${When} />
    <div class="act"><button class="primary" data-testid="intervention-apply" disabled=${link.value !== "open" || !run.value}>Apply (forks here)</button>
      <${Outcome} /></div>
  </form>`;
}

function Past() {
  if (!events.value.length) return html`<p class="hint">Nothing was done to this run yet.</p>`;
  return html`<ol class="events" data-testid="events">${events.value.map((e, i) => html`<li key=${i}>
    <button class="quiet" onClick=${() => scrubTo(Math.min(e.step, last.value))}>${e.step}</button> ${e.what}</li>`)}</ol>`;
}

export function Interventions() {
  return html`<${Panel} name="interventions" title="Interventions"><${Form} /><${Past} /><//>`;
}
