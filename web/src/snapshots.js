/** Pictures of a panel as files: a canvas as PNG with its title and legend, a drawing as SVG. */
import { ground, ink, muted } from "./colours.js";
import { save } from "./csv.js";
import { run } from "./store.js";

/** @typedef {{name: string | null, title: string, kind: "PNG" | "SVG", save: () => void}} Shown name: of a matrix */
const TOP = 22, LINE = 16, PAD = 10; // CSS pixels of a title, a line of the legend, a margin
const FONT = "system-ui, sans-serif";

/** What an element is called: its text without values and remarks. @param {Element | null | undefined} of */
function textOf(of) {
  const copy = /** @type {Element | undefined} */ (of?.cloneNode(true));
  copy?.querySelectorAll("small, b").forEach((part) => part.remove());
  return copy?.textContent?.replace(/\s+/g, " ").trim() ?? "";
}

/** The pictures that a panel shows now. @param {string} name @returns {Shown[]} */
export function picturesOf(name) {
  const panel = document.getElementById(`body-${name}`), there = [...(panel?.querySelectorAll("figure canvas, svg.graph") ?? [])];
  return there.filter((one) => one.clientWidth > 20 && one.clientHeight > 20).map(shownBy);
}

/** A matrix, by its name. @param {string | undefined} name */
export function pictureOf(name) {
  const canvas = [...document.querySelectorAll("figure canvas")].find((one) => one.getAttribute("data-testid") === name);
  return canvas && shownBy(canvas);
}

/** @param {Element} one @returns {Shown} */
function shownBy(one) {
  const caption = one.closest("figure")?.querySelector("figcaption"), name = one.getAttribute("data-testid");
  const title = textOf(caption?.querySelector(".name, span") ?? caption) || textOf(one.closest(".panel")?.querySelector("h2"));
  if (one instanceof HTMLCanvasElement) return { name, title, kind: "PNG", save: () => savePng(one, title) };
  return { name, title, kind: "SVG", save: () => saveSvg(one, title) };
}

/** What tells the curves of a figure apart, or the values of its colours. @param {Element | null} figure @returns {{text: string, colour: string | null}[]} */
function legendOf(figure) {
  const keys = [...(figure?.querySelectorAll(".legend button[aria-pressed=true]") ?? [])];
  const bar = figure?.querySelector(".colourbar")?.getAttribute("aria-label"), step = textOf(figure?.querySelector(".atstep"));
  return [...keys.map((key) => ({ text: textOf(key), colour: key.querySelector("i")?.style.background ?? null })),
    ...(bar ? [{ text: [step, bar].filter(Boolean).join(", "), colour: null }] : [])];
}

/** @param {HTMLCanvasElement} canvas @param {string} title */
function savePng(canvas, title) {
  const ratio = devicePixelRatio || 1, legend = legendOf(canvas.closest("figure"));
  const wide = Math.max(canvas.width / ratio, 240) + 2 * PAD, high = canvas.height / ratio + TOP + LINE * legend.length + 2 * PAD;
  const sheet = Object.assign(document.createElement("canvas"), { width: Math.round(wide * ratio), height: Math.round(high * ratio) });
  const context = /** @type {CanvasRenderingContext2D} */ (sheet.getContext("2d"));
  context.scale(ratio, ratio);
  context.fillStyle = ground.value;
  context.fillRect(0, 0, wide, high);
  context.fillStyle = ink.value;
  context.font = `600 13px ${FONT}`;
  context.fillText(title, PAD, PAD + 12, wide - 2 * PAD);
  legend.forEach((key, i) => write(context, key, PAD + TOP + LINE * i, wide));
  context.drawImage(canvas, PAD, PAD + TOP + LINE * legend.length, canvas.width / ratio, canvas.height / ratio);
  sheet.toBlob((blob) => blob && save(`${run.peek()} ${title}.png`, blob), "image/png");
}

/** @param {CanvasRenderingContext2D} context @param {{text: string, colour: string | null}} key @param {number} top @param {number} wide */
function write(context, { text, colour }, top, wide) {
  if (colour) {
    context.fillStyle = colour;
    context.fillRect(PAD, top + 5, 14, 3);
  }
  context.fillStyle = muted.value;
  context.font = `11px ${FONT}`;
  context.fillText(text, PAD + (colour ? 20 : 0), top + 10, wide - 3 * PAD);
}

/** With its ground, and what it takes from the page. @param {Element} svg @param {string} title */
function saveSvg(svg, title) {
  const copy = /** @type {SVGElement} */ (svg.cloneNode(true));
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("style", `background: ${ground.value}; font: 12px ${FONT}`);
  save(`${run.peek()} ${title}.svg`, new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
}
