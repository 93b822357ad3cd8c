/** Which earlier head feeds the keys of the strongest induction heads: in the weights, and by cutting. @import { ComposeSaid } from "./protocol.js" */
import { accent, colourOf, ink, muted } from "./colours.js";
import { html, number, percent } from "./html.js";
import { Panel } from "./panel.js";
import { pickHead } from "./heads.js";
import { composed, composedSaid, headOf, headsSaid } from "./probing.js";

const WIDE = 420, HIGH = 34, LEFT = 96, RIGHT = WIDE - 96, LEAST = 0.02; // the least recall drawn

/** @param {ComposeSaid} said */
function edgesOf(said) {
  return said.readers.flatMap((r) => r.partners.filter((p) => (p.recall ?? 0) >= LEAST).map((p) => ({ reader: r.reader, ...p })));
}

/** Two decimals: what is next to nothing is 0.00. @param {number | null | undefined} x */
const score = (x) => (x === null || x === undefined ? "–" : x.toFixed(2));

/** How much of a reader's induction is gone when this writer is cut from keys; null where it was not cut. @param {ComposeSaid} said @param {string} writer @param {string} reader */
function lost(said, writer, reader) {
  const cut = said.keys_without.find((c) => c.writer === writer), whole = headsSaid.value?.heads.find((h) => h.head === reader)?.induction;
  const left = cut?.induction[reader];
  return left === undefined || left === null || !whole ? null : Math.max(0, 1 - left / whole);
}

/** @param {{name: string, x: number, y: number, end: boolean}} props */
function Node({ name, x, y, end }) {
  return html`<g class="node" role="button" tabindex="0" aria-label=${`${name}: draw its attention`} onClick=${() => pickHead(headOf(name))}
    onKeyDown=${(/** @type {KeyboardEvent} */ e) => e.key === "Enter" && pickHead(headOf(name))}>
    <circle cx=${x} cy=${y} r="5" fill=${accent.value} /><text x=${end ? x + 11 : x - 11} y=${y + 4} text-anchor=${end ? "start" : "end"} fill=${ink.value}>${name}</text></g>`;
}

/** @param {{said: ComposeSaid}} props */
function Graph({ said }) {
  const edges = edgesOf(said), readers = said.readers.map((r) => r.reader);
  const writers = [...new Set(edges.map((e) => e.writer))].sort((a, b) => headOf(a)[0] - headOf(b)[0] || headOf(a)[1] - headOf(b)[1]);
  const tall = HIGH * Math.max(writers.length, readers.length, 1) + 26, at = (/** @type {string[]} */ of, /** @type {string} */ name) => 26 + (tall - 26) * ((of.indexOf(name) + 0.5) / of.length);
  return html`<svg class="graph" viewBox=${`0 0 ${WIDE} ${tall}`} data-testid="composition-graph" role="group" aria-label="Writers on the left, the keys that read them on the right">
    <text x=${LEFT} y="12" text-anchor="middle" fill=${muted.value}>writes</text><text x=${RIGHT} y="12" text-anchor="middle" fill=${muted.value}>finds it by keys</text>
    ${edges.map((e) => {
      const gone = lost(said, e.writer, e.reader), y = at(writers, e.writer), z = at(readers, e.reader), causal = gone !== null && gone > 0.5;
      return html`<path key=${`${e.writer}${e.reader}`} d=${`M${LEFT},${y} C${WIDE / 2},${y} ${WIDE / 2},${z} ${RIGHT},${z}`} fill="none" stroke=${colourOf("", causal ? 1 : 0)}
        stroke-dasharray=${causal || gone === null ? "" : "4 3"} stroke-width=${0.5 + 6 * (e.recall ?? 0)} opacity=${0.3 + 0.7 * (e.recall ?? 0)}>
        <title>${e.writer} → ${e.reader}: recall ${number(e.recall, 2)}${gone === null ? "" : `; cut, ${percent(gone)} of its induction is gone`}</title></path>`;
    })}
    ${writers.map((name) => html`<${Node} key=${name} name=${name} x=${LEFT} y=${at(writers, name)} end=${false} />`)}
    ${readers.map((name) => html`<${Node} key=${name} name=${name} x=${RIGHT} y=${at(readers, name)} end=${true} />`)}</svg>`;
}

/** @param {{said: ComposeSaid}} props */
function Cuts({ said }) {
  const readers = said.readers.map((r) => r.reader);
  return html`<div class="scroll"><table class="cuts"><caption>Induction score when no key sees what a head wrote</caption>
    <thead><tr><th>without</th>${readers.map((r) => html`<th key=${r}>${r}</th>`)}<th>gain left</th></tr></thead>
    <tbody><tr><td>nothing</td>${readers.map((r) => html`<td key=${r}>${score(headsSaid.value?.heads.find((h) => h.head === r)?.induction)}</td>`)}<td>100 %</td></tr>
      ${said.keys_without.map((c) => html`<tr key=${c.writer}><td>${c.writer}</td>${readers.map((r) => html`<td key=${r}>${score(c.induction[r])}</td>`)}
      <td>${percent(c.gain_left)}</td></tr>`)}</tbody></table></div>`;
}

function Key() {
  return html`<div class="legend parts"><span><i style=${{ background: colourOf("", 1) }}></i>cut: over half of the induction is gone</span>
    <span><i style=${{ background: colourOf("", 0) }}></i>in the weights; dashed: cut, and little is gone</span></div>`;
}

export function Composition() {
  const said = composedSaid.value, wrong = composed.value?.error;
  return html`<${Panel} name="composition" title="Composition">
    ${wrong && html`<p class="error">${wrong}</p>`}
    ${!said && !wrong && html`<p class="hint">Looking for the heads that induction heads read…</p>`}
    ${said && (said.readers.length ? html`<${Graph} said=${said} /><${Key} /><p class="hint">Width: recall of the memory W_K2 on ${said.tokens} tokens.</p><${Cuts} said=${said} />`
      : html`<p class="hint">No head has a layer before it.</p>`)}
  <//>`;
}
