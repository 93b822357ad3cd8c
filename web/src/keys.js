/** The keyboard. Keys are never taken from someone who is typing. */
import { move, moveToMark, moveToWeights, pauseOrResume, scrubTo, toggleLive } from "./actions.js";
import { toInterventions } from "./interventions.js";
import { togglePlay } from "./play.js";
import { fold } from "./panel.js";
import { lab } from "./source.js";
import { dialog, last } from "./store.js";
import { toggleTheme } from "./theme.js";
import { whole, zoomBy } from "./zoom.js";

/** Opens a panel and goes to the first thing in it that takes the focus. @param {string} name @param {string} what */
function goTo(name, what) {
  fold(name, true);
  requestAnimationFrame(() => {
    const target = document.querySelector(`#panel-${name} ${what}`);
    if (target instanceof HTMLElement) target.focus({ preventScroll: true });
    document.getElementById(`panel-${name}`)?.scrollIntoView({ block: "start" });
  });
}

/** @type {Record<string, (e: KeyboardEvent) => void>} */
const DOES = {
  " ": (e) => !e.repeat && pauseOrResume(),
  arrowleft: (e) => move(e.shiftKey ? -10 : -1),
  arrowright: (e) => move(e.shiftKey ? 10 : 1),
  home: () => scrubTo(0),
  end: () => scrubTo(last.value),
  pageup: () => moveToWeights(-1),
  pagedown: () => moveToWeights(1),
  "[": () => moveToMark(-1),
  "]": () => moveToMark(1),
  "+": () => zoomBy(0.5),
  "=": () => zoomBy(0.5),
  "-": () => zoomBy(2),
  p: togglePlay,
  l: toggleLive,
  f: toInterventions,
  b: () => goTo("branches", ".branches button"),
  s: () => goTo("attention", "[data-testid=sequence-input]"),
  n: () => (dialog.value = "start"),
  r: () => (dialog.value = "runs"),
  d: toggleTheme,
  t: () => (dialog.value = "lessons"),
  "?": () => (dialog.value = "help"),
};

const OF_LAB = [" ", "l", "f", "s", "n", "t"]; // what they do needs one

/** @param {Element | null} at @param {string} key */
function taken(at, key) {
  if (document.querySelector("dialog[open]")) return true; // what is seen: the news that one was closed comes later
  if (!at) return false;
  if (at.matches("input:not([type=range]):not([type=checkbox]), textarea, [contenteditable]")) return true;
  if (at.matches("select")) return !(at.id === "kind" && key === "f"); // F once more: the next kind
  if (at.matches("button, [type=checkbox]")) return key === " ";
  const scrolls = ["pageup", "pagedown", "home", "end", "arrowleft", "arrowright"];
  return at.matches(".scroll, .strip") && scrolls.includes(key);
}

/** A dialog tells of its closing only later. */
function leave() {
  if (!dialog.value && document.activeElement instanceof HTMLElement) document.activeElement.blur();
  if (!dialog.value) whole();
  dialog.value = null;
}

addEventListener("keydown", (e) => {
  const key = e.key.toLowerCase(), does = lab || !OF_LAB.includes(key) ? DOES[key] : undefined;
  if (e.key === "Escape") leave();
  if (!does || e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || taken(document.activeElement, key)) return;
  e.preventDefault();
  does(e);
});
