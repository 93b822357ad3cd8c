/**
 * What the page and the server say to each other: docs/lab-protocol.md as types, and the decoding of pictures.
 *
 * @typedef {{step: number, what: string}} Mark a birth, an intervention or the beginning of a stage
 * @typedef {{id: string, title: string, seed: number, state: string, rows: number, steps: number, events: Mark[],
 *   family: string, seedless: string, parts_at: number, words: string, began: string | null, seconds: number | null, tags: string[],
 *   note: string, headline: Record<string, number | null>}} Run words: as `engram runs ls` says them; seedless: shared by runs that differ only in their seed
 * @typedef {{name: string, value: string, changed: boolean}} Setting changed: it is not the default
 * @typedef {string | number | boolean} Plain
 * @typedef {{name: string, type: "integer" | "number" | "boolean" | "text", value: Plain | null, choices: Plain[] | null}} Field
 * @typedef {{label: string} & (Field | {name: string, after: string, by: Record<string, Omit<Field, "name">>})} AskedField
 *   by: what is offered depends on what was chosen in the field `after`
 * @typedef {{kind: string, title: string, hint: string, fields: AskedField[]}} Intervention
 * @typedef {{name: string, experiment: string, title: string, about: string, seconds: number | null, text: boolean, fields: (Field & {meaning: string})[]}} Preset
 * @typedef {{name: string, title: string, asks: string, answers: string, rows: string[], columns: string[],
 *   diagonal?: boolean, right: number[] | null, shape: [number, number] | null}} Picture right: the column of the right answer to each row; shape: null where it depends on the sequence
 * @typedef {{name: string, title: string, group: string, axis: string, drawn: boolean}} Column drawn: without being asked for
 * @typedef {{column: string, value: number, name: string}} Level
 * @typedef {[number, number]} Head layer and head, from 1
 * @typedef {Record<string, (number | null)[]> & {step: number[]}} Columns
 * @typedef {{run: string | null, state: string, step: number | null, limit: number, error: string | null}} Trainer
 * @typedef {{token: number, mark: string, p: number | null}} Guess p: null where it is no number
 *
 * @typedef {{layer: number, head: number, role: string | null, share: number | null}} Role what probes confirm of a head
 * @typedef {{t: "hello", v: number}} Hello
 * @typedef {{t: "runs", runs: Run[], presets: Preset[]}} RunsSaid
 * @typedef {{t: "about", run: string, title: string, steps: number, seed: number, N: number, T: number,
 *   letters: string[] | null, heads: Head[], pictures: Picture[],
 *   levels: Level[], settings: Setting[], events: Mark[], stages: Mark[], interventions: Intervention[], model?: ModelAbout | null, facts?: boolean}} About facts: its task is a table of facts
 * @typedef {{name: string, family: string, note: string, sha256: string, layers: number, matrices: string, seeds: number,
 *   text: boolean, edits: boolean, revisions: number}} ModelAbout revisions: 0 where it is a run of ours
 * @typedef {{edit: number, step: number, prompt: string, was: string, answer: string, matrix: string}} EditInForce
 * @typedef {{t: string, id: number, step: number, edits: EditInForce[], seconds: number}} OfModel
 * @typedef {{head: string, layer: number, previous: number | null, induction: number | null, previous_seeds: (number | null)[], induction_seeds: (number | null)[]}} HeadScores
 * @typedef {OfModel & {heads: HeadScores[], losses: {first: (number | null)[], repeat: (number | null)[]}}} HeadsSaid
 * @typedef {{reader: string, partners: {writer: string, recall: number | null, recall_raw: number | null}[]}} ReaderSaid
 * @typedef {OfModel & {tokens: number, readers: ReaderSaid[], keys_without: {writer: string, induction: Record<string, number | null>, gain_left: number | null}[]}} ComposeSaid
 * @typedef {OfModel & {tokens: number, scores: Record<string, number | null>, recall: {head: string, raw: number | null, effective: number | null}[]}} CopyingSaid
 * @typedef {{top: string, p_answer: number, p_rival: number | null}} Believed
 * @typedef {OfModel & {matrix: string, rank: number, of: number, before: Believed, after: Believed, loss: [number, number] | null}} TruncateSaid
 * @typedef {{top: string, p_old: number, p_new: number}} Belief
 * @typedef {OfModel & {was: string, answer: string, matrix: string, prompt: string, before: Belief, after: Belief, changed: {what: string, do: number, of: number}[], loss: [number, number], notes: string[]}} EditSaid
 * @typedef {{t: "heads" | "compose" | "copying", run: string, step: number | null}} ProbeAsked
 * @typedef {{t: "truncate", run: string, step: number | null, layer: number, matrix: string, share: number, prompt: string, answer: string, rival: string}} TruncateAsked
 * @typedef {{t: "edit", run: string, step: number | null, prompt: string, answer: string}} EditAsked
 * @typedef {{t: "weights", run: string, step: number}} WeightsAsked
 * @typedef {{t: "undo", run: string, step: number | null, edit: number}} UndoAsked
 * @typedef {{t: "facts", run: string, step: number | null, look_back: number}} FactsAsked
 * @typedef {{t: "facts", id: number, run: string, step: number, pending: number, seconds: number, rule: string, editable: boolean, model: string, spare: number,
 *   columns: [keyof Fact, string, string][], facts: Record<string, (string | number | null)[]>, stages: string[], weakest: number | null}} FactsSaid columns: name, title, hint
 * @typedef {{i: number, subject: string, relation: string, answer: string, guess: string, rival: string, stage: number, p: number | null, margin: number | null,
 *   own: number | null, interference: number | null, frequency: number | null, learned: number | null, after: number | null}} Fact a row of the bench
 * @typedef {{t: "fact_edit" | "fact_write", run: string, step: number | null, subject: string, relation: string, answer: string}} FactEditAsked
 * @typedef {{t: "fact_edit", id: number, run: string, step: number, subject: string, relation: string, answer: string, right: string, matrix: string, was: string,
 *   learned: number, moved: number, changed: {what: string, n: number, of: number}[], broke: number,
 *   others: {subject: string, relation: string, was: string, now: string, broke: boolean}[], seconds: number}} FactEditSaid
 * @typedef {{t: "add_facts", run: string, at: number | null, facts: [string, string, string][], draw: number}} AddFactsAsked
 * @typedef {{d: number | null, store: number | null, K: number | null, lr: number | null}} Sizes
 * @typedef {{t: "theory", run: string, step: null}} TheoryAsked
 * @typedef {{t: "theory", id: number, run: string, sizes: Sizes, left: {part: string, rate: number, step: number, measured: [number | null, number] | null}[], says_nothing: string[],
 *   first_step: {matrix: string, why: string | null, rows: {name: string, title: string, cosine: number | null, ratio: number | null, size: number}[], taken?: number, lr?: number, note?: string}}} TheorySaid
 * @typedef {{t: "predict", run: string, d: number | null, store: number | null, lr: number | null}} PredictAsked
 * @typedef {{counted: string, theory: {value: number, law: string}, measured: {value: number, low: number | null, high: number | null}, error: number | null, notes: string[],
 *   warning: string | null, extrapolated: boolean, factor: number, proposal: Record<string, number> | null, command: string}} SizeSaid
 * @typedef {{memory: string, title: string, stores: string, fits: SizeSaid, holds: SizeSaid, twice: SizeSaid, needs: SizeSaid}} Predicted
 * @typedef {{t: "predict", id: number, run: string, own: Sizes, at: Sizes, capacity: Predicted[], stages: {part: string, rate: number, step: number}[], first_step: number | null}} PredictSaid
 * @typedef {{t: "levels", run: string, K: number}} LevelsAsked
 * @typedef {{t: "levels", id: number, run: string, K: number, levels: Level[]}} LevelsSaid
 * @typedef {FactsAsked | FactEditAsked | AddFactsAsked | TheoryAsked | PredictAsked | LevelsAsked} PanelAsked
 * @typedef {{t: "columns", run: string, columns: Column[]}} ColumnsSaid
 * @typedef {{t: "rows", run: string, from: number, columns: Columns}} Rows
 * @typedef {{t: "state", run: string, state: string, step: number | null, snapshots: number[], live: number | null,
 *   why: string | null, births: Mark[], trainer: Trainer, edits?: EditInForce[], computing?: string | null, waiting?: string[], computed?: number[]}} State why: it diverged
 * @typedef {{t: "cell", id: number, key: string, value: string, score: number, rank: number, margin: number | null,
 *   best: string, within?: number}} CellSaid within: how far the score may be off, in a file
 * @typedef {{t: "reading", run: string, step: number, error: string | null, tokens: number[], marks: string[],
 *   asked: boolean[] | null, asks: "next" | "answer", heads: Role[], right: (string | null)[], predictions: Guess[][], parts: Record<string, (number | null)[]>,
 *   probabilities: (number | null)[]}} ReadingSaid with an error it has nothing else
 * @typedef {{t: "tick", serial: number}} Tick ends what was made for the view with this serial
 * @typedef {{t: "tokens", id: number, tokens: number[]}} TokensSaid
 * @typedef {{t: "answer", id: number, ok: boolean, run?: string | null, step?: number | null, error?: string | null,
 *   field?: string | null, note?: string}} Answer note: what was guessed of a table
 * @typedef {{t: "error", message: string}} Failure
 * @typedef {Hello | RunsSaid | About | ColumnsSaid | Rows | State | ReadingSaid | Tick | CellSaid | TokensSaid | Answer | Failure} Heard
 *
 * @typedef {{id: number, run: string, step: number, seconds: number}} OfRun
 * @typedef {{name: string, title: string, short: string, lines: string[], words: string, kind: "embedding" | "head" | "feed-forward" | "memory" | "answer", column: number, role: string | null,
 *   share: number | null, head: Head | null, matrices: string[], attribution?: number | null, worth?: number | null,
 *   recall?: number | null, kl?: number | null, p_right?: number | null}} CircuitNode
 * @typedef {{from: string, to: string, recall: number | null, cut: number | null, attribution: number | null, matrices: string[], words: string}} CircuitEdge
 * @typedef {OfRun & {t: "circuit", why: string | null, nodes: CircuitNode[], edges: CircuitEdge[], loss?: number | null,
 *   p_right?: number | null, positions?: number, sequences?: number}} CircuitSaid
 * @typedef {{mark: string, before: number | null, after: number | null}} Moved
 * @typedef {OfRun & {t: "effect", what: string, here: {position: number, token: string, right: Moved | null, moved: Moved[], likeliest: [string, string]},
 *   unseen: {loss: (number | null)[], p_right: (number | null)[], positions: number, sequences: number}}} EffectSaid
 * @typedef {OfRun & {t: "spectrum", matrices: {name: string, shape: [number, number], values: number[] | null, effective: number | null}[]}} SpectrumSaid
 * @typedef {OfRun & {t: "spectra", matrix: string, steps: number[], left: number, values: number[][], effective: (number | null)[]}} SpectraSaid
 * @typedef {{accuracy: number | null, loss: number | null, p_correct: number | null, p_noise?: number | null}} CutMetrics
 * @typedef {OfRun & {t: "cut", matrix: string, of: number, sequences: number, positions: number, whole: CutMetrics, rows: (CutMetrics & {share: number, rank: number})[]}} CutSaid
 * @typedef {CircuitSaid | EffectSaid | SpectrumSaid | SpectraSaid | CutSaid} InquirySaid
 * @typedef {{t: "circuit" | "spectrum", run: string, step: number | null}} PartsAsked
 * @typedef {{t: "effect", run: string, step: number | null, kind: string, fields: Record<string, Plain>, tokens: number[] | null, position: number | null}} EffectAsked
 * @typedef {{t: "spectra", run: string, step: number | null, matrix: string}} SpectraAsked
 * @typedef {{t: "cut", run: string, step: number | null, matrix: string, shares: number[]}} CutAsked
 * @typedef {PartsAsked | EffectAsked | SpectraAsked | CutAsked} InquiryAsked
 *
 * @typedef {{run: string | null, column: string, step: number | "last"}} Measured a number that a run has measured
 * @typedef {{run?: string, step?: number | "last", panel?: string, matrix?: string, minus?: number, basis?: "memory" | "raw", head?: string, part?: string, text?: string, find?: string}} Go
 * @typedef {{text?: string, mark?: "strong" | "em" | "code", go?: Go, value?: Measured}} LessonPart
 * @typedef {{kind: "question", n: number, ask: LessonBlock[], answer: LessonBlock[], choices?: LessonPart[][], right?: number, number?: {value?: number, measured?: Measured, within: number}}} LessonQuestion
 * @typedef {LessonQuestion | {kind: "heading" | "text", words: LessonPart[]} | {kind: "list", items: LessonPart[][]}} LessonBlock
 * @typedef {{name: string, run: string, steps: number, seconds: number | null, preset: string, seed: number, settings: Record<string, Plain>}} LessonRun
 * @typedef {{name: string, meaning: string, type: "integer" | "number" | "boolean" | "text" | "json", words: string, value: string, default: string | null, choices: string[] | null}} FullField
 * @typedef {{t: "fields", id: number, preset: string, fields: FullField[]}} FieldsSaid
 * @typedef {{t: "lesson", id: number, name: string, title: string, about: string, runs: LessonRun[], blocks: LessonBlock[]}} LessonSaid
 * @typedef {{t: "lessons", id: number, lessons: {name: string, title: string, about: string}[]}} LessonsSaid
 * @typedef {{t: "lesson", name: string} | {t: "lessons"} | {t: "fields", preset: string} | UploadAsked} LessonAsked
 * @typedef {{t: "upload", kind: "text" | "facts", name: string, content: string, preset: string | null, seed: number, settings: Record<string, Plain>}} UploadAsked
 *
 * @typedef {{t: "view", run: string, step: number | null, pictures: string[], minus: number | null, minus_run: string | null, shows: "run" | "other",
 *   tokens: number[] | null, ablate: Head[], dtype: "u8" | "f4", hz: number, reads: boolean, also: string[],
 *   rows_from: Record<string, number>, serial: number}} View
 * @typedef {{t: "cell", run: string, step: number | null, picture: string, row: number, column: number,
 *   minus: number | null, minus_run: string | null}} CellAsked
 * @typedef {{t: "array", run: string, step: number | null, picture: string, minus: number | null, minus_run: string | null, tokens: number[] | null, ablate: Head[]}} ArrayAsked
 * @typedef {{t: "tokens", run: string, text: string}} TokensAsked
 * @typedef {{t: "start", preset: string, seed: number, settings: Record<string, Plain>}} StartPreset
 * @typedef {{t: "start", run: string}} GoOn
 * @typedef {{t: "control", op: "pause" | "resume" | "step" | "limit", value: number}} Control
 * @typedef {{t: "intervene", run: string, kind: string, at: number | null, fields: Record<string, Plain>}} Intervene
 * @typedef {CellAsked | ArrayAsked | TokensAsked | StartPreset | GoOn | Control | Intervene | ProbeAsked | TruncateAsked | EditAsked | UndoAsked | WeightsAsked | PanelAsked | InquiryAsked | LessonAsked} Question gets an id when it is sent
 *
 * @typedef {{v: number, t: "picture" | "array", id?: number, run: string, step: number, picture: string, minus: number | null, minus_run?: string | null,
 *   tokens: number | null, best?: number[] | null, shape: [number, number], dtype: "u8" | "f4", lo: number, hi: number, within?: number}} Header within: how far a value may be off, where the levels do not tell
 * @typedef {Header & {values: Uint8Array | Float32Array}} Frame
 */

export const VERSION = 7;

/** @param {ArrayBuffer} buffer @returns {Frame} */
export function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  /** @type {Header} */
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const size = header.shape[0] * header.shape[1];
  if (header.dtype === "u8") return { ...header, values: new Uint8Array(buffer, 4 + length, size) };
  const values = new Float32Array(buffer, 4 + length, size);
  return { ...header, ...ends(values), values };
}

/** @param {Float32Array} values */
function ends(values) {
  let lo = Infinity, hi = -Infinity;
  for (const value of values) {
    if (value < lo) lo = value;
    if (value > hi) hi = value;
  }
  return lo <= hi ? { lo, hi } : { lo: 0, hi: 0 };
}

/** The number in a cell of a picture. @param {Frame} frame @param {number} row @param {number} column */
export function valueAt(frame, row, column) {
  const q = frame.values[row * frame.shape[1] + column];
  return frame.dtype === "u8" ? frame.lo + (q * (frame.hi - frame.lo)) / 255 : q;
}
