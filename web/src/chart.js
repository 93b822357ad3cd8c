/**
 * Curves over the steps: one uPlot, drawn anew when its series change and fed when rows come.
 * @import { Level, Mark } from "./protocol.js"
 */
import uPlot from "uplot";
import { scrubTo } from "./actions.js";
import { faint, ground, muted } from "./colours.js";
import { number } from "./html.js";
import { curvesEnd, end, held, pointed } from "./store.js";
import { brushing, whole, zoomed, zoomTo } from "./zoom.js";

/**
 * @typedef {{label: string, colour: string, width: number, dash?: number[]}} Curve
 * @typedef {{curves: Curve[], data: uPlot.AlignedData, levels: (Level & {colour: string})[], marks: Mark[],
 *   log: boolean, range: [number, number] | null, bands?: uPlot.Band[]}} Picture
 */
const INCREMENTS = [0, 1, 2, 3, 4, 5, 6].flatMap((power) => [1, 2, 5].map((m) => m * 10 ** power));
const HUGE = 1e6, ROOM = 4; // of values that an axis can show; of the first value, where others are larger
const FONT = "11px system-ui, sans-serif";

/** @param {boolean} log @returns {uPlot.Axis[]} */
function axes(log) {
  const look = { stroke: muted.value, font: FONT, grid: { stroke: faint.value, width: 1 }, ticks: { show: false } };
  /** @type {uPlot.Axis} */
  const steps = { ...look, size: 24, gap: 4, label: "step", labelSize: 15, labelGap: 0, labelFont: FONT, incrs: INCREMENTS, values: (_, splits) => splits.map((s) => (s === null ? "" : String(s))) };
  if (log) steps.splits = (u) => [...new Set([...(zoomed.peek() ?? []), ...[0, 1, 10, 100, 1000, 1e4, 1e5].filter((s) => s >= (u.scales.x.min ?? 0) && s <= (u.scales.x.max ?? 0))])].sort((a, b) => a - b);
  if (log) steps.filter = (_, splits) => splits;
  return [steps, { ...look, size: 48, gap: 6, values: (_, splits) => splits.map((y) => (y === null ? "" : number(y).replace("e+", "e"))) }];
}

/** The largest first value of the curves. @param {uPlot} u */
function firstOf(u) {
  const found = u.data.slice(1).map((line) => Math.abs(Array.from(line).find((y) => y != null) ?? 0));
  return Math.max(1, ...found.filter((y) => y < HUGE));
}

/** @param {Picture} picture @returns {uPlot.Scales} */
function scales({ log, range }) {
  /** With room above, and 0 in it. @type {uPlot.Scale.Range} */
  const whole = (u, min, max) => {
    const most = max > HUGE ? ROOM * firstOf(u) : max; // a curve that diverges leaves the picture; what was before is seen
    return min < 0 || most > 0 ? [Math.min(0, 1.05 * (min < -HUGE ? -most : min)), Math.max(0, 1.05 * most)] : [0, 1];
  };
  return {
    x: { time: false, distr: log ? 4 : 1, asinh: 1, range: () => zoomed.peek() ?? [0, Math.max(1, curvesEnd.peek())] },
    y: { range: range ?? whole },
  };
}

/** Dashed lines of theory, each with its name; names that would touch step aside. @param {uPlot} u @param {Picture} picture */
function drawLevels(u, { levels }) {
  const { ctx, bbox } = u, dpr = devicePixelRatio, gap = 12 * dpr;
  let free = Infinity;
  ctx.save();
  ctx.font = `${10.5 * dpr}px system-ui, sans-serif`;
  ctx.textBaseline = "alphabetic";
  for (const level of [...levels].sort((a, b) => a.value - b.value)) {
    const y = u.valToPos(level.value, "y", true);
    if (y < bbox.top || y > bbox.top + bbox.height + 1) continue;
    free = Math.min(y - 4 * dpr, free - gap);
    dashed(ctx, bbox, y, level.colour);
    const left = crowded(u, free - gap / 2, gap);
    ctx.textAlign = left ? "left" : "right";
    named(ctx, level.name, left ? bbox.left + 6 * dpr : bbox.left + bbox.width - 6 * dpr, free, level.colour);
  }
  ctx.restore();
}

/** Whether a curve passes where a name would stand at the right. @param {uPlot} u @param {number} y @param {number} gap */
function crowded(u, y, gap) {
  const from = Math.floor(0.7 * u.data[0].length);
  return u.data.slice(1).some((line) => Array.from(line).slice(from).some((v) => v != null && Math.abs(u.valToPos(v, "y", true) - y) < gap));
}

/** @param {CanvasRenderingContext2D} ctx @param {uPlot.BBox} box @param {number} y @param {string} colour */
function dashed(ctx, box, y, colour) {
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

/** @param {uPlot} u @param {Picture} picture */
function drawMarks(u, { marks }) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = muted.value;
  ctx.globalAlpha = 0.45;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([devicePixelRatio, 3 * devicePixelRatio]);
  for (const mark of marks) {
    const x = Math.round(u.valToPos(mark.step, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** A single value is no line: it is drawn as a point. @param {uPlot} u @param {number} series */
const alone = (u, series) => Array.from(u.data[series]).filter((y) => y != null).length === 1;

/** Dragging in the zoom mode, or with shift, chooses a stretch. @param {uPlot} u @param {PointerEvent} begin @param {(e: PointerEvent) => number} stepAt */
function brush(u, begin, stepAt) {
  const mark = Object.assign(document.createElement("div"), { className: "brush" }), left = begin.offsetX;
  u.over.append(mark);
  u.over.setPointerCapture(begin.pointerId);
  const size = (/** @type {PointerEvent} */ e) => (mark.style.cssText = `left: ${Math.min(left, e.offsetX)}px; width: ${Math.abs(e.offsetX - left)}px`);
  u.over.addEventListener("pointermove", size);
  const end = (/** @type {PointerEvent} */ e) => {
    u.over.removeEventListener("pointermove", size);
    u.over.removeEventListener("lostpointercapture", end);
    mark.remove();
    if (Math.abs(e.offsetX - left) > 4) zoomTo(stepAt(begin), stepAt(e));
  };
  u.over.addEventListener("lostpointercapture", end);
}

/** Pressing and dragging on the curves scrubs. @param {uPlot} u */
function scrubOn(u) {
  const stepAt = (/** @type {PointerEvent} */ e) => u.posToVal(e.clientX - u.over.getBoundingClientRect().left, "x");
  u.over.addEventListener("dblclick", whole);
  /** @param {PointerEvent} e */
  const go = (e) => scrubTo(stepAt(e));
  let scrubs = false;
  u.over.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    scrubs = !brushing.peek() && !e.shiftKey;
    if (!scrubs) return void brush(u, e, stepAt);
    u.over.setPointerCapture(e.pointerId);
    held.value = end.peek(); // what is under the hand must not move
    go(e);
  });
  u.over.addEventListener("lostpointercapture", () => (held.value = null));
  u.over.addEventListener("pointermove", (e) => scrubs && u.over.hasPointerCapture(e.pointerId) && go(e));
}

/**
 * @param {HTMLElement} root @param {Picture} first @param {number} height
 * @returns {{feed: (picture: Picture) => void, at: (step: number) => void, remove: () => void}}
 */
export function makeChart(root, first, height) {
  let picture = first;
  const line = document.createElement("div");
  line.className = "nowline";
  let step = 0;
  const place = () => {
    const [from, to] = zoomed.peek() ?? [0, Infinity];
    line.hidden = step < from || step > to;
    line.style.transform = `translateX(${u.valToPos(step, "x")}px)`;
  };
  /** @type {uPlot.Options} */
  const options = {
    width: root.clientWidth, height, legend: { show: false }, padding: [8, 18, 0, 0], axes: axes(first.log),
    scales: scales(first),
    bands: first.bands,
    cursor: { y: false, drag: { x: false, y: false }, sync: { key: "steps" }, points: { size: 5 } },
    series: [{}, ...first.curves.map((c) => ({ label: c.label, stroke: c.colour, width: c.width, dash: c.dash, spanGaps: true, points: { show: alone, size: 5 } }))],
    hooks: {
      drawClear: [(u) => drawMarks(u, picture)],
      draw: [(u) => drawLevels(u, picture), place],
      setCursor: [(u) => (pointed.value = u.cursor.idx == null ? null : u.data[0][u.cursor.idx])],
    },
  };
  const u = new uPlot(options, first.data, root);
  u.over.append(line);
  scrubOn(u);
  const sizes = new ResizeObserver(() => u.setSize({ width: root.clientWidth, height }));
  sizes.observe(root);
  return {
    feed: (next) => {
      picture = next;
      u.setData(next.data);
    },
    at: (now) => {
      step = now;
      place();
    },
    remove: () => {
      sizes.disconnect();
      u.destroy();
    },
  };
}
