/**
 * A change of one part, tried out: what it would do at once, and the same as an intervention.
 * @import { Answer, CircuitEdge, CircuitNode, EffectSaid, Moved, Plain } from "./protocol.js"
 */
import { computed, effect, signal } from "@preact/signals";
import { report } from "./actions.js";
import { html, number, percent, plain } from "./html.js";
import { inquiry } from "./inquiry.js";
import { forked } from "./interventions.js";
import { chosen as position } from "./sequence.js";
import { ask } from "./source.js";
import { about, part, run, runs, tokens } from "./store.js";

/** @typedef {{key: string, title: string, head: import("./protocol.js").Head | null, matrices: string[]}} Target */
/** @typedef {"ablate" | "rescale" | "patch"} Way */

/** The part or line that was chosen. @type {import("@preact/signals").Signal<Target | null>} */
export const chosen = signal(null);
const way = signal(/** @type {Way} */ ("ablate")), what = signal(""), factor = signal("0.5"), source = signal(""), from = signal("0");
const refused = signal("");

effect(() => { // another run has other parts
  void run.value;
  chosen.value = null;
  source.value = refused.value = "";
});

/** @param {CircuitNode | CircuitEdge} of */
export const keyOf = (of) => ("name" in of ? `part-${of.name}` : `edge-${of.from}-${of.to}`);

/** @param {CircuitNode | CircuitEdge} of @param {CircuitNode} [begin] @param {CircuitNode} [end] the parts that a line joins */
export function select(of, begin, end) {
  const key = keyOf(of), line = "from" in of && begin && end, to = end?.kind === "answer";
  refused.value = "";
  part.value = key;
  if (line) chosen.value = { key, title: `${begin.title} → ${end.title}`, head: to ? begin.head : null, matrices: to ? begin.matrices.filter((m) => !/^W_[QK]/.test(m)) : of.matrices };
  else if ("name" in of) chosen.value = { key, title: of.title, head: of.head, matrices: of.matrices };
}

/** What can be changed of the part: the head, or trained matrices. */
const things = computed(() => {
  const head = chosen.value?.head && way.value !== "patch" ? [`head ${chosen.value.head.join(".")}`] : [];
  return [...head, ...(chosen.value?.matrices ?? [])];
});
const thing = computed(() => (things.value.includes(what.value) ? what.value : things.value[0] ?? ""));
const others = computed(() => (runs.value ?? []).filter((r) => r.id !== run.value && r.title === about.value?.title));
const sourceRun = computed(() => source.value || run.value || "");

/** @param {string} kind @param {Record<string, Plain>} fields */
const doing = (kind, fields) => ({ kind, fields });

/** The intervention, as the server takes it; null where there is nothing to do. */
const event = computed(() => {
  const [layer, head] = chosen.value?.head ?? [0, 0], matrix = thing.value;
  if (!matrix) return null;
  if (way.value === "patch") return doing("patch", { matrix, source: sourceRun.value, of: plain(from.value, "integer") });
  const whole = matrix.startsWith("head "), by = way.value === "ablate" ? 0 : plain(factor.value, "number");
  if (whole && way.value === "ablate") return doing("ablate", { layer, head });
  return whole ? doing("rescalehead", { layer, head, factor: by }) : doing("rescale", { matrix, factor: by });
});

/** @type {import("@preact/signals").ReadonlySignal<{said: EffectSaid | null, error: string} | null>} */
const told = inquiry("circuit", (of) => (event.value ? { t: "effect", ...of, ...event.value, tokens: tokens.value, position: position.value } : null));

/** The run is forked at a step; what is wrong is told in words. @param {string} parent @param {number} at @param {ReturnType<typeof doing>} event */
export async function intervene(parent, at, event) {
  const reply = /** @type {Answer} */ (await ask({ t: "intervene", run: parent, at, ...event }));
  if (report(reply, `Done at step ${reply.step}: the run was forked.`, true)) forked(reply, parent);
  return reply.ok ? "" : reply.error ?? "";
}

/** @param {Event} e */
async function apply(e) {
  const said = told.value?.said;
  e.preventDefault();
  if (said && event.value) refused.value = await intervene(said.run, said.step, event.value);
}

/** @param {{value: Way, text: string}} props */
const Choice = ({ value, text }) => html`<button type="button" aria-pressed=${way.value === value} data-testid=${`trial-${value}`} onClick=${() => (way.value = value)}>${text}</button>`;

function Factor() {
  const set = (/** @type {any} */ e) => (factor.value = e.target.value);
  return html`<label>factor<span class="pair"><input class="tiny" inputmode="decimal" data-testid="trial-factor" value=${factor.value} onInput=${set} />
    <input type="range" min="-1" max="3" step="0.05" value=${factor.value} onInput=${set} /></span></label>`;
}

function Source() {
  return html`<label class="prompt">from run<select data-testid="trial-source" value=${sourceRun.value} onChange=${(/** @type {any} */ e) => (source.value = e.target.value)}>
      <option value=${run.value}>this run</option>${others.value.map((r) => html`<option key=${r.id} value=${r.id}>${r.id} · ${r.words}</option>`)}</select></label>
    <label>at its step<input class="tiny" inputmode="numeric" data-testid="trial-from" value=${from.value} onInput=${(/** @type {any} */ e) => (from.value = e.target.value)} /></label>`;
}

function Form() {
  return html`<form class="intervene" onSubmit=${apply}>
    <div class="segments" role="group" aria-label="What is done"><${Choice} value="ablate" text="Ablate" /><${Choice} value="rescale" text="Rescale" /><${Choice} value="patch" text="Patch" /></div>
    <label>what<select data-testid="trial-what" value=${thing.value} onChange=${(/** @type {any} */ e) => (what.value = e.target.value)}>${things.value.map((t) => html`<option key=${t}>${t}</option>`)}</select></label>
    ${way.value === "rescale" && html`<${Factor} />`}${way.value === "patch" && html`<${Source} />`}
    <div class="act"><button class="primary" data-testid="trial-apply" disabled=${!told.value?.said}>Apply as intervention (forks here)</button>
      ${refused.value && html`<p class="error">${refused}</p>`}</div></form>`;
}

/** Two bars, one above the other. @param {{of: Moved}} props */
const Bars = ({ of }) => html`<div class="bars">${[of.before, of.after].map((p, i) => html`<i key=${i} style=${{ width: `${100 * (p ?? 0)}%` }}></i>`)}</div>`;

/** @param {{of: Moved, right: boolean}} props */
const Row = ({ of, right }) => html`<tr class=${right ? "right" : ""}><td class="token">${of.mark}${right && html` <small>right</small>`}</td><td>${percent(of.before)}</td><td>${percent(of.after)}</td><td><${Bars} of=${of} /></td></tr>`;

/** @param {{said: EffectSaid}} props */
function Effect({ said }) {
  const { here, unseen } = said, rest = here.moved.filter((m) => m.mark !== here.right?.mark);
  return html`<div data-testid="effect"><p><b>${said.what}</b>, at step ${said.step}; position ${here.position + 1} (<span class="token">${here.token}</span>) of ${about.value?.heads.length ? "the sequence in Attention" : "a prompt"}</p>
    <table class="cuts effect"><thead><tr><th>answer</th><th>before</th><th>after</th><th></th></tr></thead>
      <tbody>${here.right && html`<${Row} of=${here.right} right=${true} />`}${rest.map((m) => html`<${Row} key=${m.mark} of=${m} right=${false} />`)}</tbody></table>
    <p class="hint">${unseen.sequences} unseen ones, ${unseen.positions} positions: p(right) ${percent(unseen.p_right[0])} → <b>${percent(unseen.p_right[1])}</b>, loss ${number(unseen.loss[0])} → <b>${number(unseen.loss[1])}</b> nats.</p></div>`;
}

export function Trial() {
  if (!chosen.value) return null;
  const said = event.value && told.value?.said, wrong = event.value && told.value?.error;
  return html`<div class="trial" data-testid="trial"><h3>${chosen.value.title}</h3><${Form} />
    ${!things.value.length && html`<p class="hint">Nothing of this part is trained: no intervention can change it.</p>`}
    ${wrong && html`<p class="error" data-testid="trial-wrong">${wrong}</p>`}${said ? html`<${Effect} said=${said} />` : event.value && !wrong && html`<p class="hint">Trying it out…</p>`}</div>`;
}
