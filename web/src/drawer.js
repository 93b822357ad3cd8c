/** The drawer of a panel: what its numbers mean, and the ways to take them away. @import { Item } from "./declared.js" */
import { signal } from "@preact/signals";
import { save } from "./csv.js";
import { DECLARED } from "./declared.js";
import { arrived } from "./frames.js";
import { html, useSignal } from "./html.js";
import { picturesOf, pictureOf } from "./snapshots.js";
import { say } from "./store.js";

/** Panels whose drawer is open. @type {import("@preact/signals").Signal<string[]>} */
export const drawers = signal([]);

/** @param {string} name */
const toggle = (name) => (drawers.value = drawers.value.includes(name) ? drawers.value.filter((n) => n !== name) : [...drawers.value, name]);

/** @param {{name: string}} props */
export function DrawerButton({ name }) {
  if (!DECLARED[name]) return null;
  return html`<button class="quiet data" data-testid=${`data-${name}`} aria-expanded=${drawers.value.includes(name)} aria-controls=${`drawer-${name}`}
    title="Formula, numbers and pictures of this panel" onClick=${() => toggle(name)}>Data</button>`;
}

/** @param {Item} item */
async function saveCsv(item) {
  try {
    save(`${item.file}.csv`, new Blob([await item.csv()], { type: "text/csv" }));
  } catch (error) {
    say(`No CSV: ${error instanceof Error ? error.message : error}`, true);
  }
}

/** Where a browser gives no way to the clipboard, the text is there to be selected. @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
    return "copied";
  } catch {
    return "select it to copy";
  }
}

/** @param {{items: Item[]}} props */
function Numbers({ items }) {
  const code = useSignal(""), how = useSignal("");
  /** @param {Item} item */
  const show = async (item) => {
    code.value = item.python?.() ?? "";
    how.value = await copy(code.value);
  };
  if (!items.length) return html`<p class="hint">There are no numbers to take away yet.</p>`;
  return html`<ul>${items.map((item) => html`<li key=${item.file}><b>${item.title}</b> <small>${item.note}</small>
      <span class="acts"><button data-testid="csv" onClick=${() => saveCsv(item)} aria-label=${`${item.title} as CSV`}>CSV</button>
      ${item.picture && html`<button data-testid="picture" onClick=${() => pictureOf(item.picture)?.save()} aria-label=${`${item.title} as PNG`}>PNG</button>`}
      ${item.python && html`<button data-testid="python" onClick=${() => show(item)} aria-label=${`copy as Python: ${item.title}`}>copy as Python</button>`}</span></li>`)}</ul>
    ${code.value && html`<pre data-testid="code" tabindex="0" aria-label="Python">${code}</pre><small role="status">${how}</small>`}`;
}

/** Those that belong to no numbers of their own. @param {{name: string, items: Item[]}} props */
function Pictures({ name, items }) {
  const found = picturesOf(name).filter((p) => !items.some((item) => item.picture === p.name));
  if (!found.length) return null;
  return html`<ul>${found.map((p) => html`<li key=${p.title}><b>${p.title}</b>
    <span class="acts"><button data-testid="picture" aria-label=${`${p.title} as ${p.kind}`} onClick=${p.save}>${p.kind}</button></span></li>`)}</ul>`;
}

/** @param {{name: string}} props */
export function Drawer({ name }) {
  const of = DECLARED[name];
  if (!of || !drawers.value.includes(name)) return null;
  void arrived.value; // what can be taken away are the pictures that are there
  const items = of.items();
  return html`<div class="drawer" id=${`drawer-${name}`} data-testid=${`drawer-${name}`} role="region" aria-label="Data of this panel">
    <pre class="formula">${of.formula}</pre><p>${of.meaning}</p>
    <${Numbers} items=${items} /><${Pictures} name=${name} items=${items} /></div>`;
}
