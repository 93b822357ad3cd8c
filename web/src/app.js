/** The page. */
import { Attention } from "./attention.js";
import { FactsBench } from "./bench.js";
import { Branches } from "./branches.js";
import { Circuit } from "./circuit.js";
import { Composition } from "./composition.js";
import { Edits } from "./editing.js";
import { Heads } from "./heads.js";
import { ofFacts } from "./facts.js";
import { Help } from "./help.js";
import { html } from "./html.js";
import { Interventions } from "./interventions.js";
import { Lesson, Lessons } from "./lesson.js";
import { RunList, Runs } from "./picker.js";
import { Scrubber } from "./scrubber.js";
import { Settings } from "./settings.js";
import { lab, needsLab, told } from "./source.js";
import { Spectrum } from "./spectrum.js";
import { Start } from "./start.js";
import { dialog, link, missing, model, ofOthers, run, runs, said, say, state } from "./store.js";
import { Theory } from "./theory.js";
import { Timeline } from "./timeline.js";
import { Tooltip } from "./tooltip.js";
import { TopBar } from "./topbar.js";
import { Truncation } from "./truncation.js";
import { Wall } from "./wall.js";

const BANNERS = {
  lost: "Connection lost, trying again. What was loaded stays usable. If the lab was started anew, open the address that it printed.",
  other: "This page and the server are of different versions: reload the page.",
};

function Banner() {
  if (link.value !== "lost" && link.value !== "other") return null;
  return html`<div class="banner" data-testid="banner" role="alert">${BANNERS[link.value]}</div>`;
}

/** Why a run ended before its time. */
function Ended() {
  if (!state.value?.why) return null;
  return html`<div class="banner" data-testid="why" role="status">This run diverged: ${state.value.why}.</div>`;
}

/** The last thing that went wrong, until it is closed. */
function Notice() {
  if (!said.value.bad || dialog.value) return null;
  return html`<div class="notice" data-testid="notice">${said.value.text}
    <button class="icon" aria-label="Close" onClick=${() => say("")}>×</button></div>`;
}

/** What a reader of a file must know: what there was no room for, and that a matrix has 256 levels in it. */
function Told() {
  if (lab) return null;
  return html`<details class="told" data-testid="told" open=${told.length > 0}><summary>This page stands alone: it holds what was measured, and pictures in 256 levels.</summary>
    <ul>${told.map((line) => html`<li key=${line}>${line}</li>`)}<li>${needsLab("Theory, spectrum, circuit and facts", run.value)}</li></ul></details>`;
}

function Empty() {
  return html`<div class="empty">
    <h2>No runs yet</h2>
    <p>Start one and watch its memories being born: the matrices fill with associations, the attention heads find their
      places, and the loss falls where the context holds the answer.</p>
    <button class="primary" onClick=${() => (dialog.value = "start")}>Start the first run</button>
    <button data-testid="empty-lessons" onClick=${() => (dialog.value = "lessons")}>Read a lesson</button>
  </div>`;
}

/** A model of others: one moment of it has no curves. */
function ModelPanels() {
  const edits = model.value?.edits;
  return html`<main class="grid">
    <div class="column">${(model.value?.revisions ?? 0) > 1 && html`<${Timeline} />`}<${Composition} />
      ${edits && html`<${Edits} />`}${model.value?.text && html`<${Truncation} />`}</div>
    <div class="column"><${Heads} /><${Attention} /></div>
  </main>`;
}

function Panels() {
  if (ofOthers.value) return html`<${ModelPanels} />`;
  const many = model.value !== null;
  return html`<main class="grid">
    <div class="column"><${Timeline} />${many && html`<${Composition} />`}<${Interventions} /><${Branches} />${lab && html`<${Theory} /><${Spectrum} />`}<${Settings} /></div>
    <div class="column">${many && html`<${Heads} />`}${lab && ofFacts.value && html`<${FactsBench} />`}<${Wall} /><${Attention} />${lab && html`<${Circuit} />`}</div>
  </main>`;
}

/** The address names a run that is not in this folder. */
function Missing() {
  return html`<main class="missing" data-testid="missing"><h2>There is no run ${missing} here</h2>
    <p class="hint">It may have been removed, or lie in another folder. ${runs.value?.length ? "These are here:" : "No run is here yet."}</p>
    <${RunList} /></main>`;
}

export function App() {
  const empty = runs.value !== null && !run.value, lost = missing.value !== null && missing.value === run.value;
  return html`<header class="head"><${TopBar} />${!empty && !lost && model.value?.revisions !== 1 && html`<${Scrubber} />`}<${Banner} /><${Ended} /></header><${Told} />
    ${empty ? html`<${Empty} />` : lost ? html`<${Missing} />` : html`<${Panels} />`}
    <${Lesson} />${lab && html`<${Start} /><${Lessons} />`}<${Runs} /><${Help} /><${Tooltip} /><${Notice} />
    <div class="sr" role="status" aria-live="polite">${said.value.text}</div>`;
}
