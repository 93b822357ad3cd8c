/**
 * Curves over the steps: what a run adds to them, and the hand on them. Drawn anew when the curves change, fed when rows come.
 * @import { Level, Mark } from "./protocol.js"
 * @import { Band, Line, Range, Table } from "./plane.js"
 */
import { effect } from "@preact/signals";
import { scrubTo } from "./actions.js";
import { faint, ground, muted } from "./colours.js";
import { number } from "./html.js";
import { Plane } from "./plane.js";
import { curvesEnd, end, held, pointed } from "./store.js";
import { brushing, whole, zoomed, zoomTo } from "./zoom.js";

/**
 * @typedef {Line & {label: string}} Curve
 * @typedef {{curves: Curve[], data: Table, levels: (Level & {colour: string})[], marks: Mark[],
 *   log: boolean, range: [number, number] | null, bands?: Band[]}} Picture
 */
const HUGE = 1e6, ROOM = 4; // of values that an axis can show; of the first value, where others are larger
const FONT = "11px system-ui, sans-serif", SMALL = 10.5; // pixels of the names of levels
const POWERS = [0, 1, 10, 100, 1000, 1e4, 1e5, 1e6];

/** The largest first value of the curves. @param {Table} data */
function firstOf([, ...lines]) {
  const found = lines.map((line) => Math.abs(line.find((y) => y != null) ?? 0));
  return Math.max(1, ...found.filter((y) => y < HUGE));
}

/** With room above, and 0 in it. @param {number} min @param {number} max @param {Table} data @returns {Range} */
function upright(min, max, data) {
  const most = max > HUGE ? ROOM * firstOf(data) : max; // a curve that diverges leaves the picture; what was before is seen
  if (min >= 0 && most <= 0) return { from: 0, to: 1 };
  return { from: Math.min(0, 1.05 * (min < -HUGE ? -most : min)), to: Math.max(0, 1.05 * most) };
}

/** @returns {Range} */
function across() {
  const [from, to] = zoomed.peek() ?? [0, Math.max(1, curvesEnd.peek())];
  return { from, to };
}

/** @param {Range} range */
const logTicks = ({ from, to }) => [...new Set([...(zoomed.peek() ?? []), ...POWERS.filter((s) => s >= from && s <= to)])].sort((a, b) => a - b);

/** @param {number} y */
const short = (y) => number(y).replace("e+", "e");

/** Dashed lines of theory, each with its name; names that would touch step aside. @param {Plane} plane @param {Picture} picture */
function drawLevels(plane, { levels }) {
  const { ctx, box } = plane, d = devicePixelRatio, gap = 12 * d;
  let free = Infinity;
  ctx.save();
  ctx.font = `${SMALL * d}px system-ui, sans-serif`;
  ctx.textBaseline = "alphabetic";
  for (const level of [...levels].sort((a, b) => a.value - b.value)) {
    const y = plane.y(level.value);
    if (y < box.top || y > box.top + box.height + 1) continue;
    free = Math.min(y - 4 * d, free - gap);
    dashed(plane, y, level.colour);
    const left = crowded(plane, free - gap / 2, gap);
    ctx.textAlign = left ? "left" : "right";
    named(ctx, level.name, left ? box.left + 6 * d : box.left + box.width - 6 * d, free, level.colour);
  }
  ctx.restore();
}

/** Whether a curve passes where a name would stand at the right. @param {Plane} plane @param {number} y @param {number} gap */
function crowded(plane, y, gap) {
  const [steps, ...lines] = plane.data, from = Math.floor(0.7 * steps.length);
  return lines.some((line) => line.slice(from).some((v) => v != null && Math.abs(plane.y(v) - y) < gap));
}

/** @param {Plane} plane @param {number} y @param {string} colour */
function dashed({ ctx, box }, y, colour) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(box.left, y);
  ctx.lineTo(box.left + box.width, y);
  ctx.stroke();
}

/** A halo of ground keeps the name legible over curves. @param {CanvasRenderingContext2D} ctx @param {string} text @param {number} x @param {number} y @param {string} colour */
function named(ctx, text, x, y, colour) {
  ctx.setLineDash([]);
  ctx.lineWidth = 4 * devicePixelRatio;
  ctx.lineJoin = "round";
  ctx.strokeStyle = ground.value;
  ctx.strokeText(text, x, y);
  ctx.fillStyle = colour;
  ctx.fillText(text, x, y);
}

/** @param {Plane} plane @param {Picture} picture */
function drawMarks(plane, { marks }) {
  const { ctx, box } = plane;
  ctx.save();
  ctx.strokeStyle = muted.value;
  ctx.globalAlpha = 0.45;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([devicePixelRatio, 3 * devicePixelRatio]);
  for (const mark of marks) {
    const x = Math.round(plane.x(mark.step));
    if (x < box.left || x > box.left + box.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, box.top);
    ctx.lineTo(x, box.top + box.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** Dragging in the zoom mode, or with shift, chooses a stretch. @param {Plane} plane @param {PointerEvent} begin @param {(e: PointerEvent) => number} stepAt */
function brush({ over }, begin, stepAt) {
  const mark = Object.assign(document.createElement("div"), { className: "brush" }), left = begin.offsetX;
  over.append(mark);
  over.setPointerCapture(begin.pointerId);
  const size = (/** @type {PointerEvent} */ e) => (mark.style.cssText = `left: ${Math.min(left, e.offsetX)}px; width: ${Math.abs(e.offsetX - left)}px`);
  over.addEventListener("pointermove", size);
  const end = (/** @type {PointerEvent} */ e) => {
    over.removeEventListener("pointermove", size);
    over.removeEventListener("lostpointercapture", end);
    mark.remove();
    if (Math.abs(e.offsetX - left) > 4) zoomTo(stepAt(begin), stepAt(e));
  };
  over.addEventListener("lostpointercapture", end);
}

/** Pressing and dragging on the curves scrubs; what is only pointed at is read. @param {Plane} plane */
function listen(plane) {
  const { over } = plane, leftOf = (/** @type {PointerEvent} */ e) => e.clientX - over.getBoundingClientRect().left;
  const stepAt = (/** @type {PointerEvent} */ e) => plane.stepAt(leftOf(e));
  let scrubs = false;
  over.addEventListener("dblclick", whole);
  over.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    scrubs = !brushing.peek() && !e.shiftKey;
    if (!scrubs) return void brush(plane, e, stepAt);
    over.setPointerCapture(e.pointerId);
    held.value = end.peek(); // what is under the hand must not move
    scrubTo(stepAt(e));
  });
  over.addEventListener("lostpointercapture", () => (held.value = null));
  over.addEventListener("pointermove", (e) => {
    pointed.value = plane.nearest(leftOf(e));
    if (scrubs && over.hasPointerCapture(e.pointerId)) scrubTo(stepAt(e));
  });
  over.addEventListener("pointerleave", () => (pointed.value = null));
}

/**
 * @param {HTMLElement} root @param {Picture} first @param {number} height
 * @returns {{feed: (picture: Picture) => void, at: (step: number) => void, remove: () => void}}
 */
export function makeChart(root, first, height) {
  let picture = first, step = 0;
  const line = Object.assign(document.createElement("div"), { className: "nowline" });
  const range = first.range && { from: first.range[0], to: first.range[1] };
  const place = (/** @type {Plane} */ on) => {
    const { from, to } = across();
    line.hidden = step < from || step > to;
    line.style.transform = `translateX(${on.leftOf(step)}px)`;
  };
  const plane = new Plane(root, {
    curves: first.curves, bands: first.bands ?? [], log: first.log, font: FONT, number: short, across, logTicks,
    up: (min, max, on) => range ?? upright(min, max, on.data),
    colours: () => ({ text: muted.value, grid: faint.value, ground: ground.value }),
    before: (on) => drawMarks(on, picture),
    after: (on) => {
      drawLevels(on, picture);
      place(on);
    },
  }, first.data, height);
  plane.over.append(line);
  listen(plane);
  const sizes = new ResizeObserver(() => plane.size(root.clientWidth, height));
  sizes.observe(root);
  const stop = effect(() => plane.point(pointed.value));
  return {
    feed: (next) => {
      picture = next;
      plane.feed(next.data);
    },
    at: (now) => {
      step = now;
      place(plane);
    },
    remove: () => {
      stop();
      sizes.disconnect();
      plane.remove();
    },
  };
}
