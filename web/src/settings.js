/** What the run is: what it was made for, when, and every field of its Spec. */
import { duration, html } from "./html.js";
import { Panel } from "./panel.js";
import { day } from "./picker.js";
import { about, info, run } from "./store.js";

/** @param {{rows: [string, string][], fields?: boolean}} props */
function List({ rows, fields = false }) {
  return html`<dl class=${fields ? "settings fields-of" : "settings"}>${rows.filter(([, value]) => value !== "").map(([name, value]) =>
    html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** @param {import("./protocol.js").Setting} s @returns {[string, string]} */
const pair = (s) => [s.name, s.value];

export function Settings() {
  const known = info.value, settings = about.value?.settings ?? [];
  const rest = settings.filter((s) => !s.changed);
  /** @type {[string, string][]} */
  const told = [["run", run.value ?? ""], ["what", known?.words ?? ""], ["began", day(known?.began ?? null)],
    ["trained for", duration(known?.seconds)], ["tags", known?.tags.join(", ") ?? ""], ["note", known?.note ?? ""]];
  return html`<${Panel} name="settings" title="Settings"><div data-testid="settings">
    <${List} rows=${told} /><${List} fields rows=${settings.filter((s) => s.changed).map(pair)} />
    ${rest.length > 0 && html`<details class="rest" data-testid="settings-rest"><summary>${rest.length} settings at their defaults</summary>
      <${List} fields rows=${rest.map(pair)} /></details>`}</div>
  <//>`;
}
