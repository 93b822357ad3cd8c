/** The memories, each in its association basis, as entries, or as the difference to another step. @import { Picture } from "./protocol.js" */
import { atOther, refused } from "./between.js";
import { DIVERGING } from "./colours.js";
import { Beside, refusedFor, Shows } from "./compare.js";
import { arrived, find } from "./frames.js";
import { html, number, useSignal } from "./html.js";
import { Matrix } from "./matrix.js";
import { gradient } from "./paint.js";
import { Panel } from "./panel.js";
import { measured } from "./rows.js";
import { extent, fit, LEAST } from "./scale.js";
import { lab } from "./source.js";
import { aboutSeen, basis, locked, rooted, rows, shared, shows, stored } from "./store.js";
import { associates, wall } from "./view.js";

function Basis() {
  const shown = associates.value ? basis.value : "raw";
  /** @param {"memory" | "raw"} value @param {string} text @param {string} title */
  const choice = (value, text, title) => html`<button aria-pressed=${shown === value} title=${title}
    disabled=${value === "memory" && !associates.value} data-testid=${`basis-${value}`} onClick=${() => (basis.value = value)}>${text}</button>`;
  return html`<div class="segments" role="group" aria-label="Basis">
    ${choice("memory", "Associations", "Rows are what is asked, columns the answers")}
    ${choice("raw", "Entries", "The entries of the matrix")}</div>`;
}

function Scale() {
  return html`<label class="check" title="All matrices share one scale of colours"><input type="checkbox" data-testid="shared"
      checked=${shared.value} onChange=${() => (shared.value = !shared.value)} /> same scale for all</label>
    <button class="quiet" data-testid="rooted" aria-pressed=${rooted.value}
      title="Colours follow the root of a score: small ones are seen beside large ones" onClick=${() => (rooted.value = !rooted.value)}>show small scores</button>
    <button class="quiet" data-testid="lock" aria-pressed=${locked.value}
      title="Kept, the scale of colours stays as it is; otherwise it grows with the scores" onClick=${() => (locked.value = !locked.value)}>
      ${locked.value ? "scale is kept" : "keep this scale"}</button>
    <button class="quiet" data-testid="fit" title="Fit the scale of colours to the scores that are shown now" onClick=${fit}>rescale</button>`;
}

/** @param {{picture: string}} props */
function ColourBar({ picture }) {
  const most = extent(picture), known = most > LEAST, low = known ? number(-most, 2) : "–", high = known ? number(most, 2) : "–";
  return html`<div class="colourbar" aria-label=${`Colours from ${low} to ${high}`}>
    <span>${low}</span><i style=${{ background: gradient(DIVERGING.value, rooted.value) }}></i>
    <span>${high}</span></div>`;
}

const FEW = 12; // answers that are told at first

/** How many more there are. @param {number} wrong @param {number} all */
function rest(wrong, all) {
  const more = Math.max(0, wrong - FEW);
  return more ? `${more} more wrong, ${all - wrong} right` : `${all - FEW} more`;
}

/** What is answered to each question, by name, the wrong answers first. @param {{picture: Picture}} props */
function Answers({ picture }) {
  void arrived.value;
  const frame = find(picture.name), best = frame?.best, right = picture.right, all = useSignal(false);
  if (!best || !right) return null;
  const told = best.map((column, row) => ({ row, given: picture.columns[column] ?? column, wanted: picture.columns[right[row]] ?? right[row], good: column === right[row] }));
  const whole = picture.name === "memory:W_F" ? measured(rows.value[frame.run], "all.accuracy", frame.step) : null;
  const wrong = told.filter((t) => !t.good), inOrder = [...wrong, ...told.filter((t) => t.good)];
  return html`<details class="answers" data-testid=${`answers-${picture.name}`} open>
    <summary>This matrix alone answers ${told.length - wrong.length} of ${told.length} correctly</summary>
    ${whole !== null && html`<p class="hint">The whole model, in which its input reaches the answer beside this matrix, too: ${Math.round(whole * told.length)} of ${told.length}, as the curve “accuracy over all facts” says.</p>`}
    <ul>${(all.value ? inOrder : inOrder.slice(0, FEW)).map((t) => html`<li key=${t.row} class=${t.good ? "right" : "wrong"}><span>${picture.rows[t.row] ?? t.row}</span>
      <b>${t.given}</b>${!t.good && html`<small>right: ${t.wanted}</small>`}</li>`)}</ul>
    ${inOrder.length > FEW && html`<button class="quiet" onClick=${() => (all.value = !all.value)}>${all.value ? "fewer" : `… and ${rest(wrong.length, told.length)}`}</button>`}</details>`;
}

/** @param {{picture: Picture, large: boolean, enlarge: () => void}} props */
function Memory({ picture, large, enlarge }) {
  const marks = { rows: picture.rows, columns: picture.columns }, why = refusedFor(picture.name);
  return html`<figure class=${large ? "memory large" : "memory"}>
    <figcaption><button class="name" aria-pressed=${large} title=${large ? "Smaller" : "Larger"} onClick=${enlarge}>
      ${picture.title}</button></figcaption>
    <p class="axes">${picture.asks} <span aria-label="down">↓</span>  ${picture.answers} <span aria-label="across">→</span></p>
    ${why ? html`<p class="hint" data-testid="refused">${why}</p>` : html`<${Matrix} picture=${picture.name} label=${picture.title} marks=${() => marks} scale=${() => ({ extent: extent(picture.name), rooted: rooted.value })}
      room=${large ? Math.max(420, innerHeight - 230) : 420} />
    <${ColourBar} picture=${picture.name} />`}
    <${Answers} picture=${picture} />
  </figure>`;
}

export function Wall() {
  const large = useSignal("");
  return html`<${Panel} name="wall" title="Memories" note=${shows.value === "b" ? "" : atOther.value} tools=${html`<${Basis} /><${Shows} /><${Scale} />`}>
    <${Beside} />
    ${refused.value && html`<p class="hint" data-testid="not-computed">The weights of step ${stored} are the nearest: ${refused}.</p>`}
    <div class="wall">${wall.value.map((p) => html`<${Memory} key=${p.name} picture=${p} large=${large.value === p.name}
      enlarge=${() => (large.value = large.value === p.name ? "" : p.name)} />`)}</div>
    ${!wall.value.length && html`<p class="hint">${aboutSeen.value ? `This ${lab ? "run" : "file"} has no matrices to show.` : "Waiting for the run."}</p>`}
  <//>`;
}
