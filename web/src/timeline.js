/**
 * Losses, accuracy with the recalls, and what else was measured, over the steps; branches are drawn thin in the same colours.
 * @import { Column } from "./protocol.js"
 */
import { signal } from "@preact/signals";
import uPlot from "uplot";
import { makeChart } from "./chart.js";
import { coloursOf, dashOf } from "./colours.js";
import { html, number, useComputed, useRef, useSignalEffect } from "./html.js";
import { Panel } from "./panel.js";
import { measured } from "./rows.js";
import { about, also, columns, curves, curvesEnd, events, groupsSwitched, logSteps, now, pointed, rows, run, stages, state } from "./store.js";

const HEIGHT = 205;
const SHARES = ["accuracy", "recall"]; // drawn together, between 0 and 1
const ALWAYS = ["loss", ...SHARES];
/** @type {[number, number]} */
const WHOLE = [-0.03, 1.06]; // what shares are drawn in
/** Columns that were switched on or off by hand. */
const switched = signal(/** @type {Record<string, boolean>} */ ({}));

/** @param {Column} column */
const on = (column) => switched.value[column.name] ?? true;

/** @param {string[]} groups */
const among = (groups) => curves.value.filter((c) => groups.includes(c.group));

/** @param {Column[]} shown @returns {uPlot.AlignedData} */
function joined(shown) {
  const tables = [run.value, ...also.value].map((id) => (id && rows.value[id]) || { step: [] })
    .map((held) => /** @type {uPlot.AlignedData} */ ([held.step, ...shown.map((c) => held[c.name] ?? held.step.map(() => null))]));
  return tables.length === 1 ? tables[0] : uPlot.join(tables);
}

/** @param {Column[]} all @param {[number, number] | null} range @returns {import("./chart.js").Picture} */
function picture(all, range) {
  const shown = all.filter(on), colours = coloursOf(all.map((c) => c.name));
  const colour = (/** @type {Column} */ c) => colours[all.indexOf(c)];
  const own = shown.map((c) => ({ label: c.title, colour: colour(c), width: 1.75 }));
  const others = also.value.flatMap((_, i) => shown.map((c) => ({ label: c.title, colour: `${colour(c)}b0`, width: 1, dash: dashOf(i) })));
  const levels = (about.value?.levels ?? []).flatMap((level) => {
    const column = shown.find((c) => c.name === level.column);
    return column ? [{ ...level, colour: colour(column) }] : [];
  });
  const marks = [...(state.value?.births ?? []), ...events.value, ...stages.value];
  return { curves: [...own, ...others], data: joined(shown), levels, marks, log: logSteps.value, range };
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
    void curvesEnd.value;
    const next = wanted.value, look = JSON.stringify([next.curves, next.log]);
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

export function Timeline() {
  const others = [...new Set(curves.value.map((c) => c.group))].filter((group) => !ALWAYS.includes(group));
  return html`<${Panel} name="timeline" title="Timeline">
    <${Curves} testid="timeline-losses" groups=${["loss"]} />
    <${Curves} testid="timeline-recalls" groups=${SHARES} range=${WHOLE} />
    ${others.filter(isDrawn).map((group) => html`<${Curves} key=${group} testid=${`timeline-${group}`} groups=${[group]}
      range=${group.startsWith("accuracy") ? WHOLE : null} />`)}
    ${others.length > 0 && html`<${More} groups=${others} />`}
  <//>`;
}
