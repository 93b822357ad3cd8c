/**
 * Curves over the steps on a canvas: axes, lines, bands, and a line under the pointer. What belongs to a run is drawn by chart.js.
 * @typedef {{colour: string, width: number, dash?: number[]}} Line
 * @typedef {{series: [number, number], fill: string}} Band between two curves, which are counted from 1
 * @typedef {[number[], ...(number | null)[][]]} Table steps, and a column for each curve
 * @typedef {{from: number, to: number}} Range
 * @typedef {{left: number, top: number, width: number, height: number}} Box in pixels of the canvas
 * @typedef {object} Look
 * @property {Line[]} curves
 * @property {Band[]} bands
 * @property {boolean} log the steps grow by factors, and begin at 0
 * @property {() => Range} across
 * @property {(low: number, high: number, plane: Plane) => Range} up from the least and the largest value
 * @property {(range: Range) => number[]} logTicks
 * @property {(value: number) => string} number
 * @property {() => {text: string, grid: string, ground: string}} colours
 * @property {string} font
 * @property {(plane: Plane) => void} before what is drawn under the curves
 * @property {(plane: Plane) => void} after
 */
const LEFT = 54, ABOVE = 8, RIGHT = 18, BELOW = 39; // pixels of the page around the curves
const NEAR = 50, FLAT = 30, DENSE = 4; // pixels between ticks at least; points a pixel from which on only extremes are drawn
const STEPS = [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((power) => [1, 2, 5].map((m) => m * 10 ** power));

/** One table with the steps of all of them. @param {Table[]} tables @returns {Table} */
export function joined(tables) {
  if (tables.length === 1) return tables[0];
  const steps = [...new Set(tables.flatMap((t) => t[0]))].sort((a, b) => a - b), at = new Map(steps.map((s, i) => [s, i]));
  const spread = (/** @type {number[]} */ own, /** @type {(number | null)[]} */ column) => {
    const all = /** @type {(number | null)[]} */ (new Array(steps.length).fill(null));
    own.forEach((s, i) => (all[/** @type {number} */ (at.get(s))] = column[i] ?? null));
    return all;
  };
  return [steps, ...tables.flatMap(([own, ...columns]) => columns.map((c) => spread(own, c)))];
}

/** The finest of 1, 2, 2.5, 5 times a power of ten that is at least this. @param {number} least */
function nice(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 2.5, 5].find((m) => m * power >= least * (1 - 1e-9)) ?? 10) * power;
}

/** Multiples of a distance within a range. @param {Range} range @param {number} every */
const multiples = ({ from, to }, every) => Array.from({ length: Math.max(0, Math.floor(to / every + 1e-9) - Math.ceil(from / every - 1e-9) + 1) }, (_, i) => (Math.ceil(from / every - 1e-9) + i) * every);

/** @param {string} tag @param {string} name @param {Element} into */
const made = (tag, name, into) => into.appendChild(Object.assign(document.createElement(tag), { className: name }));

export class Plane {
  /** @param {HTMLElement} root @param {Look} look @param {Table} data @param {number} height */
  constructor(root, look, data, height) {
    this.look = look;
    this.data = data;
    this.dpr = 1;
    this.wide = this.high = 1; // pixels of the page that the curves have
    this.range = { from: 0, to: 1 };
    this.wrap = made("div", "plane", root);
    this.canvas = /** @type {HTMLCanvasElement} */ (made("canvas", "", this.wrap));
    this.over = /** @type {HTMLElement} */ (made("div", "over", this.wrap));
    this.cross = /** @type {HTMLElement} */ (made("div", "cross", this.over));
    this.ctx = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.cross.hidden = true;
    this.size(root.clientWidth, height);
  }

  /** @param {number} width @param {number} height pixels of the page */
  size(width, height) {
    const d = devicePixelRatio;
    this.dpr = d;
    [this.wide, this.high] = [Math.max(1, width - LEFT - RIGHT), height - ABOVE - BELOW];
    Object.assign(this.canvas, { width: Math.round(width * d), height: Math.round(height * d) });
    this.canvas.style.cssText = `width: ${width}px; height: ${height}px`;
    this.over.style.cssText = `left: ${LEFT}px; top: ${ABOVE}px; width: ${this.wide}px; height: ${this.high}px`;
    this.draw();
  }

  /** @param {Table} data */
  feed(data) {
    this.data = data;
    this.draw();
  }

  remove() {
    this.wrap.remove();
  }

  /** @returns {Box} */
  get box() {
    const d = this.dpr;
    return { left: LEFT * d, top: ABOVE * d, width: this.wide * d, height: this.high * d };
  }

  /** @param {number} step */
  even(step) {
    return this.look.log ? Math.asinh(step) : step;
  }

  /** Pixels of the page from the left of the curves. @param {number} step */
  leftOf(step) {
    const { from, to } = this.look.across(), a = this.even(from);
    return (this.wide * (this.even(step) - a)) / (this.even(to) - a || 1);
  }

  /** The step there. @param {number} left */
  stepAt(left) {
    const { from, to } = this.look.across(), a = this.even(from), at = a + ((this.even(to) - a) * left) / this.wide;
    return this.look.log ? Math.sinh(at) : at;
  }

  /** Pixels of the canvas. @param {number} step */
  x(step) {
    return (LEFT + this.leftOf(step)) * this.dpr;
  }

  /** Pixels of the canvas. @param {number} value */
  y(value) {
    const { top, height } = this.box, { from, to } = this.range;
    return top + height * (1 - (value - from) / (to - from || 1));
  }

  draw() {
    const { ctx, look, canvas } = this, { from, to } = look.across(), [steps, ...lines] = this.data;
    let low = Infinity, high = -Infinity;
    for (const line of lines) line.forEach((v, i) => v !== null && v !== undefined && steps[i] >= from && steps[i] <= to && ([low, high] = [Math.min(low, v), Math.max(high, v)]));
    this.range = look.up(low === Infinity ? 0 : low, high === -Infinity ? 0 : high, this);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    this.axes();
    look.before(this);
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.box.left, this.box.top - 2, this.box.width, this.box.height + 4);
    ctx.clip();
    look.bands.forEach((band) => this.band(band));
    look.curves.forEach((curve, i) => this.line(curve, lines[i] ?? []));
    ctx.restore();
    look.after(this);
  }

  axes() {
    const { ctx, look } = this, { left, top, width, height } = this.box, d = this.dpr, { text, grid } = look.colours();
    const { range } = this, across = look.across(), span = across.to - across.from;
    const every = STEPS.find((s) => (s * this.wide) / span >= NEAR) ?? STEPS[STEPS.length - 1];
    const xs = look.log ? look.logTicks(across) : multiples(across, every);
    const ys = multiples(range, nice(((range.to - range.from) * FLAT) / this.high));
    Object.assign(ctx, { strokeStyle: grid, fillStyle: text, lineWidth: d, font: look.font.replace("11px", `${11 * d}px`), textBaseline: "top", textAlign: "center" });
    ctx.setLineDash([]);
    ctx.beginPath();
    for (const s of xs) this.rule(this.x(s), top, this.x(s), top + height, () => ctx.fillText(String(s), this.x(s), top + height + 6 * d));
    ctx.fillText("step", left + width / 2, top + height + 23 * d);
    Object.assign(ctx, { textBaseline: "middle", textAlign: "right" });
    for (const v of ys) this.rule(left, this.y(v), left + width, this.y(v), () => ctx.fillText(look.number(v), left - 6 * d, this.y(v)));
    ctx.stroke();
  }

  /** A line of the grid with its words. @param {number} x @param {number} y @param {number} z @param {number} w @param {() => void} words */
  rule(x, y, z, w, words) {
    const sharp = (/** @type {number} */ v) => Math.round(v) + 0.5;
    this.ctx.moveTo(sharp(x), sharp(y));
    this.ctx.lineTo(sharp(z), sharp(w));
    words();
  }

  /** Points of the canvas; of many in one pixel those that are highest and lowest. @param {(number | null)[]} column */
  points(column) {
    const steps = this.data[0], some = /** @type {[number, number][]} */ ([]);
    steps.forEach((s, i) => column[i] !== null && column[i] !== undefined && some.push([this.x(s), this.y(/** @type {number} */ (column[i]))]));
    return some.length > DENSE * this.canvas.width ? extremes(some) : some;
  }

  /** @param {Line} line @param {(number | null)[]} column */
  line({ colour, width, dash = [] }, column) {
    const { ctx } = this, d = this.dpr, points = this.points(column);
    if (!width || !points.length) return;
    Object.assign(ctx, { strokeStyle: colour, fillStyle: colour, lineWidth: width * d, lineJoin: "round" });
    ctx.setLineDash(dash.map((x) => x * d));
    ctx.beginPath();
    if (points.length === 1) ctx.arc(points[0][0], points[0][1], 2.5 * d, 0, 7);
    else points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
    if (points.length === 1) ctx.fill();
    else ctx.stroke();
  }

  /** @param {Band} band */
  band({ series: [a, b], fill }) {
    const { ctx } = this;
    ctx.fillStyle = fill;
    ctx.beginPath();
    [...this.points(this.data[a]), ...this.points(this.data[b]).reverse()].forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
    ctx.fill();
  }

  /** The step with a row that is nearest to the pointer. @param {number} left */
  nearest(left) {
    const steps = this.data[0], at = this.stepAt(left);
    let low = 0, high = steps.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (steps[middle] < at) low = middle;
      else high = middle;
    }
    return steps.length ? (at - steps[low] < steps[high] - at ? steps[low] : steps[high]) : null;
  }

  /** @param {number | null} step */
  point(step) {
    const left = step === null ? -1 : this.leftOf(step);
    this.cross.hidden = left < 0 || left > this.wide;
    this.cross.style.left = `${left}px`;
  }
}

/** The first, the least, the largest and the last point of each column of pixels. @param {[number, number][]} points */
function extremes(points) {
  const columns = new Map();
  for (const p of points) {
    const c = columns.get(Math.round(p[0]));
    if (!c) columns.set(Math.round(p[0]), [p, p, p, p]);
    else [c[1], c[2], c[3]] = [p[1] < c[1][1] ? p : c[1], p[1] > c[2][1] ? p : c[2], p];
  }
  return [...columns.values()].flat();
}
