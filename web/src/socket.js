/**
 * The source of a lab, one connection: opens, is lost, opens again. Questions get an id and a promise.
 * @import { Heard, Question, View } from "./protocol.js"
 * @import { ArraySaid, Listener, Reply, Source } from "./source.js"
 */
import { decode } from "./protocol.js";
import { link } from "./store.js";

const FIRST_WAIT = 250, LONGEST_WAIT = 4000; // milliseconds between two attempts
const SILENCE = 12000, LOOK = 1000; // milliseconds without a word after which a server is lost (it has one every 3 seconds); between two looks
const LOOKING = 8000, DOING = 60000, PROBING = 600000; // milliseconds that an answer may take

/** @type {WebSocket | null} */
let current = null;
let wait = FIRST_WAIT;
let lastId = 0, spoke = 0, looks = 0;
/** @type {Map<number, (reply: Reply) => void>} */
const waiting = new Map();

/** The token stays in the address; it is never stored. */
function address() {
  const token = new URLSearchParams(location.search).get("token") ?? "";
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  return `${scheme}://${location.host}/ws?token=${encodeURIComponent(token)}`;
}

/** @param {Listener} listener */
function connect(listener) {
  const opening = new WebSocket(address());
  current = opening;
  opening.binaryType = "arraybuffer";
  opening.onopen = () => {
    link.value = "open";
    listener.opened();
  };
  spoke = Date.now();
  opening.onmessage = ({ data }) => {
    spoke = Date.now();
    wait = FIRST_WAIT; // only a server that speaks counts: one that refuses the token may open and close at once
    if (typeof data === "string") hear(JSON.parse(data), listener);
    else seeOrSettle(decode(data), listener);
  };
  opening.onclose = () => lost(listener);
  clearInterval(looks);
  looks = setInterval(() => Date.now() - spoke > SILENCE && leave(opening, listener), LOOK);
}

/** A server that says nothing, as one that is frozen: a new connection is tried, and this one says no more. @param {WebSocket} silent @param {Listener} listener */
function leave(silent, listener) {
  clearInterval(looks);
  Object.assign(silent, { onopen: null, onmessage: null, onclose: null });
  silent.close();
  lost(listener);
}

/** A picture may be the answer to a question. @param {import("./protocol.js").Frame} frame @param {Listener} listener */
function seeOrSettle(frame, listener) {
  if (frame.id === undefined) return listener.seen(frame);
  waiting.get(frame.id)?.(/** @type {ArraySaid} */ (frame));
  waiting.delete(frame.id);
}

/** @param {Heard} message @param {Listener} listener */
function hear(message, listener) {
  const settle = "id" in message ? waiting.get(message.id) : undefined;
  if (!("id" in message)) return listener.heard(message);
  waiting.delete(message.id);
  settle?.(message);
}

/** @param {Listener} listener */
function lost(listener) {
  if (link.value !== "other") link.value = "lost";
  for (const [id, settle] of waiting) settle({ t: "answer", id, ok: false, error: "the connection was lost" });
  waiting.clear();
  setTimeout(() => connect(listener), wait);
  wait = Math.min(LONGEST_WAIT, 2 * wait);
}

/** @param {View | {t: "runs"}} message @returns {boolean} whether it left */
function send(message) {
  if (current?.readyState !== WebSocket.OPEN) return false;
  current.send(JSON.stringify(message));
  return true;
}

/** @param {Question} question @returns {Promise<Reply>} never fails: what went wrong is an Answer that is not ok */
function ask(question) {
  const id = ++lastId;
  return new Promise((settle) => {
    if (current?.readyState !== WebSocket.OPEN) {
      return settle({ t: "answer", id, ok: false, error: "there is no connection" });
    }
    waiting.set(id, settle);
    setTimeout(giveUp, patience(question.t), id);
    return current.send(JSON.stringify({ ...question, id }));
  });
}

/** A large model takes its time. @param {string} kind */
function patience(kind) {
  if (kind === "cell" || kind === "tokens") return LOOKING;
  return ["heads", "compose", "copying", "truncate", "edit", "facts", "fact_edit", "theory", "levels"].includes(kind) ? PROBING : DOING;
}

/** A question that is never answered must not hold up those that come after it. @param {number} id */
function giveUp(id) {
  waiting.get(id)?.({ t: "answer", id, ok: false, error: "no answer came in time" });
  waiting.delete(id);
}

/** @type {Source} */
export const socket = { lab: true, title: "", told: [], connect, send, ask };
