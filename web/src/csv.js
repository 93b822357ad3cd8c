/** Numbers and names as files to take away. @import { Frame } from "./protocol.js" */

/** What a spreadsheet would take for a formula is text. @param {unknown} cell */
function quoted(cell) {
  if (cell === null || cell === undefined) return "";
  if (typeof cell === "number") return String(cell);
  const text = /^[=+\-@\t\r]/.test(String(cell)) && !Number.isFinite(Number(cell)) ? `'${cell}` : String(cell);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {unknown[][]} rows */
export const csvOf = (rows) => rows.map((row) => `${row.map(quoted).join(",")}\n`).join("");

/** A line for each row of a matrix, numbers alone. Nine digits are all that 32 bits have. @param {Frame} frame @param {(frame: Frame, row: number, column: number) => number} valueAt */
export const csvOfFrame = (frame, valueAt) => csvOf(Array.from({ length: frame.shape[0] }, (_, i) =>
  Array.from({ length: frame.shape[1] }, (__, j) => Number(valueAt(frame, i, j).toPrecision(9)))));

/** @param {string} name @param {Blob} content */
export function save(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name.replace(/[^\w.-]+/g, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
