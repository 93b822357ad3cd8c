/** What theory says of this run and of other sizes, beside what was measured. @import { Answer, LevelsSaid, Predicted, PredictAsked, PredictSaid, SizeSaid, TheorySaid } from "./protocol.js" */
import { computed, effect, signal } from "@preact/signals";
import { html, number, refusal } from "./html.js";
import { Panel } from "./panel.js";
import { measured } from "./rows.js";
import { latest } from "./source.js";
import { about, columns, link, now, run, state, visible } from "./store.js";

const KEYS = /** @type {const} */ (["d", "store", "K", "lr"]);
/** @typedef {typeof KEYS[number]} Key */
const FINE = 8; // places of a slider for each doubling

/** Of the sizes at which the sliders stand. */
export const predicted = signal(/** @type {PredictSaid | null} */ (null));
/** What was asked of other sizes; those not touched are the run's. */
const typed = signal(/** @type {Partial<Record<Key, number>>} */ ({}));
const told = signal(/** @type {TheorySaid | null} */ (null)), drawn = signal(/** @type {LevelsSaid | null} */ (null));
const failed = signal({ of: "", error: "" });
const said = computed(() => (told.value?.run === run.value ? told.value : null));
const sizes = computed(() => (predicted.value?.run === run.value ? predicted.value : null));
const floors = computed(() => (drawn.value?.run === run.value && drawn.value.K === typed.value.K ? drawn.value : null));
const seen = computed(() => visible.value.has("theory") && link.value === "open" && run.value !== null);

/** @template T @param {import("@preact/signals").Signal<T | null>} into @returns {(question: any) => void} */
const asking = (into) => latest((reply, question) => {
  const bad = reply.t === "answer";
  failed.value = { of: question.run, error: bad ? (/** @type {Answer} */ (reply).error ?? "") : "" };
  if (!bad) into.value = /** @type {any} */ (reply);
});
const askTheory = asking(told), askSizes = asking(predicted), askLevels = asking(drawn);

effect(() => { // sizes belong to a run
  void run.value;
  typed.value = {};
});
effect(() => {
  if (!seen.value) return;
  void begun.value;
  askTheory({ t: "theory", run: run.value, step: null });
});
effect(() => {
  if (!seen.value || !said.value) return;
  const { d, store, lr } = typed.value;
  askSizes(/** @type {PredictAsked} */ ({ t: "predict", run: run.value, d: d ?? null, store: store ?? null, lr: lr ?? null }));
});
effect(() => {
  if (seen.value && typed.value.K !== undefined) askLevels({ t: "levels", run: run.value, K: typed.value.K });
});
/** What was measured changes when the first step is stored, and at the end. */
const begun = computed(() => [run.value, (state.value?.snapshots.length ?? 0) > 1, state.value?.state].join("|"));

/** @param {Key} key */
const valueOf = (key) => typed.value[key] ?? said.value?.sizes[key] ?? null;

/** @param {Key} key @param {number} value */
function put(key, value) {
  const most = { d: 1e6, store: 1e9, K: 1000, lr: 1e6 }[key];
  if (Number.isFinite(value) && value > 0 && value <= most) typed.value = { ...typed.value, [key]: key === "lr" ? Number(value.toPrecision(3)) : Math.max(1, Math.round(value)) };
}

const LABELS = /** @type {Record<Key, string>} */ ({ d: "width d", store: "pairs", K: "triggers K", lr: "step size η" });

/** Doublings to both sides of what the run has. @param {{of: Key}} props */
function Slider({ of }) {
  const own = said.value?.sizes[of], value = valueOf(of);
  if (own == null || value === null) return null;
  const label = of === "store" && sizes.value?.capacity[0]?.stores === "facts" ? "facts" : LABELS[of], place = Math.round(FINE * Math.log2(value / own));
  return html`<label>${label}<span><input type="range" min=${-6 * FINE} max=${6 * FINE} step="1" aria-label=${label} aria-valuetext=${String(value)} data-testid=${`theory-range-${of}`} value=${place}
      onInput=${(/** @type {any} */ e) => put(of, own * 2 ** (Number(e.target.value) / FINE))} />
    <input class="tiny" inputmode="decimal" aria-label=${label} data-testid=${`theory-${of}`} value=${String(value)} onChange=${(/** @type {any} */ e) => put(of, Number(e.target.value))} /></span></label>`;
}

/** @param {number | null | undefined} n */
const whole = (n) => (n === null || n === undefined ? "?" : n >= 1e7 ? number(n, 3) : Math.round(n).toLocaleString("en-US"));

/** @param {{name: string, of: SizeSaid}} props */
const Size = ({ name, of }) => html`<tr><td>${name}</td><td>${whole(of.theory.value)}</td><td>${whole(of.measured.value)} <small>(${whole(of.measured.low)} … ${whole(of.measured.high)})</small></td></tr>`;

/** @param {{of: Predicted}} props */
function Memory({ of }) {
  const d = sizes.value?.at.d ?? 0, store = `${whole(sizes.value?.at.store)} ${of.stores}`, { fits, needs } = of, wrong = fits.error === null ? "" : `, ${number(100 * fits.error, 2)} % wrong${of.memory === "hebb" ? "" : " at most"}`;
  return html`<table class="cuts" data-testid=${`capacity-${of.memory}`}><thead><tr><th>${of.title}<br /><small>${fits.theory.law}</small></th><th>theory</th><th>measured <small>(95 %)</small></th></tr></thead><tbody>
    <${Size} name=${`d = ${d} holds`} of=${of.holds} /><${Size} name=${`d = ${2 * d} holds`} of=${of.twice} /><${Size} name=${`${store} need ${needs.counted}`} of=${needs} />
    <tr><td>${store} in d = ${d}</td><td colspan="2"><b>${fits.notes[0]}</b>${wrong}</td></tr></tbody></table>
    <small class="commands"><code>${fits.command}</code>${of.holds.extrapolated && ` (extrapolated by a factor of ${number(of.holds.factor, 2)})`}${fits.warning && html`<br /><span class="error">${fits.warning}</span>`}</small>`;
}

const Sizes = () => (sizes.value?.capacity.length ? html`<h3>What fits</h3>${sizes.value.capacity.map((c) => html`<${Memory} key=${c.memory} of=${c} />`)}` : null);

function Levels() {
  const levels = floors.value?.levels ?? about.value?.levels ?? [], other = floors.value !== null;
  if (!levels.length) return null;
  return html`<h3>What a best predictor reaches</h3><table class="cuts" data-testid="theory-levels"><thead><tr><th></th><th>theory${other ? `, K = ${floors.value?.K}` : ""}</th><th>step ${now}</th></tr></thead>
    <tbody>${levels.map((l) => html`<tr key=${l.column + l.name}><td>${l.name}<br /><small>${l.column}</small></td><td>${number(l.value)}</td><td>${number(measured(columns.value, l.column, now.value))}</td></tr>`)}</tbody></table>`;
}

/** @param {number | null} x */
const fixed = (x) => (x === null ? "–" : x.toFixed(3));

function FirstStep() {
  const f = said.value?.first_step;
  if (!f || f.why) return null;
  const size = sizes.value?.first_step, changed = typed.value.lr !== undefined;
  return html`<h3>The first step of ${f.matrix}</h3><table class="cuts"><thead><tr><th>theory: −η∇L</th><th>cosine</th><th>size</th></tr></thead>
    <tbody>${f.rows.map((r) => html`<tr key=${r.name} data-testid=${`first-${r.name}`}><td>${r.title}</td><td>${fixed(r.cosine)}</td><td>${fixed(r.ratio)}</td></tr>`)}</tbody></table>
    <p class="hint">Against the step that was taken, ‖ΔW‖ = ${number(f.taken)} at η = ${number(f.lr)}.${changed && size != null && ` At η = ${number(typed.value.lr)} theory has ${number(size)}.`} ${f.note}</p>`;
}

/** @param {[number | null, number] | null} m */
const between = (m) => (m === null ? "not yet" : m[0] === null ? `by ${m[1]}` : `(${m[0]}, ${m[1]}]`);

function Stages() {
  const left = said.value?.left ?? [], now = sizes.value?.stages ?? [];
  if (!left.length) return null;
  return html`<h3>When parts leave the uniform stage</h3><table class="cuts" data-testid="theory-stages"><thead><tr><th>part</th><th>rate λ</th><th>step, by theory</th><th>step, measured</th></tr></thead>
    <tbody>${left.map((s) => html`<tr key=${s.part}><td>${s.part}</td><td>${number(s.rate)}</td><td>${whole(now.find((n) => n.part === s.part)?.step ?? s.step)}</td><td>${between(s.measured)}</td></tr>`)}</tbody></table>`;
}

function Silence() {
  const t = said.value, lines = [...(t?.says_nothing ?? []), ...(t?.first_step.why ? [`Of the first step: ${t.first_step.why}.`] : [])];
  return html`<details class="rest" open data-testid="theory-silence"><summary>What theory does not say here</summary><ul class="silence">${lines.map((line) => html`<li key=${line}>${line}</li>`)}</ul></details>`;
}

function Sliders() {
  const changed = Object.keys(typed.value).length > 0, d = valueOf("d");
  return html`<form class="intervene sliders" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>${KEYS.map((key) => html`<${Slider} key=${key} of=${key} />`)}
    <div class="act">${d !== null && html`<button type="button" data-testid="theory-double" onClick=${() => put("d", 2 * d)}>Double d</button>`}
      <button type="button" data-testid="theory-reset" disabled=${!changed} onClick=${() => (typed.value = {})}>As the run is</button></div></form>`;
}

export function Theory() {
  const wrong = { value: failed.value.of === run.value ? failed.value.error : "" };
  return html`<${Panel} name="theory" title="Theory">
    ${refusal(wrong, "theory-wrong")}
    ${said.value ? html`<${Sliders} /><div data-testid="theory"><${Sizes} /><${Levels} /><${FirstStep} /><${Stages} /><${Silence} /></div>`
      : !wrong.value && html`<p class="hint">Asking theory…</p>`}
  <//>`;
}
