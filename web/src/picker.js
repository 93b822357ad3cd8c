/** All runs in the words of `engram runs ls`, the newest first, to search in. @import { Run } from "./protocol.js" */
import { signal } from "@preact/signals";
import { choose, drawBeside } from "./actions.js";
import { Dialog } from "./dialog.js";
import { html, number } from "./html.js";
import { also, dialog, info, run, runs, trainer, trains } from "./store.js";

const MOST = 200; // runs that are listed; a search finds the others
const typed = signal("");

/** With the last thing that was done to it. @param {Run} r */
export function words(r) {
  const branch = r.events.length ? ` · ${r.events[r.events.length - 1].what}` : "";
  return `${r.words || r.id}${branch}`;
}

/** @param {Run} r */
const stateOf = (r) => (trains(r.id) ? trainer.value.state : r.state);

/** As a person would write it. @param {string | null} began */
export const day = (began) => (began ? new Date(began).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }) : "");

/** Whether all that was typed stands somewhere in what is said about a run. @param {Run} r @param {string[]} asked */
function fits(r, asked) {
  const text = [words(r), r.id, r.title, stateOf(r), r.note, day(r.began), ...r.tags].join(" ").toLowerCase();
  return asked.every((word) => text.includes(word));
}

export function Picker() {
  const known = info.value, none = runs.value?.length === 0;
  return html`<div class="picker"><button data-testid="run-picker" data-run=${run.value ?? ""} aria-haspopup="dialog" disabled=${none}
    title="All runs (R)" onClick=${() => (dialog.value = "runs")}>
    <span class="sr">Run: </span>${known ? words(known) : run.value ?? (none ? "no runs yet" : "…")}</button></div>`;
}

/** @param {string} id */
function pick(id) {
  dialog.value = null;
  typed.value = "";
  choose(id);
}

/** @param {{of: Run}} props */
function Entry({ of }) {
  const values = Object.entries(of.headline).map(([name, value]) => `${name} ${number(value)}`);
  const told = [day(of.began), ...values].filter(Boolean).join(" · ");
  return html`<li><button data-testid="run-entry" data-run=${of.id} aria-current=${of.id === run.value} title=${words(of)} onClick=${() => pick(of.id)}>
    <span>${words(of)}</span><span class="state" data-state=${stateOf(of)}>${stateOf(of)}</span>
    <small>${of.tags.map((tag) => html`<span class="tag" key=${tag}>${tag}</span>`)}${told} · <span class="id">${of.id}</span>${of.note && html`<br />${of.note}`}</small></button>
    <label class="check" title="Draw its curves, too"><input type="checkbox" data-testid="run-curves" aria-label=${`Draw the curves of: ${words(of)}`} disabled=${of.id === run.value}
      checked=${of.id === run.value || also.value.includes(of.id)} onChange=${(/** @type {any} */ e) => drawBeside([of.id], e.target.checked)} /> curves</label></li>`;
}

/** @param {KeyboardEvent} e @param {Run | undefined} first */
function key(e, first) {
  if (e.key !== "Enter" || !first) return;
  e.preventDefault(); // the button that has the focus next must not be pressed by it
  pick(first.id);
}

/** A search, and the runs that it finds. */
export function RunList() {
  const asked = typed.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [...(runs.value ?? [])].reverse().filter((r) => fits(r, asked));
  const rest = found.length - MOST;
  return html`<div class="runs">
    <input type="text" autofocus data-testid="run-search" aria-label="Search among the runs" spellcheck=${false} autocomplete="off" value=${typed.value}
      placeholder="experiment, setting, tag, state, date…" onInput=${(/** @type {any} */ e) => (typed.value = e.target.value)}
      onKeyDown=${(/** @type {KeyboardEvent} */ e) => key(e, found[0])} />
    <ul>${found.slice(0, MOST).map((r) => html`<${Entry} key=${r.id} of=${r} />`)}</ul>
    ${!found.length && html`<p class="hint">No matching runs.</p>`}
    ${rest > 0 && html`<p class="hint">${rest} more: search for them.</p>`}
  </div>`;
}

export function Runs() {
  return html`<${Dialog} name="runs" title="Runs">${dialog.value === "runs" && html`<${RunList} />`}<//>`;
}
