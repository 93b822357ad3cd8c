/**
 * A picture onto a canvas: values → colours → one pixel a cell off the screen → enlarged by whole pixels.
 * @import { Frame } from "./protocol.js"
 */
import { DIVERGING, RISING, accent, faint, ink, muted, pixels } from "./colours.js";

/**
 * @typedef {{row: number, column: number}} Cell
 * @typedef {{left: number, top: number, cell: number, width: number, height: number}} Place where the cells lie, in CSS pixels
 * @typedef {{rows: string[], columns: string[]}} Marks
 * @typedef {{extent: number | null, rooted: boolean}} Scale extent: the value of full colour; null: from 0 to 1
 */
const FINE = 2049; // colours from the least value to the greatest; odd: zero has one of its own
const LETTERS = "10px ui-monospace, Menlo, Consolas, monospace";
const TALLEST = 1.4; // times the room that there is in width
const LABEL = 13; // CSS pixels that a label needs along its axis
const OVERHANG = 6; // the last label is larger than a cell

/** Colours of a scale, computed once for each. @type {Map<string, Uint32Array>} */
const tables = new Map();

/** The root on both sides of the middle. @param {number} x */
const rootFromMiddle = (x) => 0.5 + Math.sign(x - 0.5) * Math.sqrt(Math.abs(x - 0.5) / 2);

/** Attention is always rooted: most of it is small. @param {Scale} scale */
function table({ extent, rooted }) {
  const stops = extent === null ? RISING.value : DIVERGING.value, key = `${rooted} ${stops}`;
  const bend = extent === null ? Math.sqrt : rooted ? rootFromMiddle : undefined;
  const known = tables.get(key) ?? pixels(stops, FINE, bend);
  tables.set(key, known);
  return known;
}

/** The colour of a value. @param {Scale} scale */
function lookup(scale) {
  const colours = table(scale), { extent } = scale;
  const low = extent === null ? 0 : -extent, span = extent === null ? 1 : 2 * extent;
  return (/** @type {number} */ value) => {
    const place = Math.round(((value - low) / span) * (FINE - 1));
    return colours[Math.min(FINE - 1, Math.max(0, place || 0))];
  };
}

/** Where the stops of a diverging map stand on a bar, as CSS. @param {string[]} stops @param {boolean} rooted */
export function gradient(stops, rooted) {
  const places = stops.map((_, i) => (2 * i) / (stops.length - 1) - 1);
  const marks = places.map((x, i) => `${stops[i]} ${50 + 50 * (rooted ? Math.sign(x) * x * x : x)}%`);
  return `linear-gradient(90deg, ${marks.join(", ")})`;
}

/** @param {Frame} frame @param {Scale} scale @param {HTMLCanvasElement} small */
function fill(frame, scale, small) {
  const [rows, columns] = frame.shape;
  if (small.width !== columns || small.height !== rows) Object.assign(small, { width: columns, height: rows });
  const context = /** @type {CanvasRenderingContext2D} */ (small.getContext("2d"));
  const image = context.createImageData(columns, rows), out = new Uint32Array(image.data.buffer);
  const colour = lookup(scale), { values, lo, hi } = frame;
  if (frame.dtype === "u8") {
    const of = Uint32Array.from({ length: 256 }, (_, q) => colour(lo + (q * (hi - lo)) / 255));
    for (let i = 0; i < out.length; i++) out[i] = of[values[i]];
  } else for (let i = 0; i < out.length; i++) out[i] = colour(values[i]);
  context.putImageData(image, 0, 0);
}

/** Room for the labels of the rows. @param {Marks} marks */
const margin = (marks) => (marks.rows.length ? 8 + 6 * Math.max(...marks.rows.map((m) => m.length)) : 0);

/** How large the cells can be in so much room. Whole pixels matter more than labels. @param {Frame} frame @param {number} room @param {Marks} marks @returns {Place} */
export function layout(frame, room, marks) {
  const [rows, columns] = frame.shape, ratio = devicePixelRatio || 1;
  const pixels = (/** @type {number} */ left) => Math.min((room - left - (marks.columns.length ? OVERHANG : 0)) / columns, (TALLEST * room) / rows) * ratio;
  const left = pixels(margin(marks)) < 1 ? 0 : margin(marks), exact = pixels(left);
  const cell = (exact >= 2 ? Math.floor(exact) : exact) / ratio; // a long sequence fills its room rather than half of it
  return { left, top: marks.columns.length ? 16 : 0, cell, width: cell * columns, height: cell * rows };
}

/**
 * @param {HTMLCanvasElement} canvas @param {HTMLCanvasElement} small @param {Frame} frame
 * @param {{scale: Scale, place: Place, marks: Marks, cross: Cell | null}} how
 */
export function paint(canvas, small, frame, { scale, place, marks, cross }) {
  const ratio = devicePixelRatio || 1, width = place.left + place.width + (place.top ? OVERHANG : 0), height = place.top + place.height + (place.left ? OVERHANG : 0);
  resize(canvas, width, height, ratio);
  fill(frame, scale, small);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width + 1, height + 1);
  context.imageSmoothingEnabled = place.cell * ratio < 1 || !Number.isInteger(place.cell * ratio);
  context.drawImage(small, place.left, place.top, place.width, place.height);
  context.strokeStyle = faint.value;
  context.strokeRect(place.left + 0.5, place.top + 0.5, place.width - 1, place.height - 1);
  label(context, place, marks, cross);
  if (cross) crosshair(context, place, cross);
}

/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height @param {number} ratio */
function resize(canvas, width, height, ratio) {
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width === w && canvas.height === h) return;
  Object.assign(canvas, { width: w, height: h });
  Object.assign(canvas.style, { width: `${w / ratio}px`, height: `${h / ratio}px` });
}

/** As many marks as there is room for, and always those of the crosshair. @param {CanvasRenderingContext2D} context @param {Place} place @param {Marks} marks @param {Cell | null} cross */
function label(context, place, marks, cross) {
  context.font = LETTERS;
  context.textBaseline = "middle";
  if (place.left) axis(marks.rows, place, cross?.row, (mark, along) => {
    context.textAlign = "right";
    context.fillText(mark, place.left - 4, place.top + along);
  }, context, LABEL);
  axis(marks.columns, place, cross?.column, (mark, along) => {
    context.textAlign = "center";
    context.fillText(mark, place.left + along, place.top - 8);
  }, context, LABEL * Math.max(1, 0.55 * Math.max(1, ...marks.columns.map((m) => m.length))));
}

/** @param {string[]} marks @param {Place} place @param {number | undefined} chosen @param {(mark: string, along: number) => void} write @param {CanvasRenderingContext2D} context @param {number} room */
function axis(marks, place, chosen, write, context, room) {
  const every = nice(Math.ceil(room / place.cell)), near = room / place.cell;
  for (let i = 0; i < marks.length; i += every) {
    if (chosen !== undefined && Math.abs(i - chosen) < near) continue;
    context.fillStyle = muted.value;
    write(marks[i], (i + 0.5) * place.cell);
  }
  if (chosen === undefined || marks[chosen] === undefined) return;
  context.fillStyle = ink.value;
  write(marks[chosen], (chosen + 0.5) * place.cell);
}

/** @param {number} n */
const nice = (n) => [1, 2, 4, 5, 8, 10, 16, 32, 64, 128].find((m) => m >= n) ?? n;

/** Lines around the row and the column. @param {CanvasRenderingContext2D} context @param {Place} place @param {Cell} cross */
function crosshair(context, place, { row, column }) {
  const size = Math.max(3, place.cell), grow = (size - place.cell) / 2;
  const x = place.left + column * place.cell - grow, y = place.top + row * place.cell - grow;
  context.fillStyle = accent.value;
  context.globalAlpha = 0.16;
  context.fillRect(place.left, y, place.width, size);
  context.fillRect(x, place.top, size, place.height);
  context.globalAlpha = 1;
  context.strokeStyle = accent.value;
  context.lineWidth = 1.5;
  context.strokeRect(x - 0.75, y - 0.75, size + 1.5, size + 1.5);
}

/** The cell under a point, in CSS pixels from the corner of the canvas. @param {Frame} frame @param {Place} place @param {number} x @param {number} y @returns {Cell | null} */
export function cellAt(frame, place, x, y) {
  const row = Math.floor((y - place.top) / place.cell), column = Math.floor((x - place.left) / place.cell);
  return row < 0 || column < 0 || row >= frame.shape[0] || column >= frame.shape[1] ? null : { row, column };
}
