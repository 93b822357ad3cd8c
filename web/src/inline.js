/**
 * The source of a page that stands alone: what a lab would tell lies in the file, deflated, and is unpacked when it is asked for.
 * @import { Answer, CellAsked, CellSaid, Frame, Heard, Question, ReadingSaid, View } from "./protocol.js"
 * @import { Listener, Reply, Source } from "./source.js"
 */
import { batch } from "@preact/signals";
import { decode, valueAt } from "./protocol.js";
import { abouts, link } from "./store.js";

/**
 * @typedef {{v: number, title: string, told: string[], news: string, pictures: Record<string, Record<string, Record<string, string>>>,
 *   readings: Record<string, Record<string, string>>}} Data news and values of pictures and readings are packed
 */
const NEEDS = "needs a running lab, and this page is a file: `engram lab` opens the run there";

/** @param {string} packed @returns {Promise<ArrayBuffer>} */
async function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** @param {string} packed */
const said = async (packed) => JSON.parse(new TextDecoder().decode(await unpacked(packed)));

/** @param {string | undefined | null} text @returns {Source | null} null: there are no data in this file */
export function inline(text) {
  if (!text) return null;
  /** @type {Data} */
  const data = JSON.parse(text);
  const known = new Still(data);
  return {
    lab: false, title: data.title, told: data.told,
    connect: (listener) => void known.open(listener),
    send: (message) => known.hear(message),
    ask: (question) => known.answer(question),
  };
}

class Still {
  /** @param {Data} data */
  constructor(data) {
    this.data = data;
    /** @type {Listener | null} */
    this.listener = null;
    /** @type {Heard[]} */
    this.news = [];
    /** @type {View | null} */
    this.view = null;
    /** Runs whose news the page has. @type {Set<string>} */
    this.sent = new Set();
  }

  /** @param {Listener} listener */
  async open(listener) {
    this.listener = listener;
    this.news = await said(this.data.news);
    listener.heard({ t: "hello", v: this.data.v });
    batch(() => {
      link.value = "open";
      listener.opened();
    });
  }

  /** @param {View | {t: "runs"}} message */
  hear(message) {
    if (message.t === "runs") this.news.filter((m) => m.t === "runs").forEach((m) => this.listener?.heard(m));
    else void this.show((this.view = message));
    return true;
  }

  /** All that is new of a view, and its tick; nothing if another one came meanwhile. @param {View} view */
  async show(view) {
    const other = { run: view.minus_run ?? view.run, step: view.minus }, b = view.shows === "other" && view.minus !== null;
    const of = b ? { ...view, ...other, minus: null, minus_run: null } : view;
    const frames = await Promise.all(view.pictures.map((picture) => this.wanted({ ...of, picture })));
    const reading = view.reads ? await this.reading(of) : null;
    if (view !== this.view) return;
    this.tell([view.run, other.run, ...view.also]);
    if (reading) this.listener?.heard(reading);
    frames.forEach((frame) => frame && this.listener?.seen(frame));
    this.listener?.heard({ t: "tick", serial: view.serial });
  }

  /** @param {string[]} runs */
  tell(runs) {
    const fresh = runs.filter((run) => !this.sent.has(run));
    for (const run of fresh) this.sent.add(run);
    this.news.filter((m) => "run" in m && fresh.includes(/** @type {string} */ (m.run))).forEach((m) => this.listener?.heard(m));
  }

  /** The step with pictures that stands for one that is wanted; -1: there is none. @param {string} run @param {number | null} step */
  kept(run, step) {
    const there = Object.keys(this.data.pictures[run] ?? {}).map(Number).sort((a, b) => a - b);
    return there.filter((s) => step === null || s <= step).at(-1) ?? there[0] ?? -1;
  }

  /** @param {string} run @param {number | null} step @param {string} name @returns {Promise<Frame | null>} */
  async frame(run, step, name) {
    const packed = this.data.pictures[run]?.[this.kept(run, step)]?.[name];
    return packed ? decode(await unpacked(packed)) : null;
  }

  /** @param {{run: string, step: number | null}} moment @returns {Promise<ReadingSaid | null>} */
  async reading({ run, step }) {
    const packed = this.data.readings[run]?.[this.kept(run, step)];
    return packed ? said(packed) : null;
  }

  /** @param {Question} question @returns {Promise<Reply>} */
  async answer(question) {
    if (question.t === "cell") return this.cell(question);
    if (question.t === "array") return this.array(question);
    return refused(question.t === "weights" ? `the weights of this step are not in this file: computing them ${NEEDS}` : `this ${NEEDS}`);
  }

  /** @param {{run: string, step: number | null, picture: string, minus: number | null, minus_run: string | null}} asked */
  async wanted({ run, step, picture, minus, minus_run }) {
    const found = await this.frame(run, step, picture), other = found && minus !== null ? await this.frame(minus_run ?? run, minus, picture) : null;
    if (!found || minus === null) return found;
    return other && String(other.shape) === String(found.shape) ? less(found, other) : null;
  }

  /** The picture itself: this file has no more than its 256 levels. @param {import("./protocol.js").ArrayAsked} asked @returns {Promise<Reply>} */
  async array(asked) {
    const frame = await this.wanted(asked);
    return frame ? { ...frame, t: "array", id: 0 } : refused("this picture is not in this file");
  }

  /** @param {CellAsked} asked @returns {Promise<CellSaid | Answer>} */
  async cell(asked) {
    const frame = await this.wanted(asked);
    const entry = abouts.peek()[asked.run]?.pictures.find((p) => p.name === asked.picture);
    return frame && entry ? cellOf(frame, entry, asked) : refused("this picture is not in this file");
  }
}

/** @param {string} error @returns {Answer} */
const refused = (error) => ({ t: "answer", id: 0, ok: false, error });

/** One picture less another, to the same number of levels. @param {Frame} a @param {Frame} b @returns {Frame} */
export function less(a, b) {
  const columns = a.shape[1];
  const values = Float32Array.from(a.values, (_, i) => {
    const row = Math.floor(i / columns), column = i % columns;
    return valueAt(a, row, column) - valueAt(b, row, column);
  });
  let lo = 0, hi = 0;
  for (const x of values) [lo, hi] = [Math.min(lo, x), Math.max(hi, x)];
  return { ...a, values, lo, hi, dtype: "f4", minus: b.step, minus_run: a.run === b.run ? null : b.run, best: null, within: within(a) + within(b) };
}

/** How far a value of a picture may be from what was measured. @param {Frame} frame */
export const within = (frame) => frame.within ?? (frame.dtype === "u8" ? (frame.hi - frame.lo) / 510 : 0);

/** @param {Frame} frame @param {import("./protocol.js").Picture} entry @param {CellAsked} asked @returns {CellSaid} */
function cellOf(frame, entry, { row, column }) {
  const line = Array.from({ length: frame.shape[1] }, (_, j) => valueAt(frame, row, j));
  const score = line[column], best = line.indexOf(Math.max(...line)), others = line.filter((_, j) => j !== row);
  const margin = entry.diagonal && frame.minus === null && others.length ? line[row] - Math.max(...others) : null;
  const mark = (/** @type {string[]} */ marks, /** @type {number} */ i) => marks[i] ?? String(i);
  return {
    t: "cell", id: 0, key: mark(entry.rows, row), value: mark(entry.columns, column), score, margin,
    rank: 1 + line.filter((x) => x > score).length, best: mark(entry.columns, best), within: within(frame),
  };
}
