/** A reload goes on where it was: run and step stand in the address, the rest is kept for this tab, taste for this browser. */
import { effect } from "@preact/signals";
import { lab } from "./source.js";
import * as store from "./store.js";
import { theme } from "./theme.js";

const { run, step } = store;
const TAB = "engram.lab", BROWSER = "engram.lab.taste";
const { also, alsoOf, edited, truncation, basis, shows, other, minus, shared, locked, rooted, ablate, picked, text, tokens, folded, lessonName, lessonOpen, predicted, logSteps, groupsSwitched, banded } = store;
const OF_TAB = { also, alsoOf, edited, truncation, basis, shows, other, minus, shared, locked, rooted, ablate, picked, text, tokens, folded, lessonOpen, predicted };
const OF_BROWSER = { theme, logSteps, groupsSwitched, banded };

/** @typedef {Record<string, import("@preact/signals").Signal<any>>} Signals */

/** A page in a frame of its own, as in a notebook, keeps nothing. @param {() => Storage} of @returns {Storage | null} */
function storageOf(of) {
  try {
    return of();
  } catch {
    return null;
  }
}

/** @param {Storage} storage @param {string} key @param {Signals} signals */
function recall(storage, key, signals) {
  try {
    const kept = JSON.parse(storage.getItem(key) ?? "{}");
    for (const [name, signal] of Object.entries(signals)) {
      if (kept[name] !== undefined) signal.value = kept[name];
    }
  } catch {
    storage.removeItem(key); // kept by an older page: begin anew
  }
}

/** @param {Storage} storage @param {string} key @param {Signals} signals */
function remember(storage, key, signals) {
  effect(() => {
    const entries = Object.entries(signals).map(([name, signal]) => [name, signal.value]);
    storage.setItem(key, JSON.stringify(Object.fromEntries(entries)));
  });
}

/** @param {Storage | null} storage @param {string} key @param {Signals} signals */
function keep(storage, key, signals) {
  if (!storage) return;
  recall(storage, key, signals);
  remember(storage, key, signals);
}

if (lab) keep(storageOf(() => sessionStorage), TAB, OF_TAB); // all files share one: what is chosen in one is nothing for another
keep(storageOf(() => localStorage), BROWSER, OF_BROWSER);

/** #run=…&step=…&lesson=…: `engram lab RUN` names a run in this way, too. The token stands before the #, and stays there. */
function readAddress() {
  const named = new URLSearchParams(location.hash.slice(1)), at = Number(named.get("step"));
  if (named.get("run")) run.value = named.get("run");
  lessonName.value = named.get("lesson");
  step.value = named.has("step") && Number.isSafeInteger(at) && at >= 0 ? at : null;
}

function writeAddress() {
  if (location.protocol === "about:") return; // within another page there is no address to write
  const named = new URLSearchParams();
  if (run.value) named.set("run", run.value);
  if (run.value && step.value !== null) named.set("step", String(step.value));
  if (lessonName.value) named.set("lesson", lessonName.value);
  const hash = named.size ? `#${named}` : "";
  if (hash !== location.hash) history.replaceState(null, "", `${location.pathname}${location.search}${hash}`);
}

readAddress();
addEventListener("hashchange", readAddress);
let planned = 0; // browsers refuse a page that writes its address with every movement of the mouse
effect(() => {
  void [run.value, step.value, lessonName.value];
  clearTimeout(planned);
  planned = setTimeout(writeAddress, 250);
});
addEventListener("pagehide", writeAddress);
