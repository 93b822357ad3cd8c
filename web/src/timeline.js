/**
 * Losses, accuracy with the recalls, and what else was measured, over the steps; other runs are drawn thin in the same colours.
 * @import { Column } from "./protocol.js"
 */
import { signal } from "@preact/signals";
import { makeChart } from "./chart.js";
import { drawBeside } from "./actions.js";
import { coloursOf, dashOf } from "./colours.js";
import { short } from "./compare.js";
import { html, number, Swatch, useComputed, useRef, useSignalEffect } from "./html.js";
import { Panel } from "./panel.js";
import { joined } from "./plane.js";
import { measured } from "./rows.js";
import { bandOf, cohorts, drawnRuns, seedsOfRun } from "./seeds.js";
import { about, also, banded, columns, curves, dialog, curvesEnd, events, groupsSwitched, logSteps, now, ofOthers, pointed, rows, run, stages, state } from "./store.js";
import { Zoom, zoomed } from "./zoom.js";

const HEIGHT = 205;
const SHARES = ["accuracy", "recall"]; // drawn together, between 0 and 1
const ALWAYS = ["loss", ...SHARES];
/** @type {[number, number]} */
const WHOLE = [-0.03, 1.06]; // what shares are drawn in
/** @param {Column} column */
const isShare = (column) => SHARES.includes(column.group) || column.group.startsWith("accuracy");
/** Columns that were switched on or off by hand. */
const switched = signal(/** @type {Record<string, boolean>} */ ({}));

/** @param {Column} column */
const on = (column) => switched.value[column.name] ?? true;

/** @param {string[]} groups */
const among = (groups) => curves.value.filter((c) => groups.includes(c.group));

/** @typedef {{table: import("./plane.js").Table, curves: import("./chart.js").Curve[]}} Drawn what is drawn of a run, or of a band */

/** A run by itself. @param {string} id @param {Column[]} shown @param {(c: Column) => Omit<import("./chart.js").Curve, "label">} look @returns {Drawn} */
function alone(id, shown, look) {
  const held = rows.value[id] ?? { step: [] };
  return { table: [held.step, ...shown.map((c) => held[c.name] ?? held.step.map(() => null))], curves: shown.map((c) => ({ label: c.title, ...look(c) })) };
}

/** The mean of all seeds and both ends of its interval, which shares do not leave. @param {string[]} ids @param {Column[]} shown @param {(c: Column) => string} colour @param {number[]} dash @returns {Drawn} */
function band(ids, shown, colour, dash) {
  const { steps, of } = bandOf(ids, shown.map((c) => c.name));
  const cut = (/** @type {Column} */ c, /** @type {number | null} */ x) => (x === null || !isShare(c) ? x : Math.min(1, Math.max(0, x)));
  const lines = shown.flatMap((c) => [of[c.name].map((x) => x.mean), of[c.name].map((x) => cut(c, x.high)), of[c.name].map((x) => cut(c, x.low))]);
  const curves = shown.flatMap((c) => [2, 0, 0].map((width) => ({ label: c.title, colour: width ? colour(c) : "#0000", width, dash: width ? dash : undefined })));
  return { table: [steps, ...lines], curves };
}

/** @param {Column[]} all @param {[number, number] | null} range @returns {import("./chart.js").Picture} */
function picture(all, range) {
  const shown = all.filter(on), colours = coloursOf(all.map((c) => c.name));
  const colour = (/** @type {Column} */ c) => colours[all.indexOf(c)];
  const bands = cohorts.value, inBand = bands.flat(), mine = run.value ?? "";
  const parts = [alone(mine, shown, (c) => (inBand.includes(mine) ? { colour: `${colour(c)}80`, width: 1 } : { colour: colour(c), width: 1.75 }))];
  drawnRuns.value.forEach((id, i) => !inBand.includes(id) && i && parts.push(alone(id, shown, (c) => ({ colour: `${colour(c)}b0`, width: 1, dash: dashOf(i - 1) }))));
  const before = 1 + parts.reduce((sum, part) => sum + part.curves.length, 0);
  parts.push(...bands.map((ids, i) => band(ids, shown, colour, dashOf(i))));
  const fills = bands.flatMap((_, b) => shown.map((c, i) => {
    const mean = before + 3 * (b * shown.length + i);
    return { series: /** @type {[number, number]} */ ([mean + 1, mean + 2]), fill: `${colour(c)}30` };
  }));
  const tables = parts.map((part) => part.table);
  const levels = (about.value?.levels ?? []).flatMap((level) => {
    const column = shown.find((c) => c.name === level.column);
    return column ? [{ ...level, colour: colour(column) }] : [];
  });
  const marks = [...(state.value?.births ?? []), ...events.value, ...stages.value];
  return { curves: parts.flatMap((part) => part.curves), bands: fills, data: joined(tables), levels, marks, log: logSteps.value, range };
}

/** @param {{all: Column[]}} props */
function Legend({ all }) {
  const step = pointed.value ?? now.value, beyond = step - (columns.value?.step.at(-1) ?? 0);
  const colours = coloursOf(all.map((c) => c.name));
  const there = beyond <= 0 || (beyond === 1 && pointed.value === null); // a paused run stands before a step without a row
  return html`<div class="legend">${all.map((c, i) => html`<button key=${c.name} aria-pressed=${on(c)} title=${c.name}
      onClick=${() => (switched.value = { ...switched.value, [c.name]: !on(c) })}>
      <i style=${{ background: colours[i] }} aria-hidden="true"></i>${c.title}
      <b>${on(c) ? number(there ? measured(columns.value, c.name, step) : null) : ""}</b></button>`)}</div>`;
}

/** "Accuracy and recall" @param {string[]} groups */
function labelOf(groups) {
  const axes = [...new Set(among(groups).map((c) => c.axis))], text = (axes.length ? axes : groups).join(" and ");
  return text[0].toUpperCase() + text.slice(1);
}

/** @param {{testid: string, groups: string[], range?: [number, number] | null}} props */
function Curves({ testid, groups, range = null }) {
  const label = labelOf(groups);
  const root = /** @type {{current: HTMLDivElement | null}} */ (useRef(null));
  const chart = /** @type {{current: ReturnType<typeof makeChart> | null}} */ (useRef(null));
  const drawn = useRef("");
  const wanted = useComputed(() => picture(among(groups), range));
  useSignalEffect(() => {
    void [curvesEnd.value, zoomed.value];
    const next = wanted.value, look = JSON.stringify([next.curves, next.bands, next.log]);
    if (root.current && look !== drawn.current) {
      chart.current?.remove();
      chart.current = makeChart(root.current, next, HEIGHT);
      drawn.current = look;
    } else chart.current?.feed(next);
    chart.current?.at(now.peek());
  });
  useSignalEffect(() => chart.current?.at(now.value));
  useSignalEffect(() => () => chart.current?.remove());
  return html`<figure class="curves">
    <figcaption>${label}${pointed.value === null ? "" : html` <small>at step ${pointed.value}</small>`}</figcaption>
    <${Legend} all=${among(groups)} />
    <div ref=${root} data-testid=${testid} role="img" aria-label=${`${label} over the steps`} class="chart"></div>
  </figure>`;
}

/** @param {string} group */
const isDrawn = (group) => groupsSwitched.value[group] ?? among([group]).some((c) => c.drawn);

/** @param {string} group */
const toggle = (group) => (groupsSwitched.value = { ...groupsSwitched.value, [group]: !isDrawn(group) });

/** What else is measured, to be drawn if wanted. @param {{groups: string[]}} props */
function More({ groups }) {
  return html`<div class="further" role="group" aria-label="Further curves"><span>more</span>${groups.map((group) => html`<button key=${group}
    class="quiet" data-testid=${`more-${group}`} aria-pressed=${isDrawn(group)} onClick=${() => toggle(group)}>${group}</button>`)}</div>`;
}

/** What is drawn beside the run, and how; each can be taken away. */
function Beside() {
  const inBand = cohorts.value.flat(), alone = drawnRuns.value.filter((id, i) => i && !inBand.includes(id));
  const missing = seedsOfRun.value.filter((id) => !also.value.includes(id));
  const chip = (/** @type {string[]} */ ids, /** @type {string} */ text, /** @type {unknown} */ swatch) => html`<span class="chip" key=${ids[0]}>${swatch} ${text}
    <button class="icon" aria-label=${`Do not draw: ${text}`} onClick=${() => drawBeside(ids, false)}>×</button></span>`;
  return html`<div class="beside-runs" role="group" aria-label="Runs that are drawn" data-testid="drawn-runs">
    ${cohorts.value.map((ids, i) => chip(ids, `${ids.length} seeds: mean and its 95 % interval (Student’s t)${ids.includes(run.value ?? "") ? "; thin: this run" : ""}`, html`<${Swatch} wide dash=${dashOf(i)} />`))}
    ${alone.map((id) => chip([id], short(id), html`<${Swatch} dash=${dashOf(drawnRuns.value.indexOf(id) - 1)} />`))}
    ${missing.length > 0 && html`<button class="quiet" data-testid="all-seeds" title="Runs that differ in nothing but their seed" onClick=${() => drawBeside(missing, true)}>+ ${missing.length} other seed${missing.length > 1 ? "s" : ""}</button>`}
    <button class="quiet" data-testid="more-runs" title="Choose runs whose curves are drawn, too" onClick=${() => (dialog.value = "runs")}>+ other runs</button>
    ${also.value.length > 0 && html`<button class="quiet" data-testid="banded" aria-pressed=${banded.value} title="Runs that differ in nothing but their seed become one band" onClick=${() => (banded.value = !banded.value)}>seeds as bands</button>`}</div>`;
}

export function Timeline() {
  const others = [...new Set(curves.value.map((c) => c.group))].filter((group) => !ALWAYS.includes(group));
  return html`<${Panel} name="timeline" title="Timeline" tools=${html`<${Zoom} />`}>
    <${Curves} testid="timeline-losses" groups=${["loss"]} />
    <${Curves} testid="timeline-recalls" groups=${SHARES} range=${WHOLE} />
    ${others.filter(isDrawn).map((group) => html`<${Curves} key=${group} testid=${`timeline-${group}`} groups=${[group]}
      range=${group.startsWith("accuracy") ? WHOLE : null} />`)}
    ${others.length > 0 && html`<${More} groups=${others} />`}
    ${!ofOthers.value && html`<${Beside} />`}
  <//>`;
}
