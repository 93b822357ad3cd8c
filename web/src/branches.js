/** All branches of one training: pick one to look at, tick others to see their curves too. @import { Run } from "./protocol.js" */
import { choose, drawBeside } from "./actions.js";
import { compareWith } from "./compare.js";
import { dashOf } from "./colours.js";
import { forkedFrom } from "./forks.js";
import { html, Swatch } from "./html.js";
import { Panel } from "./panel.js";
import { also, info, run, runs, trainer, trains } from "./store.js";

/** @typedef {{run: Run, depth: number}} Leaf */

/** Depth first, so that forks stand under what they were forked from. @param {Run[]} family @returns {Leaf[]} */
export function tree(family) {
  const parents = new Map(family.map((r) => [r, forkedFrom(r, family)]));
  /** @type {(parent: Run | undefined, depth: number) => Leaf[]} */
  const under = (parent, depth) => family.filter((r) => parents.get(r) === parent)
    .sort((a, b) => a.parts_at - b.parts_at)
    .flatMap((r) => [{ run: r, depth }, ...under(r, depth + 1)]);
  return under(undefined, 0);
}

/** @param {{leaf: Leaf}} props */
function Branch({ leaf }) {
  const { id, events, parts_at, state } = leaf.run, mine = id === run.value, place = also.value.indexOf(id);
  const title = events.length ? events[events.length - 1].what : "without interventions";
  const word = trains(id) ? trainer.value.state : state;
  return html`<li class=${mine ? "branch mine" : "branch"} style=${{ "--depth": leaf.depth }}>
    <button data-testid=${`branch-${id}`} aria-current=${mine} title=${id} onClick=${() => choose(id)}>
      <span>${title}</span><small>${events.length ? `from step ${parts_at}` : ""}</small>
      <span class="state" data-state=${word}>${word}</span></button>
    ${place < 0 && !mine ? html`<i class="swatch"></i>` : html`<${Swatch} wide=${mine} dash=${mine ? [] : dashOf(place)} />`}
    ${!mine && html`<button class="quiet compare" data-testid=${`compare-${id}`} aria-label=${`Compare with: ${title}`} title="Show A − B: B is this branch, at the step of A"
      onClick=${() => compareWith(id)}>compare</button>`}
    <label class="check" title="Draw its curves too"><input type="checkbox" aria-label=${`Draw the curves of: ${title}`}
      checked=${mine || also.value.includes(id)} disabled=${mine}
      onChange=${(/** @type {any} */ e) => drawBeside([id], e.target.checked)} /></label>
  </li>`;
}

export function Branches() {
  const family = (runs.value ?? []).filter((r) => r.family === info.value?.family);
  return html`<${Panel} name="branches" title="Branches">
    <ul class="branches" data-testid="branches">${tree(family).map((leaf) => html`<${Branch} key=${leaf.run.id} leaf=${leaf} />`)}</ul>
    ${family.length < 2 && html`<p class="hint">An intervention forks the run; the branches are listed here, and their curves drawn together.</p>`}
  <//>`;
}
