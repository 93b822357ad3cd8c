/** All fields of a preset, folded below the few that its form shows; searched, and sent only where they were changed. @import { FieldsSaid, FullField, Preset } from "./protocol.js" */
import { effect, signal } from "@preact/signals";
import { html, typing, useEffect } from "./html.js";
import { ask } from "./source.js";

export const unfolded = signal(false);
const told = signal(/** @type {Record<string, FullField[]>} */ ({}));
const wrong = signal(""), search = signal(""), wanted = signal("");

/** Those beside the form's own, once they have arrived. @param {Preset | undefined} from @returns {FullField[]} */
export const more = (from) => (from && told.value[from.name]?.filter((f) => from.fields.every((own) => own.name !== f.name))) ?? [];

effect(() => {
  const preset = wanted.value;
  if (!unfolded.value || !preset || told.peek()[preset]) return;
  void ask({ t: "fields", preset }).then((reply) => {
    wrong.value = "error" in reply ? reply.error ?? "" : "";
    if (reply.t === "fields") told.value = { ...told.peek(), [preset]: /** @type {FieldsSaid} */ (reply).fields };
  });
});

/** In which part of the training a field belongs. @param {string} name */
function groupOf(name) {
  const stage = /^plan\.stages\.(\d+)/.exec(name);
  return stage ? `Curriculum, stage ${Number(stage[1]) + 1}` : { task: "Task", model: "Model", plan: "Training" }[name.split(".")[0]] ?? "Further";
}

/** @param {FullField} f @param {string[]} words @param {string} value */
const fits = (f, words, value) => words.every((word) => `${f.name} ${f.meaning} ${f.words} ${value} ${groupOf(f.name)}`.toLowerCase().includes(word));

/** Its type, and what it is if nobody says otherwise. @param {FullField} f */
export const typeOf = (f) => [f.words, f.default === null || (f.default === f.value && !f.words) ? "" : f.default === f.value ? "default" : `default ${f.default}`].filter(Boolean).join(" · ");

/** @param {{from: Preset, typed: Record<string, string>, changed: (field: FullField) => boolean, wrongAt: string | null, entry: (field: FullField) => unknown}} props wrongAt: the field of an error, which is shown whatever is searched for */
export function AllFields({ from, typed, changed, wrongAt, entry }) {
  useEffect(() => void (wanted.value = from.name), [from.name]);
  const all = more(from), words = search.value.toLowerCase().split(/\s+/).filter(Boolean), mine = all.filter(changed).length;
  const shown = all.filter((f) => f.name === wrongAt || fits(f, words, typed[f.name] ?? f.value));
  const groups = [...new Set(shown.map((f) => groupOf(f.name)))];
  return html`<details class="rest all-fields" data-testid="all-fields" open=${unfolded.value} onToggle=${(/** @type {any} */ e) => (unfolded.value = e.target.open)}>
    <summary>All fields${mine > 0 && ` (${mine} changed)`}</summary>
    ${all.length > 0 && html`<input type="text" data-testid="fields-search" placeholder=${`search in ${all.length} further fields`} aria-label="Search in all fields" autocomplete="off" maxlength="200" ...${typing(search)}
      onKeyDown=${(/** @type {KeyboardEvent} */ e) => e.key === "Enter" && e.preventDefault()} />`}
    ${wrong.value && html`<p class="error">${wrong}</p>`}${!all.length && !wrong.value && html`<p class="hint">Asking for them…</p>`}
    ${groups.map((group) => html`<section key=${group} aria-label=${group}><h3>${group}</h3><div class="fields">${shown.filter((f) => groupOf(f.name) === group).map(entry)}</div></section>`)}
    ${all.length > 0 && !shown.length && html`<p class="hint">No field matches.</p>`}</details>`;
}
