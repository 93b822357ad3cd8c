/** Shows the page, then opens the connection. */
import "./session.js"; // first: everything else begins with what was kept
import { render } from "preact";
import { App } from "./app.js";
import { html } from "./html.js";
import "./keys.js";
import { drawn } from "./matrix.js";
import { forget, frames, heard, seen } from "./receive.js";
import { connect, send } from "./source.js";
import { rows } from "./store.js";
import { askAgain, lastView } from "./view.js";

render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("lab")));

connect({
  heard,
  seen,
  opened: () => {
    forget();
    send({ t: "runs" });
    askAgain();
  },
});

/** To look in from outside; nothing can be changed through it. */
const engramLab = Object.freeze({
  rows: (/** @type {string} */ run) => structuredClone(rows.peek()[run] ?? null),
  view: () => structuredClone(lastView()),
  drawn: (/** @type {string} */ picture) => structuredClone(drawn.get(picture) ?? null),
  frames,
});
Object.defineProperty(window, "engramLab", { value: engramLab });
