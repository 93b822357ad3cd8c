/**
 * Where all that the page shows comes from: a lab, over its socket, or data in the file itself. Nothing else in the page
 * knows which. What only a lab can do is not offered by the latter (`lab`), and refused in a sentence if asked.
 * @import { Answer, CellSaid, FieldsSaid, Frame, Heard, LessonSaid, LessonsSaid, Question, TokensSaid, View } from "./protocol.js"
 */
import { inline } from "./inline.js";
import { socket } from "./socket.js";

/** @typedef {CellSaid | TokensSaid | Answer | ArraySaid | LessonSaid | LessonsSaid | FieldsSaid} Reply */
/** @typedef {Frame & {id: number}} ArraySaid a picture at full precision, t: "array" */
/** @typedef {{opened: () => void, heard: (message: Heard) => void, seen: (frame: Frame) => void}} Listener */
/**
 * @typedef {object} Source
 * @property {boolean} lab whether it can train, intervene and compute what is not there yet
 * @property {string} title of the page
 * @property {string[]} told what a reader of the file must know
 * @property {(listener: Listener) => void} connect
 * @property {(message: View | {t: "runs"}) => boolean} send whether it left
 * @property {(question: Question) => Promise<Reply>} ask never fails: what went wrong is an Answer that is not ok
 */

/** @type {Source} */
const source = inline(document.getElementById("engram-data")?.textContent) ?? socket;

export const { lab, title, told, connect, send, ask } = source;

/** In place of what only a lab can do. @param {string} what that, in the plural @param {string | null} of the run */
export const needsLab = (what, of) => `${what} need a running lab: engram lab ${of} opens one.`;

/**
 * One question in flight; of those that come meanwhile only the latest is asked.
 * @template {Question} Q
 * @param {(reply: Reply, question: Q) => void} use
 */
export function latest(use) {
  /** @type {Q | null} */
  let next = null;
  let busy = false;
  const go = async () => {
    busy = true;
    while (next) {
      const question = next;
      next = null;
      use(await ask(question), question);
    }
    busy = false;
  };
  return (/** @type {Q} */ question) => {
    next = question;
    if (!busy) void go();
  };
}
