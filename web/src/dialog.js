/** A window over the page; Escape closes it. */
import { html, useLayoutEffect, useRef } from "./html.js";
import { dialog } from "./store.js";

/** @param {{name: "start" | "help" | "runs" | "lessons", title: string, children?: unknown}} props */
export function Dialog({ name, title, children }) {
  const box = /** @type {{current: HTMLDialogElement | null}} */ (useRef(null)), open = dialog.value === name;
  useLayoutEffect(() => {
    if (open && !box.current?.open) box.current?.showModal();
    if (!open && box.current?.open) box.current.close();
  }, [open]);
  const close = () => {
    if (dialog.value === name) dialog.value = null;
  };
  return html`<dialog ref=${box} aria-label=${title} data-testid=${`dialog-${name}`} onClose=${() => !box.current?.open && close()}
    onClick=${(/** @type {Event} */ e) => e.target === box.current && close()}>
    ${open && html`<div class="sheet"><header><h2>${title}</h2>
      <button class="icon" aria-label="Close" onClick=${close}>×</button></header>${children}</div>`}
  </dialog>`;
}
