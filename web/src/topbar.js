/** Which run, what it is doing, and what the trainer should do. */
import { choose, control, goOn, pauseOrResume, toggleLive } from "./actions.js";
import { html, useSignal } from "./html.js";
import { Picker } from "./picker.js";
import { copyLink } from "./session.js";
import { lab, title } from "./source.js";
import { dialog, following, info, link, ofOthers, run, state, trainer, training } from "./store.js";
import { dark, toggleTheme } from "./theme.js";

const LIMITS = [0, 1, 2, 5, 10, 20, 50, 100];
const UNFINISHED = ["part-done", "stale", "running"];

function Condition() {
  const word = training.value ? trainer.value.state : state.value?.state ?? info.value?.state ?? "";
  const shown = link.value === "open" ? word : link.value === "opening" ? "connecting" : "not connected";
  return html`<span class="state" data-testid="state" data-state=${shown}>${shown}</span>`;
}

function Training() {
  const many = useSignal("1");
  const running = trainer.value.state === "running", off = link.value !== "open";
  const steps = Number(many.value), wrong = !Number.isInteger(steps) || steps < 1;
  return html`<div class="group" role="group" aria-label="Training">
    <button data-testid=${running ? "pause" : "resume"} class="wide" disabled=${off} onClick=${pauseOrResume}>
      ${running ? "Pause" : "Resume"}</button>
    <button data-testid="step-button" disabled=${off || running || wrong} title="Take so many steps, then pause"
      onClick=${() => control("step", steps)}>Step</button>
    <label><span class="sr">Steps to take</span><input class="tiny" inputmode="numeric" value=${many.value} aria-invalid=${wrong}
      disabled=${off || running} onInput=${(/** @type {any} */ e) => (many.value = e.target.value)} /></label>
    <${Limit} />
  </div>`;
}

function Limit() {
  const limits = LIMITS.includes(trainer.value.limit) ? LIMITS : [...LIMITS, trainer.value.limit];
  return html`<label><span class="sr">Speed limit</span>
    <select data-testid="limit" value=${trainer.value.limit} title="Speed limit" disabled=${link.value !== "open"}
      onChange=${(/** @type {any} */ e) => control("limit", Number(e.target.value))}>
      ${limits.map((n) => html`<option value=${n}>${n ? `${n} steps/s` : "full speed"}</option>`)}
    </select></label>`;
}

/** A run at rest can go on, and the run in training can be gone to. */
function Elsewhere() {
  const word = state.value?.state ?? info.value?.state ?? "", other = trainer.value.run;
  const busy = other !== null && ["running", "paused"].includes(trainer.value.state);
  return html`${UNFINISHED.includes(word) && run.value && html`<button data-testid="go-on" disabled=${link.value !== "open"}
      title=${other && trainer.value.state === "running" ? "The training that is running stops where it is" : "Train on"} onClick=${goOn}>Go on</button>`}
    ${busy && html`<button class="quiet" data-testid="to-training" onClick=${() => choose(other)}>
      ${trainer.value.state} elsewhere →</button>`}`;
}

/** What only a lab has; a file has what stands below the page. */
function More() {
  const below = document.getElementById("report");
  if (!lab) return below && html`<button class="quiet" data-testid="to-report" onClick=${() => below.scrollIntoView()}>Figures and settings ↓</button>`;
  return html`${run.value && !ofOthers.value && html`<button class="live" data-testid="follow-live" aria-pressed=${following.value} title="Follow live (L)"
      onClick=${toggleLive}><i aria-hidden="true"></i>Follow live</button>`}
    <button data-testid="lessons" title="Lessons (T)" onClick=${() => (dialog.value = "lessons")}>Lessons</button>
    <button data-testid="new-run" class="primary" onClick=${() => (dialog.value = "start")}>New run</button>`;
}

export function TopBar() {
  return html`<div class="topbar">
    <h1>${lab ? html`Engram <span>lab</span>` : title}</h1>
    <${Picker} />
    <${Condition} />
    ${lab && (training.value ? html`<${Training} />` : html`<${Elsewhere} />`)}
    <span class="space"></span>
    <${More} />
    ${location.protocol !== "about:" && html`<button class="icon" data-testid="copy-link" aria-label="Copy a link to this view" title="Copy a link to this view" onClick=${copyLink}>#</button>`}
    <button class="icon" data-testid="theme" aria-label=${dark.value ? "Light colours" : "Dark colours"}
      title=${`${dark.value ? "Light" : "Dark"} colours (D)`} onClick=${toggleTheme}>${dark.value ? "☀" : "☾"}</button>
    <button class="icon" data-testid="help" aria-label="Help" title="Help (?)"
      onClick=${() => (dialog.value = "help")}>?</button>
  </div>`;
}
