/**
 * What stands behind each panel, one declaration for each: formula, meaning, and its numbers with the Python that gives the same.
 * @import { Frame } from "./protocol.js"
 */
import { circuitSaid } from "./circuit.js";
import { momentOf } from "./compare.js";
import { csvOf, csvOfFrame } from "./csv.js";
import { facts, said as factsSaid } from "./facts.js";
import { find } from "./frames.js";
import { number } from "./html.js";
import { within } from "./inline.js";
import { composedSaid, copiedSaid, headsSaid } from "./probing.js";
import { valueAt } from "./protocol.js";
import { bandOf, cohorts, drawnRuns } from "./seeds.js";
import { reading } from "./sequence.js";
import { ask, lab } from "./source.js";
import { matrices as spectra, spectrumSaid } from "./spectrum.js";
import { ablate, about, curves, curvesOf, events, info, model, ofOthers, rows, run, runs, stored, tokens } from "./store.js";
import { predicted } from "./theory.js";
import { maps, wall } from "./view.js";

/**
 * @typedef {{title: string, file: string, csv: () => Promise<string> | string, python?: () => string, note?: string, picture?: string}} Item picture: the canvas that shows it
 * @typedef {{formula: string, meaning: string, items: () => Item[]}} Declared
 */

/** A text as Python writes it. @param {unknown} value */
const py = (value) => JSON.stringify(value);

/** @param {string} id */
const load = (id) => `import engram\n\nrecord = engram.load(${py(id)})\n`;

/** A picture less that of another step or run, where the page shows that. @param {Frame} frame @param {string} before @param {(record: string, step: number) => string} values */
function less(frame, before, values) {
  const far = frame.minus_run, first = `values = ${values("record", frame.step)}\n`;
  if (frame.minus === null) return `${before}${first}`;
  return `${before}${far ? `other = engram.load(${py(far)})\n` : ""}${first}values = values - ${values(far ? "other" : "record", frame.minus)}\n`;
}

/** @param {Frame} frame */
function matrixPython(frame) {
  const [kind, name] = frame.picture.split(/:(.*)/s);
  const values = kind === "memory" ? (/** @type {string} */ of, /** @type {number} */ step) => `${of}.model(${step}).memories[${py(name)}].scores().float().numpy()`
    : (/** @type {string} */ of, /** @type {number} */ step) => `torch.atleast_2d(${of}.model(${step}).weights[${py(name)}]).float().numpy()`;
  return less(frame, `${kind === "memory" ? "" : "import torch\n"}${load(frame.run)}`, values);
}

/** In a lab B is asked on the sequence of A; a file has each run on its own. @param {string} of the run that is loaded */
function sequence(of) {
  if (tokens.value) return `tokens = ${py(tokens.value)}\n`;
  const far = lab && of !== run.value, name = far ? "first" : "record";
  return `${far ? `first = engram.load(${py(run.value)})\n` : ""}tokens = ${name}.train.task.sample(${name}.train.seed, 2**41, 1).tokens[0, :1024]  # training never saw it\n`;
}

/** Heads that are taken away on the page are taken away. */
const without = () => ablate.value.map(([layer, head]) => `.ablate(${layer}, ${head})`).join("");

/** @param {Frame} frame */
function attentionPython(frame) {
  const [layer, head] = frame.picture.slice("attention:".length).split(".").map(Number);
  if (!ofOthers.value) return less(frame, `${load(frame.run)}${sequence(frame.run)}`, (of, step) => `${of}.model(${step})${without()}(tokens).attention[${layer - 1}][0, ${head - 1}].float().numpy()`);
  const name = (model.value?.name ?? "").split("/").pop();
  return `import engram\nfrom engram.lab.model_questions import read\n\nnetwork = engram.read_network(${py(name)})  # the folder, file or name that the lab was given
values = read(network, ${py(reading.value?.tokens ?? [])}, ${py(ablate.value)}).patterns[${layer}, ${head}]\n`;
}

/** @param {string} picture @param {string} title @param {(frame: Frame) => string} python @returns {Item[]} nothing while it has not come */
function ofPicture(picture, title, python) {
  const frame = find(picture);
  if (!frame) return [];
  return [{
    title, picture, file: `${frame.run} ${picture} ${momentOf(frame)}`, python: () => python(frame), csv: () => exactly(frame),
    note: `${momentOf(frame)}, ${frame.shape.join(" × ")}, ${lab ? "exact" : `within ±${number(within(frame), 1)}`}`,
  }];
}

/** A lab asks another run about the sequence of A. @param {string} of */
const sequenceFor = (of) => tokens.value ?? (of === run.value ? null : reading.value?.tokens ?? null);

/** The numbers that a lab has; a file has those of its picture. @param {Frame} frame */
async function exactly(frame) {
  const attends = frame.picture.startsWith("attention:");
  const reply = await ask({ t: "array", run: frame.run, step: frame.step, picture: frame.picture, minus: frame.minus, minus_run: frame.minus_run ?? null, tokens: attends ? sequenceFor(frame.run) : null, ablate: attends ? ablate.value : [] });
  if (reply.t !== "array") throw new Error(/** @type {import("./protocol.js").Answer} */ (reply).error ?? "there is no answer");
  return csvOfFrame(/** @type {Frame} */ (reply), valueAt);
}

/** Everything that was measured, as the page has it. @param {string} id @returns {Item} */
function curvesOfRun(id) {
  const held = rows.value[id] ?? { step: [] }, names = ["step", ...(curvesOf.value[id] ?? []).map((c) => c.name).filter((name) => held[name])];
  return {
    title: id === run.value ? "All curves" : `All curves of ${id}`, file: `${id} curves`, note: `${held.step.length} rows, ${names.length - 1} columns`,
    csv: () => csvOf([names, ...held.step.map((_, i) => names.map((name) => held[name][i]))]),
    python: () => `${load(id)}frame = record.frame()\nvalues = {name: frame[name] for name in ${py(names)}}\n`,
  };
}

/** Of runs that differ only in their seed, where every one was measured. @param {string[]} ids @returns {Item} */
function meanOf(ids) {
  const names = curves.value.map((c) => c.name), { steps, of } = bandOf(ids, names), lines = ["mean", "low", "high"];
  return {
    title: `Mean of ${ids.length} seeds`, file: `${ids[0]} and ${ids.length - 1} other seeds`, note: "with the 95 % interval of the mean, by Student’s t",
    csv: () => csvOf([["step", ...names.flatMap((name) => lines.map((line) => `${name} ${line}`))],
      ...steps.map((step, i) => [step, ...names.flatMap((name) => [of[name][i].mean, of[name][i].low, of[name][i].high])])]),
    python: () => `import numpy as np\n\nimport engram\nfrom engram.show.panels import mean_interval\n\nframes = [engram.load(name).frame() for name in ${py(ids)}]
n = min(len(frame["step"]) for frame in frames)\ncurves = {name: np.array([np.asarray(frame[name])[:n] for frame in frames], dtype=float) for name in ${py(names)}}
values = {"step": np.arange(n)} | {f"{name} {what}": of for name, y in curves.items() for what, of in zip(("mean", "low", "high"), (y.mean(axis=0), *mean_interval(y)))}\n`,
  };
}

/** What is predicted: a token and its probability, five times a row. @returns {Item[]} */
function predictions() {
  const said = reading.value;
  if (!said?.predictions[0]?.length) return [];
  const best = said.predictions[0].length, step = said.step;
  return [{
    title: "Predictions", file: `${said.run} predictions step ${step}`, note: `the likeliest ${best} tokens and their probabilities; five digits`,
    csv: () => csvOf(said.predictions.map((line) => line.flatMap((guess) => [guess.token, guess.p]))),
    python: ofOthers.value ? undefined : () => `import torch\n${load(said.run)}${sequence(said.run)}p = record.model(${step})${without()}(tokens).logits[0].softmax(dim=1).topk(${best}, dim=1)
values = torch.stack([p.indices, p.values], dim=2).reshape(len(tokens), -1).numpy()\n`,
  }];
}

/** @param {string} part */
function probePython(part) {
  const id = run.value ?? "", ours = `${load(id)}network = engram.network_of(record.model(${headsSaid.value?.step ?? stored.value}))\n`;
  const theirs = `import engram\n\nnetwork = ${py((model.value?.name ?? "").split("/").pop())}  # the folder, file or name that the lab was given\n`;
  return `${ofOthers.value ? theirs : ours}found = engram.probe(network, ${py(part)}, seeds=${model.value?.seeds ?? 3})\n`;
}

/** @returns {Item[]} */
function scores() {
  const said = headsSaid.value, copy = copiedSaid.value;
  if (!said) return [];
  return [{
    title: "Scores of all heads", file: `${run.value} heads`, note: `step ${said.step}, ${said.heads.length} heads`,
    csv: () => csvOf([["head", "previous", "induction", "copying"], ...said.heads.map((h) => [h.head, h.previous, h.induction, copy?.scores[h.head]])]),
    python: () => `${probePython("heads")}values = [(h["head"], h["previous"], h["induction"]) for h in found.scores.to_json()]\n`,
  }];
}

/** @returns {Item[]} */
function partners() {
  const said = composedSaid.value;
  if (!said) return [];
  return [{
    title: "Recall through each writer", file: `${run.value} composition`, note: `step ${said.step}`,
    csv: () => csvOf([["reader", "writer", "recall", "recall_raw"], ...said.readers.flatMap((r) => r.partners.map((p) => [r.reader, p.writer, p.recall, p.recall_raw]))]),
    python: () => `${probePython("composition")}values = [(r["reader"], p["writer"], p["recall"]) for r in found.composition.to_json()["readers"] for p in r["partners"]]\n`,
  }];
}

/** The numbers of every part and of every line of the circuit. @returns {Item[]} */
function circuit() {
  const said = circuitSaid.value?.said;
  if (!said || said.why) return [];
  const before = `from engram.lab.circuits import circuit\n${load(said.run)}found = circuit(record.train, record.model(${said.step}))\n`;
  return [{
    title: "Parts", file: `${said.run} circuit parts step ${said.step}`, note: `step ${said.step}, ${said.nodes.length} parts and memories`,
    csv: () => csvOf([["part", "adds", "worth", "recall", "role"], ...said.nodes.map((n) => [n.name, n.attribution, n.worth, n.recall, n.role])]),
    python: () => `${before}values = [(n["name"], n.get("attribution"), n.get("worth"), n.get("recall")) for n in found["nodes"]]\n`,
  }, {
    title: "Lines", file: `${said.run} circuit lines step ${said.step}`, note: `step ${said.step}, ${said.edges.length} lines`,
    csv: () => csvOf([["from", "to", "recall", "cut", "adds"], ...said.edges.map((e) => [e.from, e.to, e.recall, e.cut, e.attribution])]),
    python: () => `${before}values = [(e["from"], e["to"], e["recall"], e["cut"], e["attribution"]) for e in found["edges"]]\n`,
  }];
}

/** @returns {Item[]} */
function singularValues() {
  const said = spectrumSaid.value?.said;
  if (!said) return [];
  return [{
    title: "Singular values", file: `${said.run} singular values step ${said.step}`, note: `step ${said.step}, ${spectra.value.length} matrices; six digits`,
    csv: () => csvOf([["matrix", "k", "singular_value"], ...spectra.value.flatMap((m) => m.values.map((v, k) => [m.name, k + 1, v]))]),
    python: () => `import torch\n${load(said.run)}weights = record.model(${said.step}).weights
values = [(name, k + 1, float(s)) for name in ${py(spectra.value.map((m) => m.name))} for k, s in enumerate(torch.linalg.svdvals(weights[name].double()))]\n`,
  }];
}

/** @returns {Item[]} */
function beliefs() {
  const said = factsSaid.value;
  if (!said) return [];
  const names = /** @type {(keyof import("./protocol.js").Fact)[]} */ (["subject", "relation", "answer", "guess", "rival", "p", "margin", "own", "interference", "frequency", "learned"]);
  return [{
    title: "All facts", file: `${said.run} facts step ${said.step}`, note: `step ${said.step}, ${facts.value.length} facts`,
    csv: () => csvOf([[...names, "stage"], ...facts.value.map((f) => [...names.map((name) => f[name]), said.stages[f.stage]])]),
    python: () => `from engram.facts.bench import Bench\nfrom engram.records.weights import initial_weights\n${load(said.run)}spec = record.train
bench = Bench(spec.model, spec.at(spec.steps).task.book(spec.seed), spec.seed)
rows = bench.measured(record.model(${said.step}).weights, initial_weights(spec))
values = [(row.belief.right, row.margin, row.own, row.interference) for row in rows]\n`,
  }];
}

/** What a width holds and needs, as the sliders stand. @returns {Item[]} */
function sizes() {
  const said = predicted.value;
  if (!said?.capacity.length || said.run !== run.value) return [];
  const { d, store } = said.at;
  const lines = (/** @type {import("./protocol.js").Predicted} */ m) => /** @type {[string, import("./protocol.js").SizeSaid][]} */ ([[`d = ${d} holds`, m.holds], [`d = ${2 * (d ?? 0)} holds`, m.twice], [`${store} ${m.stores} need`, m.needs]])
    .map(([what, of]) => [m.memory, what, of.theory.value, of.measured.value, of.measured.low, of.measured.high, of.command]);
  return [{
    title: "What fits", file: `${said.run} sizes`, note: "with the command that gives the same",
    csv: () => csvOf([["memory", "what", "theory", "measured", "low", "high", "command"], ...said.capacity.flatMap(lines)]),
  }];
}

/** @type {Record<string, Declared>} by the name of the panel */
export const DECLARED = {
  timeline: {
    formula: "loss = mean over positions of −ln p(right token)      recall of W = share of questions i with argmaxⱼ vⱼᵀ W kᵢ = right answer",
    meaning: "Each curve is a column of the record; dashed lines are theory. A memory is born when its recall first passes one half.",
    items: () => [...drawnRuns.value.filter((id) => rows.value[id]).map(curvesOfRun), ...cohorts.value.map(meanOf)],
  },
  wall: {
    formula: "score = vᵀ W k,  W = Σ α u eᵀ      margin = score of the right answer − largest score of a wrong one",
    meaning: "Rows are asked, columns answer, and the largest score of a row is recalled. In an output memory keys k ask and values v answer, in a key memory the other way round.",
    items: () => wall.value.flatMap((p) => ofPicture(p.name, p.title, matrixPython)),
  },
  attention: {
    formula: "A[t, s] = softmax over s ≤ t of x_tᵀ W_K x_s  (divided by √d at standard scale)",
    meaning: "Row t is the attention of position t over earlier positions s. A previous-token head looks just beside the diagonal, an induction head behind earlier visits of the current token.",
    items: () => [...maps.value.flatMap((m) => ofPicture(m.name, `Layer ${m.layer}, head ${m.head}`, attentionPython)), ...predictions()],
  },
  heads: {
    formula: "previous = mean over t of A[t, t − 1]      induction = mean over repeated tokens t of A[t, s + 1],  z_s = z_t",
    meaning: "Both are measured on random tokens that come twice, where nothing but the repetition helps. One means that all attention goes there.",
    items: scores,
  },
  composition: {
    formula: "S[k, j] = W_Q n(x_k) · W_K n′(W_O W_V n(x̃_j))      recall = share of tokens k with argmaxⱼ (S[k, j] − meanᵢ S[i, j]) = k",
    meaning: "Do the keys of a reading head find a token by what an earlier head wrote? Chance is one over the number of tokens; a cut shows whether the reader needs that writer.",
    items: partners,
  },
  truncation: {
    formula: "W = Σᵢ σᵢ lᵢ rᵢᵀ,  σ₁ ≥ σ₂ ≥ …      kept: the first ⌊ρ · min(shape)⌋ terms",
    meaning: "A matrix is replaced by the nearest one of lower rank. What changes was stored in its small singular values.",
    items: () => [],
  },
  edits: {
    formula: "W_F ← W_F + β d k̃ᵀ,  k̃ = C⁻¹k / kᵀC⁻¹k,  d = (u_new − u_old) / ‖u_new − u_old‖",
    meaning: "One outer product moves the answer to the key k of a prompt. With C, the second moment of keys over text, other answers move as little as they can.",
    items: () => [],
  },
  circuit: {
    formula: "logit of the right answer − mean logit = Σ over parts of what each adds      worth = loss without the part − loss",
    meaning: "Means over unseen sequences. A part has a role only where a probe confirms it at this step; a cut takes what one head wrote from the keys of another and nothing else.",
    items: circuit,
  },
  spectrum: {
    formula: "W = Σᵢ σᵢ lᵢ rᵢᵀ,  σ₁ ≥ σ₂ ≥ …      effective rank = exp(−Σ pᵢ ln pᵢ),  pᵢ = σᵢ / Σ σ",
    meaning: "A memory of many pairs has many singular values of like size; one large one stands for what all pairs share. The table tells what is lost with fewer of them.",
    items: singularValues,
  },
  facts: {
    formula: "margin = ln p(right) − ln p(rival)      interference = c · Σ over j ≠ i of vⱼ (kⱼ · kᵢ),  c = u_right − u_rival,  ΔW ≈ Σⱼ vⱼ kⱼᵀ",
    meaning: "The learned fact with the smallest margin breaks first. Interference is what the other facts of the same matrix add to its lead, or take from it.",
    items: beliefs,
  },
  theory: {
    formula: "first step: ΔW = −η ∇L,  −∇L = Σₖ u_k Σ (1{y = k} − p̂(k)) xᵀ      what fits: each table names its law",
    meaning: "Laws of the papers at the sizes of this run, beside fits to what was measured. The sliders ask for other sizes; nothing is trained.",
    items: sizes,
  },
  interventions: {
    formula: "fork at step s: the rows before s are those of the parent; the event acts, and training goes on",
    meaning: "Nothing that was measured before an intervention changes. The same events give the same rows, to the byte.",
    items: () => [{
      title: "What was done", file: `${run.value} events`, csv: () => csvOf([["step", "what"], ...events.value.map((e) => [e.step, e.what])]),
      python: () => `${load(run.value ?? "")}values = [(event.step, event.sentence) for event in record.train.events]\n`, note: `${events.value.length} events`,
    }],
  },
  branches: {
    formula: "branches = runs with the same Spec but for their events",
    meaning: "A branch has the rows of its parent up to the step of its last event. Tick it to see both curves.",
    items: () => {
      const family = (runs.value ?? []).filter((r) => r.family === info.value?.family);
      return [{
        title: "Branches", file: `${run.value} branches`, note: `${family.length} runs`,
        csv: () => csvOf([["run", "from step", "rows", "state", "last event"], ...family.map((r) => [r.id, r.parts_at, r.rows, r.state, r.events.at(-1)?.what ?? ""])]),
        python: () => `import engram\n\nrecords = [engram.load(name) for name in ${py(family.map((r) => r.id))}]\nvalues = [(record.id, len(record.table)) for record in records]\n`,
      }];
    },
  },
  settings: {
    formula: "a run = a pure function of its Spec (task, model, plan, seed, events)",
    meaning: "The name ends in the hash of all fields that are not at their defaults. The same Spec on the same machine gives the same rows.",
    items: () => [{
      title: "All settings", file: `${run.value} settings`, note: `${about.value?.settings.length ?? 0} fields`,
      csv: () => csvOf([["field", "value"], ...(about.value?.settings ?? []).map((s) => [s.name, s.value])]),
      python: () => `${load(run.value ?? "")}from engram.records import stored_spec\n\nvalues = dict(stored_spec.fields(record.spec_json))\n`,
    }],
  },
};
