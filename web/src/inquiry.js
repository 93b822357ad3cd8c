/**
 * Questions about a run at the step in view, asked by a panel that is seen. While a training goes on they take at most a
 * twentieth of the time.
 * @import { Answer, InquiryAsked, InquirySaid } from "./protocol.js"
 */
import { computed, effect, signal } from "@preact/signals";
import { latest } from "./source.js";
import { link, ofOthers, run, state, step, stored, trainer, visible } from "./store.js";

const SHARE = 0.05, LEAST = 1000; // of the time; milliseconds between two questions, while a training goes on

/** Changes when the weights in view do. */
const moment = computed(() => (step.value === null ? `live ${state.value?.live ?? ""} ${state.value?.snapshots.at(-1) ?? ""}` : String(stored.value)));

/** The run and step that questions are about; null: there is none. */
const about = computed(() => {
  const known = state.value?.snapshots.length || state.value?.live != null;
  return run.value && known && !ofOthers.value && link.value === "open" ? { run: run.value, step: stored.value } : null;
});

/** When the next question may come that nobody but the training has caused. */
let next = 0;
/** @param {number} seconds that an answer took */
const rest = (seconds) => (next = Math.max(next, performance.now() + Math.max(LEAST, (1000 * seconds) / SHARE)));

/**
 * @template {InquirySaid} S
 * @param {string} panel
 * @param {(about: {run: string, step: number | null}) => InquiryAsked | null} make what is asked, from signals; null: nothing
 * @param {(said: S) => boolean} [again] whether there is more to come
 */
export function inquiry(panel, make, again = () => false) {
  const told = signal(/** @type {{of: string, said: S | null, error: string} | null} */ (null));
  const round = signal(0);
  let asked = "", last = "", planned = 0;
  /** @type {(question: InquiryAsked) => void} */
  const ask = latest((reply, question) => {
    const bad = reply.t === "answer", said = bad ? null : /** @type {S} */ (/** @type {unknown} */ (reply));
    rest(said?.seconds ?? 0);
    told.value = { of: question.run, said, error: bad ? (/** @type {Answer} */ (reply).error ?? "") : "" };
    if (said && again(said)) round.value++;
  });
  effect(() => {
    const question = about.value && visible.value.has(panel) ? make(about.value) : null;
    const text = JSON.stringify(question), key = `${text} ${moment.value} ${round.value}`, trains = trainer.value.state === "running";
    const turn = () => {
      const wait = trains && text === last ? next - performance.now() : 0; // a person need not wait
      if (wait > 0) planned = setTimeout(turn, wait);
      else {
        rest(0);
        asked = key;
        last = text;
        if (question) ask(question);
      }
    };
    clearTimeout(planned);
    if (question && key !== asked) planned = setTimeout(turn, 0);
  });
  return computed(() => (told.value?.of === run.value ? told.value : null));
}
