/** What the keys do, and what is seen. */
import { Dialog } from "./dialog.js";
import { html } from "./html.js";

const KEYS = [
  ["space", "pause or resume the training"],
  ["← →", "the measured step (a row) before, or after; with shift ten of them"],
  ["Home End", "the first, or the last step"],
  ["Page ↑ ↓", "the step with stored weights before, or after"],
  ["[ ]", "the birth or intervention before, or after"],
  ["P", "play the stored steps, or pause"],
  ["+ −", "the curves: half as many steps, or twice as many; Esc: all of them"],
  ["L", "follow live"],
  ["F", "interventions; again: the next kind"],
  ["B", "branches"],
  ["S", "a sequence of your own"],
  ["N", "a new run"],
  ["T", "lessons"],
  ["R", "all runs, to search in"],
  ["D", "dark or light"],
  ["?", "this help"],
  ["Esc", "closes, or leaves a field"],
];

export function Help() {
  return html`<${Dialog} name="help" title="Help">
    <p>The slider chooses a step for the whole page. <b>Follow live</b> keeps it at the newest; scrubbing, here or on the
      curves, pins a step, and new data do not move it. Diamonds mark births, flags interventions, bars the
      stages of a curriculum, fine lines the steps whose weights are stored. Pictures of a step between them are computed
      when the slider rests there and nothing trains; if that takes long, those of the stored step before it are shown, and the page says so.</p>
    <p>A memory is asked (rows) and answers (columns); blue scores are below zero, orange above. Point at a cell, or move
      there with the arrow keys, for its key, value, score, rank and margin.</p>
    <p>An intervention forks the run: what was measured stays, and both curves are drawn; Branches says which.</p>
    <table class="keys"><tbody>${KEYS.map(([keys, what]) => html`<tr><th>${keys.split(" ").map((k) => html`<kbd>${k}</kbd>`)}</th><td>${what}</td></tr>`)}</tbody></table>
  <//>`;
}
