/** Colours that colour-blind readers can tell apart (Okabe–Ito), a little lighter on dark ground. */
import { computed } from "@preact/signals";
import { dark } from "./theme.js";

/** @typedef {[light: string, dark: string]} Pair */

/** @type {Pair} */
const INK = ["#1b1f24", "#e8eaed"];
/** @type {Pair[]} */
const CYCLE = [
  ["#0072B2", "#5DB0EE"], ["#D55E00", "#F2813A"], ["#009E73", "#2DC79C"], ["#CC79A7", "#E09CC2"],
  ["#B07A00", "#E9B23C"], ["#7A5FB5", "#AE98E6"],
];
/** @type {Record<string, Pair>} */
const NAMED = {
  loss: INK, "loss.global": CYCLE[0], "loss.in_context": CYCLE[1], "loss.first": CYCLE[4],
  accuracy: INK, "accuracy.in_context": INK, "accuracy.global": CYCLE[4], "accuracy.first": CYCLE[5],
  "recall.W_O2": CYCLE[1], "recall.W_K2": CYCLE[0], "recall.W_K1.t<64": CYCLE[2], "recall.W_K1": CYCLE[3],
  embedding: ["#8a929b", "#8d96a0"], head1: CYCLE[2], head2: CYCLE[0], W_F: CYCLE[1], W_F1: CYCLE[3], W_F2: CYCLE[1],
};

/** @param {Pair} pair */
const now = (pair) => pair[dark.value ? 1 : 0];

/** The colour of a column or a part; those without one of their own take the next of the cycle. @param {string} name @param {number} [place] */
export function colourOf(name, place = 0) {
  return now(NAMED[name] ?? CYCLE[place % CYCLE.length]);
}

/** The same for what is drawn together: those without a colour of their own take what the others leave. @param {string[]} names */
export function coloursOf(names) {
  const own = names.map((name) => NAMED[name]), free = CYCLE.filter((pair) => !own.includes(pair));
  let next = 0;
  return own.map((pair) => now(pair ?? (free.length ? free : CYCLE)[next++ % (free.length || CYCLE.length)]));
}

const DASHES = [[], [6, 3], [2, 2], [9, 3, 2, 3]];

/** Branches beside a run are told apart by their dashes. @param {number} place */
export const dashOf = (place) => DASHES[place % DASHES.length];

export const ink = computed(() => now(INK));
export const muted = computed(() => now(["#656d76", "#98a1ab"]));
export const faint = computed(() => now(["#e4e6e9", "#2c3138"]));
export const ground = computed(() => now(["#ffffff", "#171a1f"]));
export const accent = computed(() => now(["#0b64a0", "#6cb6f5"]));

/** Stops from the least value to the greatest. The middle of a diverging map is the ground. */
export const DIVERGING = computed(() => (dark.value
  ? ["#c2e4ff", "#4a9fdc", "#2a5a82", "#171a1f", "#87461c", "#e0762f", "#ffdcb8"]
  : ["#00365f", "#2f7fb8", "#b3d4ea", "#ffffff", "#f8cfae", "#dc6a1e", "#7f2a00"]));
export const RISING = computed(() => (dark.value
  ? ["#171a1f", "#17405f", "#2c80b8", "#86c8f2", "#f2faff"]
  : ["#ffffff", "#c9e0f0", "#66a8d4", "#0f629c", "#04263f"]));

/** @param {string} hex */
const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/** So many colours from a row of stops, as pixels (ABGR). @param {string[]} stops @param {number} size @param {(x: number) => number} [bend] */
export function pixels(stops, size, bend = (x) => x) {
  const out = new Uint32Array(size), known = stops.map(channels);
  for (let i = 0; i < size; i++) {
    const place = bend(i / (size - 1)) * (stops.length - 1);
    const left = Math.min(stops.length - 2, Math.floor(place)), share = place - left;
    const [r, g, b] = known[left].map((c, j) => Math.round(c + share * (known[left + 1][j] - c)));
    out[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return out;
}
