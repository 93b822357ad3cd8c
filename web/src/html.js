/** Templates, hooks and the class helper in one place. */
import { html } from "htm/preact";
export { html };
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { useComputed, useSignal, useSignalEffect } from "@preact/signals";

/** A number as a person would write it. @param {number | null | undefined} x @param {number} [digits] */
export function number(x, digits = 3) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  const text = size !== 0 && (size < 1e-3 || size >= 1e5) ? x.toExponential(1) : String(Number(x.toPrecision(digits)));
  return text.replace("-", "−");
}

/** What was typed, as the type that a field has; what cannot be read so stays text, and the server refuses it. @param {string} text @param {string} type @returns {import("./protocol.js").Plain} */
export function plain(text, type) {
  const trimmed = text.trim();
  if (type === "boolean") return trimmed === "true";
  const reads = type !== "text" && trimmed !== "" && Number.isFinite(Number(trimmed));
  return reads ? Number(trimmed) : text;
}

/** A share as a percentage. @param {number | null} p */
export const percent = (p) => (p === null ? "–" : `${p < 0.0995 ? (100 * p).toFixed(1) : Math.round(100 * p)} %`);

/** @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 1) return "a second";
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** What makes a signal that of an input. @param {import("@preact/signals").Signal<string>} into */
export const typing = (into) => ({ value: into.value, onInput: (/** @type {any} */ e) => (into.value = e.target.value) });

/** How curves are drawn: of a run beside another one, or of that which is looked at and of bands. @param {{dash?: number[], wide?: boolean}} props */
export const Swatch = ({ dash = [], wide = false }) => html`<svg width="22" height="8" aria-hidden="true"><line x1="0" x2="22" y1="4" y2="4" stroke="currentColor"
  stroke-width=${wide ? 2.5 : 1.2} stroke-dasharray=${dash.join(" ")} /></svg>`;

/** What went wrong, beside its form. @param {{value: string}} why @param {string} id */
export const refusal = (why, id) => why.value && html`<p class="error" data-testid=${id}>${why.value}</p>`;
