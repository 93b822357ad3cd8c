/** All heads of a model as two grids: previous-token and induction scores. @import { Head, HeadScores } from "./protocol.js" */
import { signal } from "@preact/signals";
import { atOther } from "./between.js";
import { RISING, pixels } from "./colours.js";
import { html, number } from "./html.js";
import { Panel } from "./panel.js";
import { copiedSaid, headOf, headsSaid, headsWrong, nameOf, strongest } from "./probing.js";
import { model, picked, state } from "./store.js";

/** @typedef {"previous" | "induction"} Kind */
const TITLES = { previous: "Previous-token score", induction: "Induction score" };
const MOST = 4; // heads whose attention is drawn at once
/** The head under the mouse or the keyboard. */
const pointed = signal(/** @type {string | null} */ (null));

/** @param {Head} head */
const isPicked = (head) => (picked.value.length ? picked.value : strongest.value).some((p) => nameOf(p) === nameOf(head));

/** Its attention is drawn, or no longer. @param {Head} head */
export function pickHead(head) {
  const rest = picked.value.filter((p) => nameOf(p) !== nameOf(head));
  picked.value = rest.length < picked.value.length ? rest : [...rest, head].slice(-MOST);
}

/** @param {number | null} score */
function colour(score) {
  const table = pixels(RISING.value, 101), c = table[Math.round(100 * Math.min(1, Math.max(0, score ?? 0)))];
  return `rgb(${c & 255} ${(c >> 8) & 255} ${(c >> 16) & 255})`;
}

/** Arrow keys go from head to head. @param {KeyboardEvent} e @param {Head} at */
function key(e, [layer, head]) {
  /** @type {Record<string, Head>} */
  const to = { ArrowUp: [layer, head - 1], ArrowDown: [layer, head + 1], ArrowLeft: [layer - 1, head], ArrowRight: [layer + 1, head] };
  if (!to[e.key]) return;
  e.preventDefault();
  e.stopPropagation();
  const grid = /** @type {HTMLElement} */ (e.currentTarget).parentElement;
  const next = grid?.querySelector(`[data-head="${nameOf(to[e.key])}"]`);
  if (next instanceof HTMLElement) next.focus();
}

/** @param {{kind: Kind, of: HeadScores, first: boolean}} props */
function Cell({ kind, of, first }) {
  const head = headOf(of.head), tabbed = pointed.value === null ? first : pointed.value === of.head;
  return html`<button class="head-cell" data-head=${of.head} data-testid=${`${kind}-${of.head}`} tabindex=${tabbed ? 0 : -1} aria-pressed=${isPicked(head)}
    aria-label=${`${of.head}: ${TITLES[kind]} ${number(of[kind], 2)}`} style=${{ background: colour(of[kind]), gridColumn: head[0] + 1, gridRow: head[1] + 1 }}
    onClick=${() => pickHead(head)} onKeyDown=${(/** @type {KeyboardEvent} */ e) => key(e, head)}
    onPointerEnter=${() => (pointed.value = of.head)} onFocus=${() => (pointed.value = of.head)}></button>`;
}

/** @param {{kind: Kind}} props */
function Grid({ kind }) {
  const known = headsSaid.value?.heads ?? [], L = model.value?.layers ?? 1, H = Math.max(1, ...known.map((h) => headOf(h.head)[1]));
  const every = L > 16 ? 5 : 1, shown = (/** @type {number} */ i) => i === 1 || i % every === 0;
  return html`<figure class="heads-of"><figcaption>${TITLES[kind]} <small>layers → heads ↓</small></figcaption>
    <div class="head-grid" style=${{ gridTemplateColumns: `1.6em repeat(${L}, minmax(8px, 34px))`, gridTemplateRows: `1.4em repeat(${H}, 20px)` }} role="group" aria-label=${`${TITLES[kind]} of every head. Arrow keys move, Enter picks.`}>
      ${Array.from({ length: L }, (_, i) => shown(i + 1) && html`<span aria-hidden="true" style=${{ gridColumn: i + 2, gridRow: 1 }}>${i + 1}</span>`)}
      ${Array.from({ length: H }, (_, i) => html`<span aria-hidden="true" style=${{ gridColumn: 1, gridRow: i + 2 }}>${i + 1}</span>`)}
      ${known.map((of, i) => html`<${Cell} key=${of.head} kind=${kind} of=${of} first=${i === 0} />`)}
    </div></figure>`;
}

/** @param {(number | null)[]} values */
const spread = (values) => values.map((v) => number(v, 2)).join(" · ");

function Told() {
  const name = pointed.value ?? nameOf(strongest.value[1] ?? strongest.value[0] ?? [1, 1]), of = headsSaid.value?.heads.find((h) => h.head === name);
  if (!of) return null;
  const copy = copiedSaid.value, recall = copy?.recall.find((r) => r.head === name);
  return html`<dl class="settings told" data-testid="head-told"><dt>head</dt><dd><b>layer ${headOf(name)[0]}, head ${headOf(name)[1]}</b></dd>
    <dt>previous-token score</dt><dd>${number(of.previous)} <small>(${spread(of.previous_seeds)})</small></dd>
    <dt>induction score</dt><dd>${number(of.induction)} <small>(${spread(of.induction_seeds)})</small></dd>
    <dt>copying score</dt><dd data-testid="head-copying">${copy ? number(copy.scores[name]) : "…"} <small>−1 to 1, from eigenvalues</small></dd>
    ${recall && html`<dt>copying recall</dt><dd>${number(recall.raw, 2)} on raw, ${number(recall.effective, 2)} on effective embeddings</dd>`}</dl>`;
}

function Legend() {
  const losses = headsSaid.value?.losses, mean = (/** @type {(number | null)[]} */ of) => number(of.reduce((/** @type {number} */ sum, x) => sum + (x ?? 0), 0) / of.length);
  return html`<div class="heads-key"><div class="colourbar" aria-label="Colours from 0 to 1"><span>0</span>
      <i style=${{ background: `linear-gradient(90deg, ${RISING.value.join(",")})` }}></i><span>1</span></div><small>mean share of attention</small>
    ${losses && html`<small>random tokens that come twice, ${losses.first.length} seeds: loss ${mean(losses.first)} → ${mean(losses.repeat)} nats on the repeat</small>`}</div>`;
}

/** Where the numbers come from. */
export function Provenance() {
  const known = model.value;
  if (!known) return null;
  const edits = state.value?.edits?.length ?? 0;
  return html`<p class="hint" data-testid="provenance"><b>${known.name}</b> · ${known.family}${known.note && html` · <mark>${known.note}</mark>`}${edits > 0 && html` · <mark>${edits} ${edits === 1 ? "edit" : "edits"} in force</mark>`}</p>`;
}

export function Heads() {
  return html`<${Panel} name="heads" title="Heads" note=${atOther.value} tools=${picked.value.length > 0 && html`<button class="quiet" onClick=${() => (picked.value = [])}>pick the strongest</button>`}>
    <${Provenance} />
    ${headsWrong.value && html`<p class="error" data-testid="heads-wrong">${headsWrong}</p>`}
    ${headsSaid.value ? html`<div class="heads-both"><${Grid} kind="previous" /><${Grid} kind="induction" /></div><${Legend} /><${Told} />
      <p class="hint">Point at a head for its numbers; click it to draw its attention below (${MOST} at most).</p>`
      : !headsWrong.value && html`<p class="hint">Measuring all heads…</p>`}
  <//>`;
}
