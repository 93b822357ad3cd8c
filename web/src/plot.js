/** Lines in a small frame of their own, where no step is chosen. */
import { html } from "./html.js";

const WIDE = 460, LEFT = 44, RIGHT = 22, ABOVE = 6, BELOW = 34; // pixels

/** @typedef {[at: number, text: string]} Tick */

/** Evenly spaced numbers from one end to the other, each once. @param {number} from @param {number} to @param {number} [parts] */
export const even = (from, to, parts = 4) => [...new Set(Array.from({ length: parts + 1 }, (_, i) => Math.round(from + ((to - from) * i) / parts)))];

/**
 * @param {{label: string, testid: string, under: string, high: number, x: [number, number], y: [number, number], xs: Tick[], ys: Tick[],
 *   lines: {points: [number, number][], colour: string, width: number}[], at?: number}} props under: what the x axis shows; at: a place that is marked
 */
export function Plot({ label, testid, under, high, x, y, xs, ys, lines, at }) {
  const px = (/** @type {number} */ v) => LEFT + ((WIDE - LEFT - RIGHT) * (v - x[0])) / (x[1] - x[0] || 1), floor = high - BELOW;
  const py = (/** @type {number} */ v) => ABOVE + ((floor - ABOVE) * (y[1] - v)) / (y[1] - y[0] || 1);
  return html`<svg class="plot" viewBox=${`0 0 ${WIDE} ${high}`} role="img" aria-label=${label} data-testid=${testid}>
    ${ys.map(([v, text]) => html`<line x1=${LEFT} x2=${WIDE - RIGHT} y1=${py(v)} y2=${py(v)} /><text x=${LEFT - 6} y=${py(v) + 4} text-anchor="end">${text}</text>`)}
    ${xs.map(([v, text]) => html`<text x=${px(v)} y=${floor + 14}>${text}</text>`)}<text x=${(LEFT + WIDE) / 2} y=${high - 3}>${under}</text>
    ${at !== undefined && html`<line class="at" x1=${px(at)} x2=${px(at)} y1=${ABOVE} y2=${floor} />`}
    ${lines.map((l, i) => html`<path key=${i} d=${`M${l.points.map(([a, b]) => `${px(a).toFixed(1)},${py(b).toFixed(1)}`).join("L")}`} stroke=${l.colour} stroke-width=${l.width} />`)}</svg>`;
}
