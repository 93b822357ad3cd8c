/** Where each head looks on a sequence, and what would be predicted without it. */
import { toggleHead } from "./actions.js";
import { HeadKey, Strip } from "./arcs.js";
import { atOther } from "./between.js";
import { DIVERGING, RISING } from "./colours.js";
import { Beside, chosenElsewhere, nameOf, refusedFor, Shows } from "./compare.js";
import { html } from "./html.js";
import { Matrix } from "./matrix.js";
import { gradient } from "./paint.js";
import { Panel } from "./panel.js";
import { Predictions } from "./predictions.js";
import { headsWrong } from "./probing.js";
import { lab, needsLab } from "./source.js";
import { chosen, pending, problem, query, reading, roleOf } from "./sequence.js";
import { about, isOff, model, ofOthers, run, shows, subtracted, text, tokens } from "./store.js";
import { maps } from "./view.js";

/** @param {string} value */
function type(value) {
  chosen.value = null;
  text.value = value;
  if (!value) tokens.value = null;
}

function Own() {
  return html`<div class="own"><label><span>Your own sequence</span>
    <input type="text" data-testid="sequence-input" spellcheck=${false} autocomplete="off" value=${text.value} maxlength="4096"
      placeholder=${ofOthers.value ? "type or paste a text; empty: random tokens that come twice" : "type or paste; empty: one of the task’s"} aria-describedby="sequence-problem"
      onInput=${(/** @type {any} */ e) => type(e.target.value)} /></label>
    <button data-testid="sequence-reset" disabled=${!text.value} onClick=${() => type("")}>${ofOthers.value ? "random tokens" : "the task’s own"}</button>
    <span class="error" id="sequence-problem" data-testid="sequence-problem">${problem}</span></div>`;
}

/** @param {{layer: number, head: number, name: string}} props */
function HeadMap({ layer, head, name }) {
  const off = isOff(layer, head), why = refusedFor(name), title = `layer ${layer}, head ${head}`;
  return html`<figure class=${off ? "memory off" : "memory"}>
    <figcaption data-testid=${`head-${layer}.${head}`}><span>layer ${layer}, head ${head}<br /><small>${roleOf(layer, head) || (reading.value?.heads.length ? "no role that probes confirm" : "")}</small></span>
      ${lab && html`<label class="check"><input type="checkbox" data-testid=${`ablate-${layer}.${head}`} checked=${off}
        onChange=${() => toggleHead(layer, head)} /> without it</label>`}</figcaption>
    ${why ? html`<p class="hint" data-testid="refused">${why}</p>` : html`<${Matrix} picture=${name} label=${`Attention of ${title}`} room=${420} marks=${marks}
      scale=${(/** @type {import("./protocol.js").Frame} */ frame) => ({ extent: frame.minus === null ? null : 1, rooted: true })}
      pick=${(/** @type {{row: number}} */ cell) => (chosen.value = cell.row)} />`}
  </figure>`;
}

/** A long sequence is numbered, a short one shows its tokens. @param {import("./protocol.js").Frame} frame */
function marks({ shape }) {
  const known = reading.value?.marks ?? [], fits = known.length === shape[1] && shape[1] <= 40;
  const own = fits ? known : Array.from({ length: shape[1] }, (_, i) => String(i + 1));
  return { rows: own.slice(0, shape[0]), columns: own };
}

/** Colours follow the root of the weight, so their stops stand at the squares. */
function Bar() {
  const change = subtracted.value !== null, least = change ? "−1" : "0";
  const rising = RISING.value.map((colour, i, all) => `${colour} ${100 * (i / (all.length - 1)) ** 2}%`);
  const background = change ? gradient(DIVERGING.value, true) : `linear-gradient(90deg, ${rising.join(",")})`;
  return html`<div class="colourbar" aria-label=${`Colours from ${least} to 1`}><span>${least}</span>
    <i style=${{ background }}></i><span>1</span></div>`;
}

export function Attention() {
  if (about.value && !maps.value.length) {
    const reads = about.value.settings.some((s) => s.name === "model.heads");
    const none = reads ? "The heads of this model read a prompt once, at its end; their attention is not drawn here." : "This model has no attention heads.";
    const why = !lab && about.value.heads.length ? "This file has no attention of this run." : !model.value ? none : headsWrong.value || "Measuring all heads…";
    return html`<${Panel} name="attention" title="Attention"><p class="hint">${why}</p><//>`;
  }
  return html`<${Panel} name="attention" title="Attention" note=${shows.value === "b" ? "" : atOther.value} tools=${html`<${Shows} />`}>
    ${ofOthers.value ? html`<${Beside} />` : chosenElsewhere()}
    ${lab ? html`<${Own} />` : html`<p class="hint" data-testid="needs-lab">On a sequence of the task that training never saw. ${needsLab("Sequences of your own, and heads taken away,", run.value)}</p>`}${model.value && html`<p class="hint">The heads that are picked in the grids, or else the strongest of each kind.</p>`}
    <div class=${pending.value ? "wall waiting" : "wall"} data-testid="maps">${maps.value.map((m) => html`<${HeadMap} key=${m.name} ...${m} />`)}</div>
    <${Bar} />
    ${reading.value && !pending.value && html`<div class="line"><h3>Position ${query.value + 1} looks at${subtracted.value === null ? "" : `, more than ${nameOf(subtracted.value)}`}</h3><${HeadKey} /></div>`}
    ${!pending.value && html`<${Strip} /><${Predictions} />`}
  <//>`;
}
