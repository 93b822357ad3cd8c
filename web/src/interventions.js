/**
 * What can be done to a training, as the server describes it. Every intervention forks the run: what was measured stays.
 * @import { Answer, AskedField, Field, Plain } from "./protocol.js"
 */
import { computed, effect, signal } from "@preact/signals";
import { choose, report, scrubTo } from "./actions.js";
import { html, plain } from "./html.js";
import { fold, Panel } from "./panel.js";
import { ask, lab, needsLab } from "./source.js";
import { about, events, last, link, now, run, step, trainer, training } from "./store.js";

const chosen = signal("");
/** What was put into the fields, by their names; those not touched have what the server proposes. */
const typed = signal(/** @type {Record<string, string>} */ ({}));
/** Null: as it suits, now when following live, here when looking at a step. */
const when = signal(/** @type {"now" | "at" | null} */ (null));
const at = signal(/** @type {string | null} */ (null));
const answer = signal(/** @type {Answer | null} */ (null));

const kinds = computed(() => about.value?.interventions ?? []);
const kind = computed(() => kinds.value.find((k) => k.kind === chosen.value) ?? kinds.value[0]);
const fields = computed(() => kind.value?.fields ?? []);
const timing = computed(() => when.value ?? (step.value === null ? "now" : "at"));
const atStep = computed(() => at.value ?? String(now.value));

/** What is offered for a field; it may depend on what was chosen in another. @param {AskedField} field @returns {Omit<Field, "name">} */
function offered(field) {
  if (!("by" in field)) return field;
  const other = fields.value.find((f) => f.name === field.after);
  return field.by[other ? textOf(other) : ""] ?? { type: "text", value: null, choices: null };
}

/** @param {AskedField} field @returns {string} */
function textOf(field) {
  const { choices, value } = offered(field), mine = typed.value[field.name];
  const fits = choices ? choices.map(String).includes(mine) : mine !== undefined;
  return fits ? mine : String(value ?? "");
}

/** @param {AskedField} field @returns {Plain} */
function valueOf(field) {
  const { choices, type } = offered(field), text = textOf(field);
  return choices?.find((c) => String(c) === text) ?? plain(text, type);
}

/** @param {Event} e */
async function apply(e) {
  e.preventDefault();
  const parent = run.value;
  if (!parent || !kind.value) return;
  const place = timing.value === "now" ? null : plain(atStep.value, "integer");
  if (place !== null && !(Number.isInteger(place) && Number(place) >= 0)) {
    answer.value = { t: "answer", id: 0, ok: false, error: "a step is a whole number from 0", field: "at" };
    return;
  }
  const { kind: name, title } = kind.value, given = Object.fromEntries(fields.value.map((f) => [f.name, valueOf(f)]));
  const question = { t: /** @type {const} */ ("intervene"), run: parent, kind: name, at: /** @type {number | null} */ (place), fields: given };
  const reply = /** @type {Answer} */ (await ask(question));
  const good = `${title}: done${reply.step == null ? "" : ` at step ${reply.step}`}.`;
  if (report(reply, good, true)) forked(reply, parent);
  answer.value = reply;
  if (wrongField() === "at") when.value = "at"; // the step that is asked for can be written there
}

effect(() => { // what was answered, and when, belong to the run they were about
  void run.value;
  answer.value = when.value = at.value = null;
});

/** The fork is followed live, its parent stays beside it. @param {Answer} reply @param {string} parent */
export function forked(reply, parent) {
  if (reply.run && reply.run !== parent) choose(reply.run, [parent]);
  step.value = null;
  when.value = at.value = null;
}

/** Goes to the form, from anywhere; a second time to the next kind. */
export function toInterventions() {
  fold("interventions", true);
  const there = document.activeElement?.id === "kind", place = kinds.value.indexOf(/** @type {any} */ (kind.value));
  if (there) pick(kinds.value[(place + 1) % kinds.value.length].kind);
  requestAnimationFrame(() => {
    document.getElementById("kind")?.focus({ preventScroll: true });
    document.getElementById("panel-interventions")?.scrollIntoView({ block: "nearest" });
  });
}

/** @param {string} name */
function pick(name) {
  chosen.value = name;
  answer.value = null;
}

/** What hangs on a field has another value when that field has. @param {string} name @param {string} text */
function put(name, text) {
  const rest = Object.entries(typed.value).filter(([other]) => !fields.value.some((f) => f.name === other && "by" in f && f.after === name));
  typed.value = { ...Object.fromEntries(rest), [name]: text };
  answer.value = null;
}

/** Beside a field it need not be named. */
const reason = () => answer.value?.error?.replace(/^[\w.]+: /, "");

const MODES = { integer: "numeric", number: "decimal", text: "text" };

/** @param {{field: AskedField}} props */
function Input({ field }) {
  const { choices, type } = offered(field), { name, label } = field, text = textOf(field), wrong = wrongField() === name;
  const common = { id: `i-${name}`, "data-testid": `intervention-${name}`, "aria-invalid": wrong };
  /** @param {any} e */
  const set = (e) => put(name, type === "boolean" && !choices ? String(e.target.checked) : e.target.value);
  const control = choices ? html`<select ...${common} value=${text} onChange=${set}>${choices.map((c) => html`<option key=${c}>${String(c)}</option>`)}</select>`
    : type === "boolean" ? html`<input ...${common} type="checkbox" checked=${text === "true"} onChange=${set} />`
      : html`<input ...${common} class="short" inputmode=${MODES[type]} value=${text} onInput=${set} />`;
  return html`<label>${label}${control}${wrong && html`<span class="error">${reason()}</span>`}</label>`;
}

/** The field of this form that a refusal speaks of: by its name, or by what was chosen in the field that it hangs on. */
function wrongField() {
  if (answer.value?.ok !== false) return null;
  const whole = answer.value.field ?? "", last = whole.split(".").pop();
  if (last === "step" || last === "at") return "at";
  const chosenIn = fields.value.find((f) => textOf(f) === whole);
  const hanging = chosenIn && fields.value.find((f) => "by" in f && f.after === chosenIn.name);
  return hanging?.name ?? fields.value.find((f) => f.name === last)?.name ?? null;
}

function When() {
  const wrong = wrongField() === "at", later = timing.value === "at";
  const why = wrong && html`<span class="error">${reason()}</span>`;
  return html`<div class="when"><label>when <select data-testid="intervention-when" value=${timing.value} aria-invalid=${wrong && !later}
      onChange=${(/** @type {any} */ e) => {
        when.value = e.target.value;
        answer.value = null;
      }}>
      <option value="now">now</option><option value="at">at step</option></select>${!later && why}</label>
    ${later && html`<label>step <input class="short" inputmode="numeric" data-testid="intervention-at"
      aria-invalid=${wrong} value=${atStep.value} onInput=${(/** @type {any} */ e) => {
        at.value = e.target.value;
        answer.value = null;
      }} />${why}</label>`}</div>`;
}

/** A fork of a run that is paused is paused, too, and may have no step yet. */
const waits = () => (training.value && trainer.value.state === "paused" ? " It is paused: Resume trains it." : "");

function Outcome() {
  const reply = answer.value;
  if (!reply) return html`<p class="hint" data-testid="intervention-answer">${kind.value?.hint}</p>`;
  if (wrongField()) return html`<p class="error" data-testid="intervention-answer">Refused: see above. <span class="sr">${reply.error}</span></p>`;
  return html`<p class=${reply.ok ? "good" : "error"} data-testid="intervention-answer">
    ${reply.ok ? `Done${reply.step == null ? "" : ` at step ${reply.step}`}: the run was forked, and this is the fork.${waits()}` : reply.error}</p>`;
}

function Form() {
  return html`<form class="intervene" onSubmit=${apply}>
    <label>what <select id="kind" data-testid="intervention-kind" value=${kind.value?.kind}
      onChange=${(/** @type {any} */ e) => pick(e.target.value)}>
      ${kinds.value.map((k) => html`<option key=${k.kind} value=${k.kind}>${k.title}</option>`)}</select></label>
    ${fields.value.map((field) => html`<${Input} key=${field.name} field=${field} />`)}
    <${When} />
    <div class="act"><button class="primary" data-testid="intervention-apply" disabled=${link.value !== "open" || !kind.value}>Apply (forks here)</button>
      <${Outcome} /></div>
  </form>`;
}

function Past() {
  if (!events.value.length) return html`<p class="hint">Nothing has been done to this run yet.</p>`;
  return html`<ol class="events" data-testid="events">${events.value.map((e, i) => html`<li key=${i}>
    <button class="quiet" onClick=${() => scrubTo(Math.min(e.step, last.value))}>${e.step}</button> ${e.what}</li>`)}</ol>`;
}

export function Interventions() {
  return html`<${Panel} name="interventions" title="Interventions">${lab ? html`<${Form} />` : html`<p class="hint">${needsLab("Interventions", run.value)}</p>`}<${Past} /><//>`;
}
