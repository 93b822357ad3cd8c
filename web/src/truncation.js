/** One matrix with a share of its singular values: what a prompt is answered, and the loss on text. @import { Answer, TruncateAsked, TruncateSaid } from "./protocol.js" */
import { signal } from "@preact/signals";
import { html, number, percent } from "./html.js";
import { Computing, Panel } from "./panel.js";
import { latest } from "./source.js";
import { model, run, stored, truncation } from "./store.js";

const NAMES = /** @type {Record<string, string>} */ ({ Q: "W_Q queries", K: "W_K keys", V: "W_V values", O: "W_O output", G: "W_G gate", I: "W_I up", F: "W_F down" });
const said = signal(/** @type {TruncateSaid | null} */ (null));
const wrong = signal(""), busy = signal(false);

/** @type {(question: TruncateAsked) => void} */
const ask = latest((reply) => {
  const bad = reply.t === "answer";
  busy.value = false;
  wrong.value = bad ? /** @type {Answer} */ (reply).error ?? "" : "";
  said.value = bad ? null : /** @type {any} */ (reply);
});

const layer = () => truncation.value.layer || String(Math.max(1, Math.round((model.value?.layers ?? 1) / 3)));
const matrix = () => truncation.value.matrix || (model.value?.matrices.includes("I") ? "I" : model.value?.matrices.at(-1) ?? "");

/** @param {Event} e */
function cut(e) {
  e.preventDefault();
  if (!run.value) return;
  const { prompt, answer, rival, share } = truncation.value;
  busy.value = true;
  ask({ t: "truncate", run: run.value, step: stored.value, layer: Number(layer()), matrix: matrix(), share: Number(share), prompt, answer, rival });
}

/** @param {string} name */
const set = (name) => (/** @type {any} */ e) => (truncation.value = { ...truncation.value, [name]: e.target.value });

/** @param {{name: "prompt" | "answer" | "rival", label: string}} props */
const Word = ({ name, label }) => html`<label class=${name}>${label}<input type="text" data-testid=${`truncate-${name}`} maxlength="2000" value=${truncation.value[name]} onInput=${set(name)} /></label>`;

/** @param {{name: string, before: string, after: string}} props */
const Line = ({ name, before, after }) => html`<tr><td>${name}</td><td>${before}</td><td>${after}</td></tr>`;

/** @param {{of: TruncateSaid}} props */
function Told({ of }) {
  const rival = of.before.p_rival !== null;
  return html`<table class="cuts" data-testid="truncated"><thead><tr><th></th><th>whole</th><th>${of.matrix}, ${of.rank} of ${of.of} singular values</th></tr></thead>
    <tbody><${Line} name="likeliest" before=${of.before.top} after=${of.after.top} />
      <${Line} name="p(answer)" before=${percent(of.before.p_answer)} after=${percent(of.after.p_answer)} />
      ${rival && html`<${Line} name="p(rival)" before=${percent(of.before.p_rival)} after=${percent(of.after.p_rival)} />`}
      ${of.loss && html`<${Line} name="loss on text (nats)" before=${number(of.loss[0])} after=${number(of.loss[1])} />`}</tbody></table>
    <small>${of.seconds} s</small>`;
}

export function Truncation() {
  return html`<${Panel} name="truncation" title="Truncate a matrix"><form class="intervene" onSubmit=${cut}>
    <label>layer<input class="tiny" type="text" inputmode="numeric" data-testid="truncate-layer" value=${layer()} onInput=${set("layer")} /></label>
    <label>matrix<select data-testid="truncate-matrix" value=${matrix()} onChange=${set("matrix")}>${[...(model.value?.matrices ?? "")].map((m) => html`<option key=${m} value=${m}>${NAMES[m]}</option>`)}</select></label>
    <label>share ρ kept: ${percent(Number(truncation.value.share))}<input type="range" min="0" max="1" step="0.01" data-testid="truncate-share" value=${truncation.value.share} onInput=${set("share")} onChange=${cut} /></label>
    <${Word} name="prompt" label="prompt" /><${Word} name="answer" label="answer" /><${Word} name="rival" label="rival (may be empty)" />
    <div class="act"><button class="primary" data-testid="truncate">Truncate</button>${busy.value && html`<${Computing} />`}</div></form>
    ${wrong.value && html`<p class="error" data-testid="truncate-wrong">${wrong}</p>`}${said.value && html`<${Told} of=${said.value} />`}
  <//>`;
}
