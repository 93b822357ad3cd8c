/**
 * Singular values: of every matrix at the step in view, of one over the steps, and what is said with fewer of them.
 * @import { CutMetrics, CutSaid, SpectraSaid, SpectrumSaid } from "./protocol.js"
 */
import { computed, signal } from "@preact/signals";
import { atOther } from "./between.js";
import { coloursOf } from "./colours.js";
import { html, number, percent } from "./html.js";
import { inquiry } from "./inquiry.js";
import { Panel } from "./panel.js";
import { even, Plot } from "./plot.js";
import { about, logSteps, now, matrix as picked } from "./store.js";
import { intervene } from "./trial.js";

const LEAST = 1e-4; // the least share of the largest value that is drawn
const SHARES = even(0, 10, 10).map((tenths) => tenths / 10);
const NAMES = /** @type {Record<string, string>} */ ({ p_correct: "p(correct)", p_noise: "p(noise)", accuracy: "accuracy", loss: "loss (nats)" });

const share = signal("0.2"), refused = signal("");

/** @type {import("@preact/signals").ReadonlySignal<{said: SpectrumSaid | null, error: string} | null>} */
export const spectrumSaid = inquiry("spectrum", (of) => ({ t: "spectrum", ...of }));
export const matrices = computed(() => (spectrumSaid.value?.said?.matrices ?? []).flatMap((m) => (m.values ? [{ ...m, values: m.values }] : [])));
const colours = computed(() => coloursOf(matrices.value.map((m) => m.name)));
/** As the server offers them to interventions. */
const trained = computed(() => {
  const field = about.value?.interventions.find((k) => k.kind === "truncate")?.fields.find((f) => f.name === "matrix");
  return field && "choices" in field ? (field.choices ?? []).map(String) : [];
});
/** The one that was chosen; at first the last that is trained. */
const matrix = computed(() => {
  const names = matrices.value.map((m) => m.name);
  return names.includes(picked.value) ? picked.value : trained.value.filter((n) => names.includes(n)).at(-1) ?? names.at(-1) ?? "";
});

/** @type {import("@preact/signals").ReadonlySignal<{said: SpectraSaid | null, error: string} | null>} */
const history = inquiry("spectrum", (of) => (matrix.value ? { t: "spectra", run: of.run, step: null, matrix: matrix.value } : null), (/** @type {SpectraSaid} */ said) => said.left > 0);
/** @param {() => number[]} shares @returns {import("@preact/signals").ReadonlySignal<{said: CutSaid | null, error: string} | null>} */
const cutting = (shares) => inquiry("spectrum", (of) => (matrix.value ? { t: "cut", ...of, matrix: matrix.value, shares: shares() } : null));
const curve = cutting(() => SHARES), cut = cutting(() => [Number(share.value)]);

/** What was said of the matrix that is chosen. @template {{matrix: string}} S @param {{said: S | null} | null} of */
const ofChosen = (of) => (of?.said?.matrix === matrix.value ? of.said : null);

/** @param {number} low @param {number} high */
const span = (low, high) => /** @type {[number, number]} */ ([low, high]);

/** All matrices, on a logarithmic axis; the chosen one thick. */
function Values() {
  const all = matrices.value.map((m, i) => ({ ...m, colour: colours.value[i] })), high = Math.max(...all.map((m) => m.values[0])), most = Math.max(...all.map((m) => m.values.length));
  if (!(high > 0)) return null; // all are zero;
  const low = Math.max(LEAST * high, Math.min(...all.flatMap((m) => m.values.filter((v) => v > 0))));
  const lines = all.sort((a, b) => Number(a.name === matrix.value) - Number(b.name === matrix.value))
    .map((m) => ({ colour: m.colour, width: m.name === matrix.value ? 3 : 1.2, points: m.values.map((v, i) => span(i + 1, Math.log10(Math.max(v, low)))) }));
  const y = span(Math.log10(low) - 0.05, Math.log10(high) + 0.05), powers = even(Math.ceil(y[0]), Math.floor(y[1]), Math.max(1, Math.floor(y[1]) - Math.ceil(y[0])));
  return html`<${Plot} label="Singular values of every matrix, on a logarithmic axis" testid="spectrum-values" under="singular value, the largest first" high=${200}
    x=${[1, most]} y=${y} xs=${even(1, most).map((v) => [v, v])} ys=${powers.map((p) => [p, number(10 ** p)])} lines=${lines} />`;
}

function Legend() {
  return html`<div class="legend" role="group" aria-label="Matrix">${matrices.value.map((m, i) => html`<button key=${m.name} aria-pressed=${m.name === matrix.value} data-testid=${`spectrum-${m.name}`} onClick=${() => (picked.value = m.name)}><i style=${{ background: colours.value[i] }} aria-hidden="true"></i>${m.name} <b>${number(m.effective)}</b></button>`)}</div><small>beside a name: effective rank</small>`;
}

/** The leading values of the chosen matrix over the stored steps. */
function History() {
  const said = ofChosen(history.value), first = said?.values[0] ?? [];
  if (!said || !first.length) return null;
  const most = Math.max(...said.values.map((v) => v[0] ?? 0)), place = (/** @type {number} */ s) => (logSteps.value ? Math.log1p(s) : s), last = said.steps.at(-1) ?? 0;
  const lines = first.map((_, i) => ({ colour: colours.value[matrices.value.findIndex((m) => m.name === matrix.value)], width: i ? 0.8 : 2.5, points: said.steps.map((s, t) => span(place(s), said.values[t][i])) }));
  const ticks = logSteps.value ? [0, 10, 100, 1000, 1e4].filter((s) => s <= last) : even(0, last);
  return html`<figure class="curves"><figcaption>Leading singular values of ${said.matrix} over the stored steps${said.left > 0 && ` (${said.left} to come)`}</figcaption>
    <${Plot} label="Leading singular values over the steps" testid="spectrum-history" under="step" high=${170} x=${[0, place(last)]} y=${[0, 1.05 * most]}
      xs=${ticks.map((s) => [place(s), s])} ys=${[0, most / 2, most].map((v) => [v, number(v, 2)])} lines=${lines} at=${place(Math.min(last, now.value))} /></figure>`;
}

/** p(correct), and p(noise) where there is noise, over the share that is kept. @param {{said: CutSaid}} props */
function Curve({ said }) {
  const kinds = /** @type {("p_correct" | "p_noise")[]} */ (["p_correct", "p_noise"].filter((k) => k in said.whole)), own = coloursOf(kinds);
  return html`<${Plot} label="Probabilities over the share that is kept" testid="cut-curve" under="share ρ that is kept" high=${130} x=${[0, 1]} y=${[0, 1]}
      xs=${[0, 0.5, 1].map((v) => [v, percent(v)])} ys=${[0, 0.5, 1].map((v) => [v, v])} at=${Number(share.value)} lines=${kinds.map((k, i) => ({ colour: own[i], width: 2, points: said.rows.map((r) => [r.share, r[k] ?? 0]) }))} />
    <div class="legend parts">${kinds.map((k, i) => html`<span key=${k}><i style=${{ background: own[i] }} aria-hidden="true"></i>${NAMES[k]}</span>`)}</div>`;
}

/** @param {{said: CutSaid}} props */
function Table({ said }) {
  const [row] = said.rows, show = (/** @type {string} */ k, /** @type {CutMetrics} */ of) => (k === "loss" ? number(of.loss) : percent(/** @type {any} */ (of)[k]));
  return html`<table class="cuts" data-testid="cut-table"><thead><tr><th></th><th>whole</th><th>${said.matrix}, ${row.rank} of ${said.of}</th></tr></thead>
    <tbody>${Object.keys(NAMES).filter((k) => k in said.whole).map((k) => html`<tr key=${k}><td>${NAMES[k]}</td><td>${show(k, said.whole)}</td><td>${show(k, row)}</td></tr>`)}</tbody></table>
    <p class="hint">${said.sequences} unseen ones, ${said.positions} positions</p>${trained.value.includes(said.matrix) && html`<button data-testid="cut-apply" onClick=${() => apply(said)}>Truncate to rank ${row.rank} (forks here)</button>`}`;
}

/** @param {CutSaid} said */
async function apply(said) {
  refused.value = await intervene(said.run, said.step, { kind: "truncate", fields: { matrix: said.matrix, rank: said.rows[0].rank } });
}

function Truncation() {
  const said = ofChosen(cut.value), whole = ofChosen(curve.value), wrong = cut.value?.error || refused.value;
  return html`<div class="trial"><h3>Truncate ${matrix.value}</h3>
    <label class="intervene"><span>share ρ kept: ${percent(Number(share.value))}</span><input type="range" min="0" max="1" step="0.01" data-testid="cut-share" value=${share.value}
      onInput=${(/** @type {any} */ e) => (share.value = e.target.value)} /></label>
    ${whole && html`<${Curve} said=${whole} />`}${said && html`<${Table} said=${said} />`}${wrong && html`<p class="error">${wrong}</p>`}</div>`;
}

export function Spectrum() {
  const { said, error } = spectrumSaid.value ?? {}, some = matrices.value.length > 0;
  return html`<${Panel} name="spectrum" title="Spectrum" note=${atOther.value}>
    ${!some && html`<p class="hint">${error || (said ? "No matrix has singular values that are numbers." : "Waiting for the weights…")}</p>`}
    ${some && html`<${Legend} /><${Values} /><${History} /><${Truncation} />`}
  <//>`;
}
