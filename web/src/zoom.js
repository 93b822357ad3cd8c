/** A stretch of the steps that the curves show: brushed, or chosen by keys. */
import { signal } from "@preact/signals";
import { html } from "./html.js";
import { curvesEnd, now } from "./store.js";

const LEAST = 2; // steps
/** @type {import("@preact/signals").Signal<[number, number] | null>} null: all steps */
export const zoomed = signal(null);
/** Whether dragging on the curves chooses a stretch; otherwise it does with shift. */
export const brushing = signal(false);

export const whole = () => (zoomed.value = null);

/** @param {number} a @param {number} b */
export function zoomTo(a, b) {
  const from = Math.max(0, Math.round(Math.min(a, b))), to = Math.min(curvesEnd.value, Math.round(Math.max(a, b)));
  if (to - from >= LEAST) zoomed.value = from === 0 && to === curvesEnd.value ? null : [from, to];
}

/** Around the step that is looked at. @param {number} by half as much, or twice as much */
export function zoomBy(by) {
  const [from, to] = zoomed.value ?? [0, curvesEnd.value], width = Math.max(LEAST, (to - from) * by);
  const begin = Math.max(0, Math.min(now.value - width / 2, curvesEnd.value - width));
  zoomTo(begin, begin + width);
}

export function Zoom() {
  return html`<button class="quiet" data-testid="zoom" aria-pressed=${brushing.value} title="Drag on the curves to zoom (or with shift; keys + and −)"
      onClick=${() => (brushing.value = !brushing.value)}>zoom</button>
    ${zoomed.value && html`<button class="quiet" data-testid="unzoom" title="All steps (Esc)" onClick=${whole}>steps ${zoomed.value.join("–")} ×</button>`}`;
}
