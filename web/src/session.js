/** A reload goes on where it was: run and step stand in the address, the rest is kept for this tab, taste for this browser. */
import { batch, effect } from "@preact/signals";
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

const NAME = /^[\w.:/ -]{1,200}$/;
const isStep = (/** @type {string} */ text) => /^\d{1,9}$/.test(text);
const isName = (/** @type {string} */ text) => NAME.test(text);

/** What an address may hold beside the run: what is taken, and where it goes. @type {Record<string, [(text: string) => boolean, (text: string) => void]>} */
const PARTS = {
  run: [isName, (text) => (run.value = text)],
  step: [isStep, (text) => (step.value = Number(text))],
  shows: [(text) => text === "b" || text === "less", (text) => (shows.value = text === "b" ? "b" : "less")],
  b: [isName, (text) => (other.value = text)],
  minus: [(text) => text === "" || isStep(text), (text) => (minus.value = text === "" ? null : Number(text))],
  fold: [(text) => /^[a-z,]*$/.test(text), (text) => (folded.value = text.split(","))],
  part: [isName, (text) => (store.part.value = text)],
  fact: [isStep, (text) => (store.fact.value = Number(text))],
  matrix: [isName, (text) => (store.matrix.value = text)],
  lesson: [isName, (text) => (lessonName.value = text)],
};

/** #run=…&step=…&lesson=…: `engram lab RUN` names a run in this way, too. The token stands before the #, and stays there. */
function readAddress() {
  const named = new URLSearchParams(location.hash.slice(1)), found = [...named].filter(([name]) => name in PARTS);
  const wrong = found.filter(([name, text]) => !PARTS[name][0](text));
  if (!named.has("step")) step.value = null;
  if (!named.has("lesson")) lessonName.value = null;
  batch(() => found.filter((entry) => !wrong.includes(entry)).forEach(([name, text]) => PARTS[name][1](text)));
  if (wrong.length) store.say(`The address was not understood everywhere; ignored: ${wrong.map((entry) => entry.join("=").slice(0, 80)).join(", ")}.`, true);
}

/** What a link to this view holds. @returns {Record<string, string | number | null>} null: it is as it is without */
const view = () => ({
  step: step.value, shows: shows.value === "a" ? null : shows.value, b: shows.value === "a" ? null : other.value,
  minus: shows.value === "a" ? null : minus.value ?? "", fold: folded.value.join() || null,
  part: store.part.value || null, fact: store.fact.value, matrix: store.matrix.value || null,
});

function writeAddress() {
  if (location.protocol === "about:") return; // within another page there is no address to write
  const named = new URLSearchParams(run.value ? { run: run.value } : {});
  if (run.value) for (const [name, value] of Object.entries(view())) if (value !== null) named.set(name, String(value));
  if (lessonName.value) named.set("lesson", lessonName.value);
  const hash = named.size ? `#${named}` : "";
  if (hash !== location.hash) history.replaceState(null, "", `${location.pathname}${location.search}${hash}`);
}

readAddress();
addEventListener("hashchange", readAddress);
let planned = 0; // browsers refuse a page that writes its address with every movement of the mouse
effect(() => {
  void [run.value, lessonName.value, view()];
  clearTimeout(planned);
  planned = setTimeout(writeAddress, 250);
});
addEventListener("pagehide", writeAddress);

export async function copyLink() {
  writeAddress();
  await navigator.clipboard.writeText(location.href).then(() => store.say("The link is copied."), () => store.say("The link to this view is the address of the page: copy it there.", true));
}
