/** A file of one's own in the form of a new run: a text of letters for a preset, or a table of facts. @import { Plain, Preset } from "./protocol.js" */
import { signal } from "@preact/signals";
import { html } from "./html.js";

const MOST = 2 ** 20; // bytes of a file, and bytes that escaping its signs may add
/** @typedef {{name: string, kind: "text" | "facts", content: string}} Chosen */

export const upload = signal(/** @type {Chosen | null} */ (null));
const wrong = signal("");

/** The fields of a training on facts. */
export const OF_FACTS = [
  { name: "steps", type: "integer", value: 2000, choices: null, meaning: "of 256 prompts each" },
  { name: "width", type: "integer", value: "", choices: null, meaning: "empty: one that holds eight times as many facts" },
];

/** @param {Event & {target: any}} e */
async function choose(e) {
  /** @type {File | undefined} */
  const file = e.target.files[0];
  upload.value = null;
  wrong.value = file && file.size > MOST ? `${file.name}: ${(file.size / MOST).toFixed(1)} MB; at most 1 MB is taken.` : "";
  if (!file || wrong.value) return;
  try {
    const content = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer());
    if (!content || JSON.stringify(content).length - content.length > MOST) wrong.value = `${file.name}: not a text.`;
    else upload.value = { name: file.name.slice(0, 200), kind: /\.(csv|tsv)$/i.test(file.name) ? "facts" : "text", content };
  } catch {
    wrong.value = `${file.name}: not UTF-8 text; save it as UTF-8.`;
  }
}

/** Why it cannot be used with a preset; empty: it can. @param {Preset | undefined} from */
export const misfit = (from) => (upload.value?.kind === "text" && from && !from.text ? "This preset takes no text: choose one on bigrams, such as birth.joint." : "");

export function forget() {
  upload.value = null;
  wrong.value = "";
  const box = document.querySelector("[type=file]");
  if (box instanceof HTMLInputElement) box.value = "";
}

/** @param {{from: Preset}} props */
export function Upload({ from }) {
  const file = upload.value, bad = misfit(from);
  return html`<details class="rest upload" data-testid="upload"><summary>Data of your own</summary>
    <p class="hint">A text in the place of Shakespeare’s, or a table of facts (CSV: subject, relation, answer), in UTF-8, at most 1 MB. The record keeps what the run needs of it.</p>
    <input type="file" data-testid="upload-file" aria-label="File with a text or a table" onChange=${choose} />
    ${file && html`<span data-testid="upload-told"><label>read <b>${file.name}</b> as <select data-testid="upload-kind" value=${file.kind} onChange=${(/** @type {any} */ e) => (upload.value = { ...file, kind: e.target.value })}>
      <option value="text">a text</option><option>facts</option></select></label>
      <button type="button" class="quiet" onClick=${forget}>without it</button>${bad && html`<span class="error" role="alert"> ${bad}</span>`}</span>`}
    ${wrong.value && html`<p class="error" role="alert" data-testid="upload-error">${wrong}</p>`}</details>`;
}

/** What starts a training on it. @param {Chosen} file @param {string} preset @param {number} seed @param {Record<string, Plain>} settings @returns {import("./protocol.js").UploadAsked} */
export const question = ({ name, kind, content }, preset, seed, settings) => ({ t: "upload", kind, name, content, preset: kind === "text" ? preset : null, seed, settings });
