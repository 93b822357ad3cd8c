/** Which run was forked from which. @import { Run } from "./protocol.js" */

/** Whether one run did all that its fork did before it was forked. @param {Run} parent @param {Run} child */
function contains(parent, child) {
  return parent.events.length < child.events.length
    && parent.events.every((e, i) => e.step === child.events[i].step && e.what === child.events[i].what);
}

/** @param {Run} child @param {Run[]} family @returns {Run | undefined} */
export const forkedFrom = (child, family) => family.filter((r) => contains(r, child))
  .sort((a, b) => b.events.length - a.events.length)[0];
