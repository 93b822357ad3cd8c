/** Another answer written into the model: what moved, and the way back. @import { Answer, EditInForce, EditSaid } from "./protocol.js" */
import { computed, signal } from "@preact/signals";
import { html, number, percent } from "./html.js";
import { Computing, Panel } from "./panel.js";
import { ask } from "./source.js";
import { edited, run, say, state, stored } from "./store.js";

const prompt = signal("The capital of France is"), answer = signal("Rome");
/** What the last edit did, as long as it is in force; a reload keeps it. */
const said = computed(() => {
  const last = edited.value, there = last?.run === run.value && state.value?.edits?.some((e) => e.prompt === last.said.prompt && e.answer === last.said.answer);
  return last && there ? last.said : null;
});
const wrong = signal(""), busy = signal(false);

/** @param {Event} e */
async function write(e) {
  e.preventDefault();
  if (!run.value || busy.value) return;
  busy.value = true;
  const reply = await ask({ t: "edit", run: run.value, step: stored.value, prompt: prompt.value, answer: answer.value });
  busy.value = false;
  take(reply, "The edit is in force.");
}

/** @param {number} edit */
async function undo(edit) {
  if (!run.value) return;
  take(await ask({ t: "undo", run: run.value, step: stored.value, edit }), "The edit was undone.");
}

/** @param {import("./source.js").Reply} reply @param {string} good */
function take(reply, good) {
  const bad = reply.t === "answer", kind = /** @type {string} */ (reply.t);
  wrong.value = bad ? /** @type {Answer} */ (reply).error ?? "" : "";
  if (kind === "edit" && run.value) edited.value = { run: run.value, said: /** @type {any} */ (reply) };
  if (!bad) say(good);
}

/** @param {{of: EditSaid}} props */
function Told({ of }) {
  return html`<table class="cuts" data-testid="edited"><thead><tr><th></th><th>before</th><th>after</th></tr></thead><tbody>
    <tr><td>likeliest</td><td>${of.before.top}</td><td><b>${of.after.top}</b></td></tr>
    <tr><td>p(${of.was})</td><td>${percent(of.before.p_old)}</td><td>${percent(of.after.p_old)}</td></tr>
    <tr><td>p(${of.answer})</td><td>${percent(of.before.p_new)}</td><td>${percent(of.after.p_new)}</td></tr>
    <tr><td>loss on text (nats)</td><td>${number(of.loss[0])}</td><td>${number(of.loss[1])}</td></tr>
    ${of.changed.map((c) => html`<tr key=${c.what}><td>${c.what}</td><td></td><td>${c.do} of ${c.of}</td></tr>`)}</tbody></table>
    ${of.notes.map((note) => html`<p class="hint">${note}</p>`)}<small>outer product into ${of.matrix}, ${of.seconds} s</small>`;
}

/** @param {{edits: EditInForce[]}} props */
function InForce({ edits }) {
  if (!edits.length) return html`<p class="hint" data-testid="no-edits">No edit is in force. The files of the model are never written to.</p>`;
  return html`<ol class="events" data-testid="edits">${edits.map((e) => html`<li key=${e.edit}><button data-testid=${`undo-${e.edit}`} onClick=${() => undo(e.edit)}>Undo</button>
    ${" "}“${e.prompt}” ${e.was} → <b>${e.answer}</b></li>`)}</ol>`;
}

export function Edits() {
  return html`<${Panel} name="edits" title="Edit a fact"><form class="intervene" onSubmit=${write}>
    <label class="prompt">prompt<input type="text" maxlength="2000" data-testid="edit-prompt" value=${prompt.value} onInput=${(/** @type {any} */ e) => (prompt.value = e.target.value)} /></label>
    <label>new answer<input type="text" maxlength="200" data-testid="edit-answer" value=${answer.value} onInput=${(/** @type {any} */ e) => (answer.value = e.target.value)} /></label>
    <div class="act"><button class="primary" data-testid="edit" disabled=${busy.value}>Write it</button>${busy.value && html`<${Computing} />`}</div></form>
    ${wrong.value && html`<p class="error" data-testid="edit-wrong">${wrong}</p>`}${said.value && html`<${Told} of=${said.value} />`}<${InForce} edits=${state.value?.edits ?? []} />
  <//>`;
}
