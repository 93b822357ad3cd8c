/** All facts of a run in a table: what is believed of each, and which is about to break. @import { Fact } from "./protocol.js" */
import { computed, signal } from "@preact/signals";
import { atOther } from "./between.js";
import { FactForms } from "./rewriting.js";
import { chosen, facts, said, weakest, wrong } from "./facts.js";
import { html, number, percent, refusal, typing, useRef, useSignal } from "./html.js";
import { Panel } from "./panel.js";

const HIGH = 30, MOST = 500, SPARE = 12; // pixels of a row; rows that are all there; rows drawn beyond both edges
const GLYPHS = ["○", "◔", "◑", "●"];
const sorted = signal(/** @type {{by: keyof Fact, down: boolean}} */ ({ by: "margin", down: false }));
export const search = signal("");

/** @param {Fact} f */
const textOf = (f) => [f.subject, f.relation, f.answer, f.guess, said.value?.stages[f.stage]].join(" ").toLowerCase();

/** What has no number comes last. @param {Fact} a @param {Fact} b */
function order(a, b) {
  const { by, down } = sorted.value, x = a[by], y = b[by];
  if (x === null || y === null) return Number(x === null) - Number(y === null) || a.i - b.i;
  const less = typeof x === "string" ? x.localeCompare(String(y)) : x - Number(y);
  return (down ? -less : less) || a.i - b.i;
}

const shown = computed(() => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  return facts.value.filter((f) => words.every((word) => textOf(f).includes(word))).sort(order);
});

/** @param {keyof Fact} by */
function sortBy(by) {
  sorted.value = { by, down: sorted.value.by === by ? !sorted.value.down : ["p", "frequency"].includes(by) };
}

/** @param {Fact} f */
const learnedAt = (f) => (f.learned === null ? "–" : f.after === null ? `≤ ${f.learned}` : `(${f.after}, ${f.learned}]`);

/** @param {{f: Fact, at: number}} props */
function Row({ f, at }) {
  const stage = said.value?.stages[f.stage] ?? "", weak = weakest.value?.i === f.i, right = f.guess === f.answer;
  const name = `${f.subject}, ${f.relation}`;
  return html`<tr data-fact=${f.i} data-stage=${f.stage} aria-rowindex=${at + 2} aria-selected=${chosen.value === f.i} class=${weak ? "weak" : ""} onClick=${() => (chosen.value = f.i)}>
    <td><button class="quiet pick" aria-label=${`Choose ${name}`} aria-pressed=${chosen.value === f.i}>${f.subject}</button></td><td>${f.relation}</td><td>${f.answer}</td>
    <td><span class="stage" data-stage=${f.stage} title=${stage}><i aria-hidden="true">${GLYPHS[f.stage]}</i>${right ? "" : html`<b>${f.guess}</b>, `}${stage}</span></td>
    <td>${percent(f.p)}</td><td>${number(f.margin)}${weak && html` <mark>breaks first</mark>`}</td><td>${learnedAt(f)}</td>
    <td title=${f.own === null ? "" : `own part ${number(f.own)}, over ${f.rival}`}>${number(f.interference)}</td><td>${percent(f.frequency)}</td></tr>`;
}

function Head() {
  return html`<thead><tr>${said.value?.columns.map(([key, title, hint]) => {
    const mine = sorted.value.by === key;
    return html`<th key=${key} aria-sort=${mine ? (sorted.value.down ? "descending" : "ascending") : "none"}>
      <button class="quiet" title=${hint} data-testid=${`sort-${key}`} onClick=${() => sortBy(key)}>${title}<span aria-hidden="true">${mine ? (sorted.value.down ? " ↓" : " ↑") : ""}</span></button></th>`;
  })}</tr></thead>`;
}

/** Above so many rows only those in sight are there. */
function Table() {
  const top = useSignal(0), box = /** @type {{current: HTMLElement | null}} */ (useRef(null));
  const all = shown.value, many = all.length > MOST, room = Math.ceil((box.current?.clientHeight ?? 440) / HIGH);
  const first = many ? Math.max(0, Math.min(Math.floor(top.value / HIGH) - SPARE, all.length - 1)) : 0, end = many ? Math.min(all.length, first + room + 2 * SPARE) : all.length;
  return html`<div class="scroll facts-scroll" ref=${box} tabindex="0" role="region" aria-label="Table of facts" onScroll=${(/** @type {any} */ e) => (top.value = e.target.scrollTop)}>
    <table class="facts" data-testid="facts" aria-rowcount=${all.length + 1}><${Head} /><tbody>
      ${first > 0 && html`<tr aria-hidden="true" style=${{ height: `${first * HIGH}px` }}></tr>`}
      ${all.slice(first, end).map((f, k) => html`<${Row} key=${f.i} f=${f} at=${first + k} />`)}
      ${end < all.length && html`<tr aria-hidden="true" style=${{ height: `${(all.length - end) * HIGH}px` }}></tr>`}</tbody></table>
    ${!all.length && html`<p class="hint">No fact matches.</p>`}</div>`;
}

/** How many facts are at each stage, and which learned one is the nearest to being lost. */
function Summary() {
  const t = said.value, weak = weakest.value;
  if (!t) return null;
  const count = t.stages.map((_, stage) => facts.value.filter((f) => f.stage === stage).length);
  return html`<p class="stages" data-testid="facts-stages">${t.stages.map((name, i) => html`<span key=${name} class="stage" data-stage=${i}><i aria-hidden="true">${GLYPHS[i]}</i>${count[i]} ${name}</span>`).reverse()}
      <small>of ${facts.value.length} facts at step ${t.step}</small></p>
    ${weak && html`<p data-testid="weakest">Nearest to breaking: <button class="quiet" onClick=${() => (chosen.value = weak.i)}>(${weak.subject}, ${weak.relation}) → ${weak.answer}</button>
      <small>margin ${number(weak.margin)} over ${weak.rival}</small></p>`}`;
}

const Search = () => html`<input type="text" placeholder="search" aria-label="Search in the facts" data-testid="facts-search" maxlength="200" ...${typing(search)} />`;

export function FactsBench() {
  const t = said.value;
  return html`<${Panel} name="facts" title="Facts" note=${atOther.value} tools=${t && html`<${Search} />`}>
    ${refusal(wrong, "facts-wrong")}
    ${t ? html`<${Summary} /><${Table} />
      <p class="hint">${t.pending > 0 && html`<span data-testid="facts-pending">Stored steps still to be looked at: ${t.pending}. </span>`}${t.rule}.</p><${FactForms} />`
      : !wrong.value && html`<p class="hint">Asking about all facts…</p>`}
  <//>`;
}
