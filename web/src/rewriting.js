/** A fact rewritten, and facts that join the data: both fork the run. @import { Answer, FactEditSaid } from "./protocol.js" */
import { effect, signal } from "@preact/signals";
import { choose, report } from "./actions.js";
import { answersTo, chosen, facts, said } from "./facts.js";
import { html, number, percent, refusal, typing } from "./html.js";
import { ask } from "./source.js";
import { following, run, step, stored, trainer, training } from "./store.js";

const answer = signal(""), outcome = signal(/** @type {FactEditSaid | null} */ (null)), wrong = signal(""), busy = signal(false);
const rows = signal(""), draw = signal("10"), addWrong = signal(""), adding = signal(false);

const fact = () => (chosen.value === null ? null : (facts.value[chosen.value] ?? null));

effect(() => { // what an edit would do is said of one fact at one step
  void [run.value, chosen.value, stored.value];
  outcome.value = null;
  wrong.value = "";
});

/** The fork is followed, its parent stays beside it. @param {Answer} reply @param {string} parent */
function follow(reply, parent) {
  if (reply.run && reply.run !== parent) choose(reply.run, [parent]);
  step.value = null;
}

/** @param {"fact_edit" | "fact_write"} t */
async function edit(t) {
  const f = fact(), parent = run.value;
  if (!f || !parent || busy.value) return;
  busy.value = true;
  const reply = await ask({ t, run: parent, step: stored.value, subject: f.subject, relation: f.relation, answer: answer.value.trim() });
  busy.value = false;
  const told = /** @type {Answer} */ (reply), kind = /** @type {string} */ (reply.t);
  wrong.value = kind === "answer" && !told.ok ? (told.error ?? "") : "";
  if (kind === "fact_edit") outcome.value = /** @type {any} */ (reply);
  else if (t === "fact_write" && report(told, `Rewritten at step ${told.step}, in a fork.`, true)) follow(told, parent);
}

/** @param {{of: FactEditSaid}} props */
function Told({ of }) {
  return html`<div data-testid="fact-edited"><p>${of.was} → <b>${of.answer}</b> at step ${of.step}, a rank-one change of ${of.matrix}: in ${percent(of.learned)} of fresh prompts. <b>${of.broke}</b> ${of.broke === 1 ? "fact" : "facts"} broke; others moved by ${number(of.moved)} (total variation).</p>
    <p class="hint">Changed: ${of.changed.map((c) => `${c.what} ${c.n} of ${c.of}`).join(" · ")}</p>
    <ul class="broke">${of.others.map((o) => html`<li key=${`${o.subject}|${o.relation}`}>(${o.subject}, ${o.relation}): ${o.was} → <b>${o.now}</b>${o.broke && html` <span class="error">broke</span>`}</li>`)}</ul></div>`;
}

function Rewrite() {
  const f = fact();
  if (!said.value?.editable) return html`<p class="hint">${said.value?.model} cannot be edited.</p>`;
  if (!f) return html`<p class="hint">Choose a fact in the table.</p>`;
  return html`<form class="intervene" onSubmit=${(/** @type {Event} */ e) => (e.preventDefault(), edit("fact_edit"))}>
    <p class="chosen">(${f.subject}, ${f.relation}) <small>${f.answer} in the table</small></p>
    <label>new answer<input type="text" list="fact-answers" maxlength="200" data-testid="fact-answer" ...${typing(answer)} /></label>
    <datalist id="fact-answers">${answersTo(f.relation).slice(0, 300).map((a) => html`<option key=${a} value=${a} />`)}</datalist>
    <div class="act"><button data-testid="fact-try" disabled=${busy.value}>What would it do?</button>
      <button type="button" class="primary" data-testid="fact-write" disabled=${busy.value} onClick=${() => edit("fact_write")}>Rewrite it (forks here)</button>${busy.value && html`<span class="hint" role="status">computing…</span>`}</div></form>
    ${refusal(wrong, "fact-wrong")}${outcome.value && html`<${Told} of=${outcome.value} />`}`;
}

/** A line is a fact: subject, relation, answer. @param {string} text */
const parsed = (text) => text.split("\n").filter((line) => line.trim()).map((line) => line.split(line.includes("\t") ? "\t" : line.includes(";") ? ";" : ",").map((part) => part.trim()));

/** Beside its form a field need not be named. @param {Answer} reply */
const wrongOf = (reply) => (reply.error ?? "").replace(/^facts: /, "");

/** @param {boolean} drawn */
async function add(drawn) {
  const parent = run.value, own = parsed(rows.value), bad = own.findIndex((fact) => fact.length !== 3);
  addWrong.value = !drawn && bad >= 0 ? `line ${bad + 1}: write subject, relation, answer` : !drawn && !own.length ? "write at least one fact" : "";
  if (!parent || adding.value || addWrong.value) return;
  adding.value = true;
  const now = following.value && training.value && trainer.value.run === parent;
  const given = drawn ? { facts: [], draw: Math.trunc(Number(draw.value)) || 0 } : { facts: /** @type {[string, string, string][]} */ (own), draw: 0 };
  const reply = /** @type {Answer} */ (await ask({ t: "add_facts", run: parent, at: now ? null : (stored.value ?? said.value?.step ?? 0), ...given }));
  adding.value = false;
  if (report(reply, `Facts join at step ${reply.step}, in a fork.`, true)) {
    rows.value = "";
    follow(reply, parent);
  } else addWrong.value = wrongOf(reply);
}

function Add() {
  const t = said.value;
  return html`<form class="intervene" onSubmit=${(/** @type {Event} */ e) => (e.preventDefault(), add(false))}>
    <label class="prompt">facts, one a line<textarea rows="3" maxlength="20000" data-testid="facts-rows" placeholder="subject, relation, answer" ...${typing(rows)}></textarea></label>
    <div class="act"><button class="primary" data-testid="facts-add" disabled=${adding.value}>Add them (forks here)</button>
      <label class="inline">or <input class="tiny" inputmode="numeric" aria-label="number of facts to draw" data-testid="facts-draw" ...${typing(draw)} /> drawn</label>
      <button type="button" data-testid="facts-draw-add" disabled=${adding.value} onClick=${() => add(true)}>Draw and add</button></div></form>
    ${refusal(addWrong, "facts-add-wrong")}
    <p class="hint">From ${following.value && training.value ? "now" : `step ${stored.value ?? t?.step ?? 0}`} on. Relations and answers must be known; a new subject takes the place of a noise token (${t?.spare ?? 0} to spare); another answer to a known question replaces the old one.</p>`;
}

export function FactForms() {
  return html`<div class="fact-forms"><section><h3>Rewrite a fact</h3><${Rewrite} /></section>
    <section><h3>Add facts to the data</h3><${Add} /></section></div>`;
}
