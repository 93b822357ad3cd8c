/** What comes next at each position, and which part of the model says so. @import { Reading } from "./sequence.js" */
import { colourOf } from "./colours.js";
import { html, number, percent, useEffect, useRef, useSignal } from "./html.js";
import { chosen, partName, partsAt, query, reading } from "./sequence.js";

const HIGH = 27, WINDOW = 12, AROUND = 2; // pixels of a row, as in theme.css; rows in the window, and beyond it

/** Parts that speak for the prediction stand to the right of the line, those against it to the left. @param {{parts: Record<string, number>, least: number, most: number}} props */
function Split({ parts, least, most }) {
  const span = most - least || 1;
  let right = 0, left = 0;
  const bars = Object.entries(parts).map(([part, share], i) => {
    const from = share >= 0 ? right : left + share;
    if (share >= 0) right += share;
    else left += share;
    const style = { left: `${(100 * (from - least)) / span}%`, width: `${(100 * Math.abs(share)) / span}%`, background: colourOf(part, i) };
    return html`<i key=${part} style=${style}></i>`;
  });
  const text = Object.entries(parts).map(([part, share]) => `${partName(part)} ${number(share, 2)}`).join(", ");
  return html`<div class="split" role="img" aria-label=${text} title=${text}>${bars}
    <u style=${{ left: `${(-100 * least) / span}%` }}></u></div>`;
}

/** Whether it is told which part says what. @param {Reading} said */
const parted = (said) => Object.keys(said.parts).length > 0;

/** One scale for all rows. @param {Reading} said @param {number[]} positions */
function span(said, positions) {
  let least = 0, most = 0;
  for (const t of positions) {
    const shares = Object.values(partsAt(said, t));
    most = Math.max(most, shares.reduce((sum, x) => sum + Math.max(0, x), 0));
    least = Math.min(least, shares.reduce((sum, x) => sum + Math.min(0, x), 0));
  }
  return { least, most };
}

/** @param {{said: Reading, t: number, place: number, least: number, most: number}} props */
function Row({ said, t, place, least, most }) {
  const right = said.right[t], p = said.probabilities[t], mine = t === query.value;
  return html`<tr aria-rowindex=${place} aria-current=${mine} data-position=${t} onClick=${() => (chosen.value = t)}>
    <td>${t + 1}</td><td class="token">${said.marks[t]}</td>
    <td class="token">${right ?? ""} <small>${right === null ? "" : percent(p)}</small></td>
    <td class="guesses" title=${said.predictions[t].map((g) => `${g.mark} ${percent(g.p)}`).join(" · ")}>${said.predictions[t].map((g, i) => html`<span key=${i} class=${g.mark === right ? "hit" : ""}>
      <b>${g.mark}</b> <small>${percent(g.p)}</small></span>`)}</td>
    ${parted(said) && html`<td class="where"><${Split} parts=${partsAt(said, t)} least=${least} most=${most} /></td>`}
  </tr>`;
}

/** @param {{said: Reading}} props */
function Key({ said }) {
  const parts = Object.keys(partsAt(said, 0));
  return html`<div class="legend parts">${parts.map((part, i) => html`<span key=${part}>
    <i style=${{ background: colourOf(part, i) }} aria-hidden="true"></i>${partName(part)}</span>`)}</div>`;
}

/** Of a long table only the rows near the window are there. @param {{said: Reading, positions: number[]}} props */
function Table({ said, positions }) {
  const box = /** @type {{current: HTMLDivElement | null}} */ (useRef(null)), first = useSignal(0);
  const look = () => (first.value = Math.max(0, Math.floor((box.current?.scrollTop ?? 0) / HIGH) - AROUND));
  useEffect(() => { // scrollIntoView would move the whole page
    if (box.current) box.current.scrollTop = HIGH * Math.round(positions.indexOf(query.value) + 1 - box.current.clientHeight / 2 / HIGH); // whole rows
    look();
  }, [query.value, positions.length]);
  const near = positions.slice(first.value, first.value + WINDOW + 2 * AROUND), ends = span(said, positions);
  const gap = (/** @type {number} */ rows) => rows > 0 && html`<tr class="gap" aria-hidden="true" style=${{ height: `${rows * HIGH}px` }}></tr>`;
  return html`<div class="scroll" tabindex="0" ref=${box} onScroll=${look} role="region" aria-label="Predictions by position">
    <table class=${parted(said) ? "" : "words"} aria-rowcount=${positions.length + 1}>
    <thead><tr aria-rowindex="1"><th>at</th><th>token</th><th>${said.asks === "next" ? "came next" : "right answer"}</th><th>likeliest</th>${parted(said) && html`<th>from where</th>`}</tr></thead>
    <tbody>${gap(first.value)}${near.map((t, i) => html`<${Row} key=${t} said=${said} t=${t} place=${first.value + i + 2} ...${ends} />`)}
      ${gap(positions.length - first.value - near.length)}</tbody>
  </table></div>`;
}

export function Predictions() {
  const all = useSignal(false), said = reading.value, asked = said?.asked ?? [];
  if (!said) return null;
  const positions = all.value || !asked.length ? said.tokens.map((_, t) => t) : [...new Set([...asked, query.value])].sort((a, b) => a - b);
  return html`<div class="predictions" data-testid="predictions">
    <div class="line"><h3>Predictions</h3><${Key} said=${said} />
      ${asked.length > 0 && html`<label class="check"><input type="checkbox" checked=${all.value}
        onChange=${() => (all.value = !all.value)} /> all positions</label>`}</div>
    <${Table} said=${said} positions=${positions} />
  </div>`;
}
