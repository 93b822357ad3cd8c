/** One slider over all stored steps, for the whole page. @import { Mark } from "./protocol.js" */
import { scrubTo } from "./actions.js";
import { atOther, refused } from "./between.js";
import { html } from "./html.js";
import { Play } from "./play.js";
import { fromTrack, ticks, toTrack } from "./steps.js";
import { about, end, events, following, held, last, logSteps, now, stages, state } from "./store.js";

/** @type {number[]} */
const NONE = [];
const REST = 1500; // milliseconds without a movement
let resting = 0;

/** @param {number} step */
const place = (step) => `${(100 * toTrack(step, end.value, logSteps.value)).toFixed(3)}%`;

/** What is under a hand that aims or drags must not move; one that rests does not aim. @param {PointerEvent} e */
function hold(e) {
  clearTimeout(resting);
  held.value = end.peek();
  if (!e.buttons) resting = setTimeout(letGo, REST);
}

function letGo() {
  clearTimeout(resting);
  held.value = null;
}

/** The step under the pointer. @param {any} e */
function follow(e) {
  const box = e.currentTarget.parentElement.getBoundingClientRect();
  scrubTo(fromTrack((e.clientX - box.left) / box.width, end.value, logSteps.value));
}

/** @param {any} e */
function press(e) {
  if (e.button !== 0) return;
  e.preventDefault();
  e.currentTarget.focus({ focusVisible: false });
  e.currentTarget.setPointerCapture(e.pointerId);
  hold(e);
  follow(e);
}

/** @param {any} e */
function drag(e) {
  hold(e);
  if (e.currentTarget.hasPointerCapture(e.pointerId)) follow(e);
}

/** The input keeps the step as its value, for keys and screen readers; the mouse uses the track, which may be logarithmic. */
function Slider() {
  return html`<input type="range" data-testid="scrubber" aria-label="Step" min="0" max=${end.value} step="1"
    value=${now.value} aria-valuetext=${`step ${now.value} of ${last.value}`}
    onPointerDown=${press} onMouseDown=${(/** @type {Event} */ e) => e.preventDefault()}
    onPointerMove=${drag} onPointerUp=${hold} onPointerLeave=${letGo} onPointerCancel=${letGo}
    onInput=${(/** @type {any} */ e) => scrubTo(Number(e.target.value))} />`;
}

/** @param {{mark: Mark, kind: "birth" | "event" | "stage"}} props */
function Flag({ mark, kind }) {
  const side = toTrack(mark.step, end.value, logSteps.value) > 0.6 ? "left" : "right";
  return html`<button class=${`flag ${kind}`} tabindex="-1" style=${{ left: place(mark.step) }} data-side=${side}
    data-tip=${`${mark.step}: ${mark.what}`} aria-label=${`Step ${mark.step}: ${mark.what}`}
    onClick=${() => scrubTo(mark.step)}></button>`;
}

/** @param {{steps: number[]}} props */
function Kept({ steps }) {
  return html`<div class="kept" aria-hidden="true">${steps.map((s) => html`<i key=${s} style=${{ left: place(s) }}></i>`)}</div>`;
}

function Track() {
  return html`<div class="track">
    <div class="rail"><div class="known" style=${{ width: place(last.value) }}></div><div class="done" style=${{ width: place(now.value) }}></div></div>
    <${Kept} steps=${state.value?.snapshots ?? NONE} />
    <${Slider} />
    <div class="thumb" style=${{ left: place(now.value) }} aria-hidden="true"></div>
    ${stages.value.map((mark) => html`<${Flag} key=${`s${mark.step}`} mark=${mark} kind="stage" />`)}
    ${(state.value?.births ?? []).map((mark) => html`<${Flag} key=${`b${mark.step}${mark.what}`} mark=${mark} kind="birth" />`)}
    ${events.value.map((mark) => html`<${Flag} key=${`e${mark.step}${mark.what}`} mark=${mark} kind="event" />`)}
    <div class="ticks" aria-hidden="true">${ticks(end.value, logSteps.value).map((s) =>
      html`<span key=${s} style=${{ left: place(s) }}>${s}</span>`)}</div>
  </div>`;
}

export function Scrubber() {
  return html`<div class="scrubber">
    <div class="where">
      <output data-testid="step-label">step <b>${now.value}</b>${about.value ? ` of ${about.value.steps}` : ""}</output>
      <small class=${atOther.value ? "other" : ""} data-testid="step-note" title=${refused.value}>${atOther.value.replace(/, not .*/, "").replace(/^of/, "weights of") || (following.value ? "newest" : "pinned")}</small>
    </div>
    <${Track} />
    <${Play} />
    <button class="quiet" aria-pressed=${logSteps.value} data-testid="log-steps" title="Logarithmic steps"
      onClick=${() => (logSteps.value = !logSteps.value)}>log</button>
  </div>`;
}
