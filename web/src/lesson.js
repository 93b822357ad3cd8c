/** A lesson beside its run: text, links that move the page, and questions whose answer is shown after a prediction. @import { LessonBlock, LessonPart, LessonQuestion, Measured } from "./protocol.js" */
import { Dialog } from "./dialog.js";
import { follow, offered, state as stateOf, train } from "./guide.js";
import { html, number, useSignal } from "./html.js";
import { asked, close, lesson, lessonOpen, list, measuredIn, predicted, shelf, valueOf } from "./lessons.js";
import { lab } from "./source.js";
import { dialog } from "./store.js";

/** @param {{of: Measured}} props */
function Value({ of }) {
  const value = measuredIn(of);
  return html`<b title=${`${of.column} at step ${of.step}`} data-testid="lesson-value">${value === null ? "…" : number(value)}</b>`;
}

/** @param {{part: LessonPart}} props */
function Part({ part }) {
  if (part.value) return html`<${Value} of=${part.value} />`;
  const { go } = part;
  if (go) return offered(go) ? html`<button class="go" onClick=${() => follow(go)}>${part.text}</button>` : html`${part.text} <small>(needs a lab)</small>`;
  return part.mark ? html`<${part.mark}>${part.text}<//>` : html`${part.text}`; // strong, em or code, which is all that a server may say
}

/** @param {{words: LessonPart[]}} props */
const Words = ({ words }) => html`${words.map((part, i) => html`<${Part} key=${i} part=${part} />`)}`;

/** @param {{blocks: LessonBlock[]}} props */
function Blocks({ blocks }) {
  return html`${blocks.map((b, i) => b.kind === "question" ? html`<${Question} key=${i} q=${b} />`
    : b.kind === "heading" ? html`<h3 key=${i}><${Words} words=${b.words} /></h3>`
    : b.kind === "list" ? html`<ul key=${i}>${b.items.map((words, j) => html`<li key=${j}><${Words} words=${words} /></li>`)}</ul>`
    : html`<p key=${i}><${Words} words=${b.words} /></p>`)}`;
}

/** @param {LessonQuestion} q @param {string} said */
function isRight(q, said) {
  if (q.choices) return Number(said) === q.right;
  const value = valueOf(q);
  return value === null ? null : Math.abs(Number(said) - value) <= /** @type {any} */ (q.number).within;
}

/** What is asked; once a prediction was made, whether it was right, and why. @param {{q: LessonQuestion}} props */
function Question({ q }) {
  const made = predicted.value[asked(q.n)], draft = useSignal(""), done = made !== undefined;
  const said = made ?? draft.value, ready = said.trim() !== "" && Number.isFinite(Number(said.replace(",", ".")));
  const predict = (/** @type {Event} */ e) => {
    e.preventDefault();
    if (ready && !done) predicted.value = { ...predicted.value, [asked(q.n)]: said.trim().replace(",", ".") };
  };
  const again = () => {
    const { [asked(q.n)]: _, ...rest } = predicted.value;
    predicted.value = rest;
    draft.value = "";
  };
  return html`<form class="question" data-testid=${`question-${q.n}`} onSubmit=${predict}><fieldset disabled=${done}>
      <legend>Your prediction</legend><${Blocks} blocks=${q.ask} />
      ${q.choices ? q.choices.map((words, i) => html`<label key=${i} class=${done && i === q.right ? "choice hit" : "choice"}><input type="radio" name=${`q${q.n}`} data-testid=${`choice-${q.n}-${i}`}
          checked=${said === String(i)} onChange=${() => (draft.value = String(i))} /><span><${Words} words=${words} />${done && html` <small>${[said === String(i) && "your prediction", i === q.right && "right"].filter(Boolean).join(", ")}</small>`}</span></label>`)
        : html`<label class="choice">I expect <input type="text" class="short" inputmode="decimal" autocomplete="off" data-testid=${`number-${q.n}`} value=${said} aria-invalid=${said.trim() !== "" && !ready}
            onInput=${(/** @type {any} */ e) => (draft.value = e.target.value)} /></label>`}
      ${!done && html`<button class="primary" data-testid=${`predict-${q.n}`} disabled=${!ready}>Predict</button>`}</fieldset>
    <div aria-live="polite">${done && html`<div class="reveal" data-testid=${`answer-${q.n}`}><${Verdict} q=${q} said=${made} /><${Blocks} blocks=${q.answer} />
      <button type="button" class="quiet" onClick=${again}>Predict again</button></div>`}</div></form>`;
}

/** @param {{q: LessonQuestion, said: string}} props */
function Verdict({ q, said }) {
  const right = isRight(q, said), told = q.choices ? "" : ` You said ${number(Number(said))}; it is ${number(valueOf(q))}.`;
  if (right === null) return html`<p class="hint">The run has not come that far.</p>`;
  return html`<p class=${right ? "good" : "error"} data-testid=${`verdict-${q.n}`}><b>${right ? "As you predicted." : "Not as you predicted."}</b>${told}</p>`;
}

/** Each run of the lesson: shown, in training, or still to be trained. */
function RunsOf() {
  return html`<ul>${lesson.value?.runs.map((r) => {
    const now = stateOf(r);
    return html`<li key=${r.name}><b>${r.name}</b> <small data-testid=${`lesson-run-${r.name}`}>${now.words}</small>
      ${now.needed && html` <button data-testid=${`train-${r.name}`} disabled=${now.busy} onClick=${() => train(r)}>${now.begun ? "Go on" : "Train it"}</button>`}</li>`;
  })}</ul>`;
}

export function Lesson() {
  const l = lesson.value, open = lessonOpen.value;
  if (!l) return null;
  const questions = l.blocks.filter((b) => b.kind === "question").length, done = Object.keys(predicted.value).filter((key) => key.startsWith(`${l.name}:`)).length;
  return html`<aside class="lesson" data-testid="lesson" data-open=${open} aria-label=${`Lesson: ${l.title}`}>
    <header><h2><button class="fold" data-testid="lesson-fold" aria-expanded=${open} aria-controls="lesson-body" onClick=${() => (lessonOpen.value = !open)}>
      <span class="chevron" aria-hidden="true"></span>${l.title}</button></h2>
      <button class="icon" data-testid="lesson-close" aria-label="Close the lesson" title="Close the lesson" onClick=${close}>×</button></header>
    <div class="lesson-body" id="lesson-body" hidden=${!open} tabindex="0">
      ${l.about && html`<p class="hint">${l.about}</p>`}${lab && html`<${RunsOf} />`}<${Blocks} blocks=${l.blocks} />
      ${questions > 0 && html`<p class="hint" data-testid="lesson-done">${done} of ${questions} predictions made</p>`}</div></aside>`;
}

/** All lessons, to choose one. */
export function Lessons() {
  return html`<${Dialog} name="lessons" title="Lessons"><ul class="shelf">${list.value.map((l) => html`<li key=${l.name}><button data-testid=${`lesson-${l.name}`} onClick=${() => {
      dialog.value = null;
      shelf(l.name);
    }}><b>${l.title}</b><small>${l.about}</small></button></li>`)}</ul>
    <p class="hint">Your own: <code>engram lesson FILE.md</code></p><//>`;
}
