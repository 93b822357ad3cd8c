/** The tokens in a line, and over them what one position looks at. @import { Frame } from "./protocol.js" */
import { computed } from "@preact/signals";
import { colourOf } from "./colours.js";
import { arrived, find } from "./frames.js";
import { html, percent, useEffect, useMemo, useRef } from "./html.js";
import { hover } from "./matrix.js";
import { valueAt } from "./protocol.js";
import { chosen, headName, query, reading } from "./sequence.js";
import { isOff } from "./store.js";
import { maps } from "./view.js";

const HIGH = 74, MOST = 6, LEAST = 0.03; // pixels of the arcs; arcs a head; the least weight drawn
/** Pixels a token: where letters have no marks, tokens are numbers. */
const wide = computed(() => 6 + 8 * Math.max(1, ...(reading.value?.marks ?? []).map((mark) => mark.length)));

/** The keys with the largest weights, or with the largest gains. @param {Frame} frame @param {number} t */
function strongest(frame, t) {
  if (t < 0 || t >= frame.shape[0]) return [];
  return Array.from({ length: Math.min(t + 1, frame.shape[1]) }, (_, s) => ({ s, weight: valueAt(frame, t, s) }))
    .filter(({ weight }) => weight >= LEAST)
    .sort((a, b) => b.weight - a.weight).slice(0, MOST);
}

/** @param {number} from @param {number} to */
function path(from, to) {
  const a = (from + 0.5) * wide.value, b = (to + 0.5) * wide.value, rise = Math.min(HIGH - 4, 8 + Math.abs(a - b) / 2.4);
  if (from === to) return `M${a - 3},${HIGH} c-6,-16 12,-16 6,0`;
  return `M${a},${HIGH} C${a},${HIGH - rise * 1.3} ${b},${HIGH - rise * 1.3} ${b},${HIGH}`;
}

/** One head a layer has the colour of its part of a prediction. @param {number} layer @param {number} place */
const colourOfHead = (layer, place) => colourOf(maps.value.length === 2 ? `head${layer}` : "", place);

/** @param {{t: number}} props */
function Arcs({ t }) {
  void arrived.value;
  return maps.value.map(({ name, layer, head }, i) => {
    const frame = isOff(layer, head) ? undefined : find(name); // it writes nothing, wherever it looks
    return frame && strongest(frame, t).map(({ s, weight }) => html`<path key=${`${name}.${s}`} d=${path(t, s)} fill="none"
      stroke=${colourOfHead(layer, i)} stroke-width=${1 + 3.5 * weight} opacity=${0.25 + 0.75 * weight}
      stroke-linecap="round"><title>${headName(layer, head)}: ${percent(weight)}</title></path>`);
  });
}

/** @param {KeyboardEvent} e */
function key(e) {
  const by = e.key === "ArrowLeft" ? -1 : e.key === "ArrowRight" ? 1 : 0;
  if (!by) return;
  e.preventDefault();
  e.stopPropagation();
  chosen.value = Math.min((reading.value?.tokens.length ?? 1) - 1, Math.max(0, query.value + by));
}

/** @param {{marks: string[], asked: number[], t: number}} props */
function Tokens({ marks, asked, t }) {
  return useMemo(() => {
    const repeated = new Set(asked);
    return html`<div class="tokens">${marks.map((mark, i) => html`<span key=${i} class=${repeated.has(i) ? "asked" : ""}
      aria-current=${i === t} style=${{ width: `${wide.value}px` }} onClick=${() => (chosen.value = i)}>${mark}</span>`)}</div>`;
  }, [marks, asked, t]);
}

export function Strip() {
  const box = /** @type {{current: HTMLDivElement | null}} */ (useRef(null));
  const said = reading.value, t = hover.value?.picture.startsWith("attention:") ? hover.value.row : query.value;
  useEffect(() => {
    box.current?.scrollTo({ left: (t + 0.5) * wide.value - 0.8 * box.current.clientWidth });
  }, [t, said?.tokens.length]);
  if (!said) return null;
  return html`<div class="strip" ref=${box} tabindex="0" role="group" aria-label="Tokens. Arrow keys choose a position." onKeyDown=${key}>
    <svg width=${said.tokens.length * wide.value} height=${HIGH} aria-hidden="true"><${Arcs} t=${t} /></svg>
    <${Tokens} marks=${said.marks} asked=${said.asked} t=${t} />
  </div>`;
}

/** Which colour is which head. */
export function HeadKey() {
  return html`<div class="legend parts">${maps.value.map(({ layer, head }, i) => html`<span class=${isOff(layer, head) ? "off" : ""}>
    <i style=${{ background: colourOfHead(layer, i) }} aria-hidden="true"></i>${headName(layer, head)}</span>`)}</div>`;
}
