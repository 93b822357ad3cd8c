/**
 * The circuit: parts and memories by columns, who reads whom, and what a change of one of them does.
 * @import { CircuitEdge, CircuitNode, CircuitSaid } from "./protocol.js"
 */
import { effect } from "@preact/signals";
import { atOther } from "./between.js";
import { colourOf, ground, ink, muted } from "./colours.js";
import { html, number } from "./html.js";
import { inquiry } from "./inquiry.js";
import { Panel } from "./panel.js";
import { part } from "./store.js";
import { chosen, keyOf, select, Trial } from "./trial.js";

const WIDE = 124, TALL = 76, GAP = 30, ABOVE = 24, BETWEEN = 16; // pixels of a node, and around it
const PLACES = [0, 1, 5]; // of the colours of lines: read, for the answer, against it
const LITTLE = 0.01, FEW = 4; // what is next to nothing; more lines of that kind are left out

/** @type {import("@preact/signals").ReadonlySignal<{said: CircuitSaid | null, error: string} | null>} */
export const circuitSaid = inquiry("circuit", (of) => ({ t: "circuit", ...of }));

effect(() => { // what a link names is chosen once it is there
  const said = circuitSaid.value?.said, key = part.value;
  if (!said || chosen.value || !key) return;
  const node = said.nodes.find((n) => keyOf(n) === key), edge = said.edges.find((e) => keyOf(e) === key);
  const end = (/** @type {string | undefined} */ name) => said.nodes.find((n) => n.name === name);
  if (node ?? edge) select(/** @type {CircuitNode | CircuitEdge} */ (node ?? edge), end(edge?.from), end(edge?.to));
});

/** @typedef {{node: CircuitNode, x: number, y: number}} Placed */

/** Every node in its column, columns centred. @param {CircuitNode[]} nodes */
function layout(nodes) {
  const columns = [...new Set(nodes.map((n) => n.column))].sort((a, b) => a - b).map((c) => nodes.filter((n) => n.column === c));
  const rows = Math.max(...columns.map((c) => c.length)), room = rows * TALL + (rows - 1) * BETWEEN;
  const placed = columns.flatMap((column, i) => {
    const top = ABOVE + (room - column.length * TALL - (column.length - 1) * BETWEEN) / 2;
    return column.map((node, j) => ({ node, x: i * (WIDE + GAP) + 2, y: top + j * (TALL + BETWEEN) }));
  });
  return { placed: new Map(placed.map((p) => [p.node.name, p])), width: columns.length * (WIDE + GAP) - GAP + 4, floor: ABOVE + room };
}

/** From side to side where nothing stands between, else below all others. @param {Placed} from @param {Placed} to @param {number} floor */
function path(from, to, floor) {
  const near = to.node.column - from.node.column <= 2;
  const [x, y, z, w] = near ? [from.x + WIDE, from.y + TALL / 2, to.x, to.y + TALL / 2] : [from.x + WIDE / 2, from.y + TALL, to.x + WIDE / 2, to.y + TALL];
  const deep = floor + 10 + 7 * (to.node.column - from.node.column);
  return near ? `M${x},${y} C${(x + z) / 2},${y} ${(x + z) / 2},${w} ${z},${w}` : `M${x},${y} C${x},${deep} ${z},${deep} ${z},${w}`;
}

/** What an edge is worth: to a reader what cutting it costs, to the answer its share of the lead. @param {CircuitEdge} e */
const strength = (e) => e.cut ?? e.attribution ?? 0;

/** @param {KeyboardEvent} e @param {() => void} does */
function pressed(e, does) {
  if (e.key !== "Enter" && e.key !== " ") return;
  e.preventDefault();
  does();
}

/** What makes a shape of the drawing a button; its title names it. @param {string} key @param {() => void} does */
const button = (key, does) => ({ role: "button", tabindex: 0, "aria-pressed": chosen.value?.key === key, "data-testid": key,
  onClick: does, onKeyDown: (/** @type {KeyboardEvent} */ e) => pressed(e, does) });

/** @param {{e: CircuitEdge, from: Placed, to: Placed, floor: number, most: number, written: boolean}} props */
function Edge({ e, from, to, floor, most, written }) {
  const s = strength(e), d = path(from, to, floor), little = Math.abs(s) < LITTLE, reads = e.attribution === null;
  const title = `${from.node.title} → ${to.node.title}: ${e.words}`, x = (from.x + WIDE + to.x) / 2;
  const colour = colourOf("", PLACES[reads ? 0 : s < 0 ? 2 : 1]);
  return html`<g class="edge" ...${button(keyOf(e), () => select(e, from.node, to.node))}><title>${title}</title>
    <path class="hit" d=${d} /><path class="line" d=${d} stroke=${colour} stroke-dasharray=${little ? "4 4" : ""} stroke-width=${0.8 + 6 * Math.min(1, Math.abs(s) / most)}
      opacity=${little ? 0.45 : 0.85} />
    ${written && reads && e.cut !== null && html`<text x=${x} y=${(from.y + to.y) / 2 - 6} fill=${muted.value} stroke=${ground.value} class="halo">cut: ${e.cut.toFixed(2)}</text>`}</g>`;
}

/** @param {{p: Placed}} props */
function Node({ p }) {
  const { node: n, x, y } = p, still = n.kind === "answer", top = y + TALL / 2 + 5 - 8 * n.lines.length;
  const shape = { class: `box ${n.kind}${n.role ? " confirmed" : ""}`, x, y, width: WIDE, height: TALL, rx: n.kind === "memory" ? 24 : 7 };
  return html`<g class="node" ...${still ? {} : button(keyOf(n), () => select(n))}><title>${n.words}</title>
    <rect ...${shape} /><text x=${x + WIDE / 2} y=${top} class="name" fill=${ink.value}>${n.short}</text>
    ${n.lines.map((line, i) => html`<text x=${x + WIDE / 2} y=${top + 16 + 15 * i} fill=${muted.value}>${line}</text>`)}</g>`;
}

/** @param {{said: CircuitSaid}} props */
function Graph({ said }) {
  const { placed, width, floor } = layout(said.nodes), reading = said.edges.filter((e) => e.attribution === null);
  const high = floor + (placed.has("embedding") ? 66 : 8), most = [0.1, 0.1];
  for (const e of said.edges) most[Number(e.attribution === null)] = Math.max(most[Number(e.attribution === null)], Math.abs(strength(e)));
  const edges = said.edges.filter((e) => reading.length <= FEW || Math.abs(strength(e)) >= LITTLE).sort((a, b) => Math.abs(strength(a)) - Math.abs(strength(b)));
  return html`<div class="scroll wide" tabindex="0" role="region" aria-label="The circuit, from left to right">
    <svg class="circuit" viewBox=${`0 0 ${width} ${high}`} style=${{ minWidth: `${0.85 * width}px`, maxWidth: `${width}px` }} data-testid="circuit-graph" role="group">
    ${edges.map((e) => {
      const from = placed.get(e.from), to = placed.get(e.to);
      return from && to && html`<${Edge} key=${keyOf(e)} e=${e} from=${from} to=${to} floor=${floor} most=${most[Number(e.attribution === null)]} written=${reading.length === 1} />`;
    })}
    ${[...placed.values()].map((p) => html`<${Node} key=${p.node.name} p=${p} />`)}</svg></div>`;
}

function Key() {
  return html`<div class="legend parts circuit-key">${["is read there; width: nats lost when cut", "adds to the right answer", "takes from it"].map((text, i) => html`<span key=${i}><i style=${{ background: colourOf("", PLACES[i]) }}></i>${text}</span>`)}<span>dashed: next to nothing</span></div>`;
}

export function Circuit() {
  const said = circuitSaid.value?.said, wrong = circuitSaid.value?.error || said?.why;
  return html`<${Panel} name="circuit" title="Circuit" note=${atOther.value}>
    ${(wrong || !said) && html`<p class="hint">${wrong || "Measuring every part…"}</p>`}
    ${said && !said.why && html`<${Graph} said=${said} /><${Key} />
      <p class="hint">Step ${said.step}, ${said.sequences} unseen sequences, ${said.positions} positions: loss ${number(said.loss)}. <b>Adds</b>: to the right answer’s logit, above the mean; <b>worth</b>: nats lost without it. Choose a part or a line to change it.</p><${Trial} />`}
  <//>`;
}
