/**
 * What the cell under the crosshair says. The number of the picture is shown at once, the exact answer when it comes.
 * @import { CellAsked, CellSaid } from "./protocol.js"
 */
import { effect, signal } from "@preact/signals";
import { find } from "./frames.js";
import { html, number, percent } from "./html.js";
import { hover } from "./matrix.js";
import { valueAt } from "./protocol.js";
import { reading } from "./sequence.js";
import { latest } from "./source.js";
import { aboutSeen, link, say, seen, subtracted } from "./store.js";

/** @type {import("@preact/signals").Signal<{cell: CellSaid, of: CellAsked} | null>} */
const exact = signal(null);
/** @type {(question: CellAsked) => void} */
const askCell = latest((reply, question) => {
  if (reply.t !== "cell") return;
  exact.value = { cell: reply, of: /** @type {CellAsked} */ (question) };
  if (hover.value?.byKey) say(`${reply.key} to ${reply.value}: score ${number(reply.score)}, rank ${reply.rank}`);
});

effect(() => {
  const at = hover.value;
  if (!at || !seen.value.run || link.value !== "open" || at.picture.startsWith("attention:")) return;
  askCell({ t: "cell", ...seen.value, run: seen.value.run, picture: at.picture, row: at.row, column: at.column, minus: subtracted.value?.step ?? null, minus_run: subtracted.value?.run ?? null });
});

/** @param {import("./matrix.js").Hover} at */
function OfMemory({ picture, row, column }) {
  const frame = find(picture), known = aboutSeen.value?.pictures.find((p) => p.name === picture), of = exact.value?.of;
  const fits = of && of.run === seen.value.run && of.picture === picture && of.row === row && of.column === column;
  const cell = fits ? exact.value?.cell : null;
  const rough = frame ? valueAt(frame, row, column) : null;
  return html`<p><b>${cell?.key ?? known?.rows[row] ?? row}</b> → <b>${cell?.value ?? known?.columns[column] ?? column}</b></p>
    <dl>
      <dt>score</dt><dd>${number(cell?.score ?? rough)}${cell?.within ? html` <small>± ${number(cell.within, 1)}</small>` : ""}</dd>
      <dt>rank</dt><dd>${cell?.rank ?? "…"}</dd>
      <dt>margin</dt><dd>${cell ? number(cell.margin) : "…"}</dd>
      <dt>best</dt><dd>${cell?.best ?? "…"}</dd>
    </dl>`;
}

/** @param {import("./matrix.js").Hover} at */
function OfAttention({ picture, row, column }) {
  const frame = find(picture), marks = reading.value?.marks ?? [];
  if (!frame || row >= frame.shape[0] || column >= frame.shape[1]) return null;
  const value = valueAt(frame, row, column);
  if (column > row && !value) return html`<p><b>${marks[column]}</b> at ${column + 1} comes later than ${row + 1}: it cannot be seen</p>`;
  return html`<p><b>${marks[row]}</b> at ${row + 1} looks at <b>${marks[column]}</b> at ${column + 1}</p>
    <dl><dt>weight</dt><dd>${frame.minus === null ? percent(value) : number(value)}</dd></dl>`;
}

export function Tooltip() {
  const at = hover.value;
  if (!at) return null;
  const right = at.x > innerWidth - 240, low = at.y > innerHeight - 160;
  const style = {
    transform: `translate(${right ? "calc(-100% - 14px)" : "14px"}, ${low ? "calc(-100% - 14px)" : "14px"})`,
    left: `${at.x}px`, top: `${at.y}px`,
  };
  return html`<div class="tooltip" data-testid="matrix-tooltip" role="tooltip" style=${style}>
    ${at.picture.startsWith("attention:") ? OfAttention(at) : OfMemory(at)}</div>`;
}
