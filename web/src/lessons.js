/** Which lesson is open, what was predicted, and what its runs have measured. @import { LessonQuestion, LessonRun, LessonSaid, LessonsSaid, Measured } from "./protocol.js" */
import { computed, effect, signal } from "@preact/signals";
import { choose } from "./actions.js";
import { measured } from "./rows.js";
import { ask } from "./source.js";
import { dialog, lessonName, lessonOpen, link, predicted, rows, run, runs, say } from "./store.js";

export { lessonOpen, predicted };
const told = signal(/** @type {LessonSaid | null} */ (null));
export const list = signal(/** @type {LessonsSaid["lessons"]} */ ([]));
export const lesson = computed(() => (told.value?.name === lessonName.value ? told.value : null));

/** Opens one. @param {string} name */
export function shelf(name) {
  lessonName.value = name;
  lessonOpen.value = true;
}

export function close() {
  lessonName.value = null;
}

effect(() => {
  const name = lessonName.value;
  if (name && link.value === "open" && told.peek()?.name !== name) void fetchLesson(name);
});

/** @param {string} name */
async function fetchLesson(name) {
  const reply = await ask({ t: "lesson", name });
  if (reply.t === "lesson") told.value = /** @type {LessonSaid} */ (reply);
  else if ("error" in reply) say(reply.error ?? "", true);
}

effect(() => { // who opens a lesson looks at its first run, if it is there and nothing else is asked for
  const first = lesson.value?.runs[0].run, mine = lesson.value?.runs.some((r) => r.run === run.peek());
  if (first && !mine && runs.value?.some((r) => r.id === first)) choose(first);
});

effect(() => {
  if (dialog.value !== "lessons" || link.value !== "open") return;
  void ask({ t: "lessons" }).then((reply) => {
    if (reply.t === "lessons") list.value = /** @type {LessonsSaid} */ (reply).lessons;
  });
});

/** The name under which a prediction is kept. @param {number} n */
export const asked = (n) => `${lesson.value?.name}:${n}`;

/** The first unless one is named. @param {string | null | undefined} name @returns {LessonRun | undefined} */
export const runNamed = (name) => lesson.value?.runs.find((r) => !name || r.name === name);

/** A number that a run has measured; null: not yet, or it was not looked at. @param {Measured} of */
export function measuredIn(of) {
  const r = runNamed(of.run), held = r && rows.value[r.run], step = of.step === "last" ? r?.steps : of.step;
  return held && step !== undefined && (held.step.at(-1) ?? -1) >= step ? measured(held, of.column, step) : null;
}

/** What is right, where a number is asked for. @param {LessonQuestion} q */
export const valueOf = (q) => (q.number?.measured ? measuredIn(q.number.measured) : q.number?.value ?? null);
