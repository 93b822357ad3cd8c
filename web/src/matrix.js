/**
 * A matrix on a canvas, with a crosshair that mouse and arrow keys move.
 * @import { Frame } from "./protocol.js"
 * @import { Cell, Marks, Place, Scale } from "./paint.js"
 */
import { signal } from "@preact/signals";
import { momentOf } from "./compare.js";
import { arrived, find, sequenceOf } from "./frames.js";
import { html, useEffect, useRef, useSignal, useSignalEffect } from "./html.js";
import { cellAt, layout, paint } from "./paint.js";
import { model } from "./store.js";
import { dark } from "./theme.js";

/** What decides how a picture looks; `dark` and `again` (other props) are only compared. @typedef {{frame: Frame, how: {scale: Scale, place: Place, marks: Marks, cross: Cell | null, dark: boolean, again: number}}} Plan */
/** @typedef {Cell & {picture: string, x: number, y: number, byKey: boolean}} Hover */

/** The cell that is pointed at, on whichever matrix. @type {import("@preact/signals").Signal<Hover | null>} */
export const hover = signal(null);

/** What is on each canvas now, for the tests. @type {Map<string, {step: number, shape: [number, number], lo: number, hi: number, count: number}>} */
export const drawn = new Map();

/** @param {Frame} frame */
function count({ picture, step, shape, lo, hi }) {
  drawn.set(picture, { step, shape, lo, hi, count: (drawn.get(picture)?.count ?? 0) + 1 });
}

/** Heads share a crosshair, memories do not. @param {string} a @param {string} b */
const together = (a, b) => a === b || (a.startsWith("attention:") && b.startsWith("attention:"));

/** @param {Plan} plan @param {Plan | null} other */
const alike = (plan, other) => plan.frame === other?.frame && JSON.stringify(plan.how) === JSON.stringify(other.how);

/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * Draws when what it reads has changed, and not again what would look the same. Signals call once a frame at most.
 * @param {() => Plan | null | "nothing"} plan nothing: what is there must go @param {(plan: Plan) => void} draw @param {() => void} wipe
 */
function useDrawing(plan, draw, wipe) {
  const before = /** @type {{current: Plan | null}} */ (useRef(null));
  useSignalEffect(() => {
    const next = plan();
    if (next === "nothing") {
      before.current = null;
      wipe();
      return;
    }
    if (!next || alike(next, before.current)) return;
    before.current = next;
    draw(next);
  });
}

/**
 * @param {{picture: string, label: string, marks: (frame: Frame) => Marks, scale: (frame: Frame) => Scale,
 *   room?: number, pick?: (cell: Cell) => void}} props room: no wider than this, in CSS pixels
 */
export function Matrix({ picture, label, marks, scale, room = Infinity, pick }) {
  const holder = /** @type {{current: HTMLDivElement | null}} */ (useRef(null));
  const canvas = /** @type {{current: HTMLCanvasElement | null}} */ (useRef(null));
  const small = /** @type {{current: HTMLCanvasElement | null}} */ (useRef(null));
  const shown = /** @type {{current: {frame: Frame, place: Place, of: string} | null}} */ (useRef(null));
  const width = useSignal(0), caption = useSignal(""), again = useSignal(0);

  useDrawing(() => {
    void arrived.value;
    const of = sequenceOf(picture), before = shown.current;
    const frame = find(picture) ?? (before?.of === of ? before.frame : undefined);
    if (!frame && before) return "nothing"; // that of another sequence
    if (!frame || !canvas.current || !width.value) return null;
    const labels = marks(frame), place = layout(frame, Math.min(room, width.value), labels), at = hover.value;
    const cross = at && together(at.picture, picture) ? { row: at.row, column: at.column } : null;
    return { frame, how: { scale: scale(frame), place, marks: labels, cross, dark: dark.value, again: again.value } };
  }, ({ frame, how }) => {
    shown.current = { frame, place: how.place, of: sequenceOf(picture) };
    caption.value = model.peek()?.revisions === 1 ? "" : momentOf(frame);
    if (canvas.current) paint(canvas.current, (small.current ??= document.createElement("canvas")), frame, how);
    count(frame);
  }, () => {
    shown.current = null;
    caption.value = "";
    drawn.delete(picture);
    canvas.current?.getContext("2d")?.clearRect(0, 0, canvas.current.width, canvas.current.height);
  });
  useEffect(() => void again.value++, [room, marks]);
  useEffect(() => {
    const sizes = new ResizeObserver(() => (width.value = holder.current?.clientWidth ?? 0));
    if (holder.current) sizes.observe(holder.current);
    return () => {
      sizes.disconnect();
      drawn.delete(picture);
    };
  }, [picture]);

  /** @param {PointerEvent} e */
  const point = (e) => {
    if (!shown.current) return;
    const cell = cellAt(shown.current.frame, shown.current.place, e.offsetX, e.offsetY);
    hover.value = cell && { ...cell, picture, x: e.clientX, y: e.clientY, byKey: false };
  };
  /** @param {KeyboardEvent} e */
  const key = (e) => {
    const now = shown.current, by = ARROWS[e.key];
    if (e.key === "Escape") hover.value = null;
    if (e.key === "Enter" && hover.value) pick?.(hover.value);
    if (!by || !now || !canvas.current) return;
    e.preventDefault();
    e.stopPropagation();
    hover.value = moved(now.frame, now.place, canvas.current, picture, by, e.shiftKey ? 10 : 1);
  };
  return html`<div class="matrix" ref=${holder}>
    <canvas ref=${canvas} data-testid=${picture} tabindex="0" role="application"
      aria-label=${`${label}. Arrow keys move the crosshair.`} width="1" height="1"
      onPointerMove=${point} onPointerLeave=${() => (hover.value = null)} onKeyDown=${key} onBlur=${() => (hover.value = null)}
      onClick=${() => hover.value && pick?.(hover.value)}></canvas>
    <small class="atstep">${caption}</small>
  </div>`;
}

/** @param {Frame} frame @param {Place} place @param {HTMLCanvasElement} canvas @param {string} picture @param {[number, number]} by @param {number} times @returns {Hover} */
function moved(frame, place, canvas, picture, by, times) {
  const at = hover.value && together(hover.value.picture, picture) ? hover.value : { row: -by[0] * times, column: -by[1] * times };
  const inside = (/** @type {number} */ x, /** @type {number} */ size) => Math.min(size - 1, Math.max(0, x));
  const row = inside(at.row + by[0] * times, frame.shape[0]), column = inside(at.column + by[1] * times, frame.shape[1]);
  const box = canvas.getBoundingClientRect();
  const x = box.left + place.left + (column + 0.5) * place.cell, y = box.top + place.top + (row + 0.5) * place.cell;
  return { row, column, picture, x, y, byKey: true };
}
