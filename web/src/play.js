/** The stored steps, one after another, until the last. Nothing plays before a person asks for it. */
import { effect, signal } from "@preact/signals";
import { scrubTo } from "./actions.js";
import { html } from "./html.js";
import { now, run, state, stops } from "./store.js";

const SPEEDS = [1, 2, 5, 10];
export const playing = signal(false);
const speed = signal(2);

/** Without stored weights, the rows. */
const places = () => ((state.value?.snapshots.length ?? 0) > 1 ? state.value?.snapshots ?? [] : stops.value);

function forward() {
  const [next, further] = places().filter((place) => place > now.peek());
  if (next !== undefined) scrubTo(next);
  if (further === undefined) playing.value = false;
}

/** From the beginning, if it is at the end. */
export function togglePlay() {
  if (!playing.value && now.value >= (places().at(-1) ?? 0)) scrubTo(places()[0]);
  playing.value = !playing.value;
}

effect(() => { // another run is not played
  void run.value;
  playing.value = false;
});
effect(() => {
  if (!playing.value) return undefined;
  const timer = setInterval(forward, 1000 / speed.value);
  return () => clearInterval(timer);
});

export function Play() {
  const does = playing.value ? "Pause" : "Play the stored steps";
  return html`<div class="group"><button class="icon" data-testid="play" aria-label=${does} title=${`${does} (P)`} onClick=${togglePlay}>${playing.value ? "❚❚" : "▶"}</button>
    <select data-testid="play-speed" aria-label="Stored steps a second" title="Stored steps a second" value=${speed.value}
      onChange=${(/** @type {any} */ e) => (speed.value = Number(e.target.value))}>${SPEEDS.map((n) => html`<option value=${n}>${n}/s</option>`)}</select></div>`;
}
