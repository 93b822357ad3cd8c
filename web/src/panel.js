/** A part of the page that can be folded. Folded or off the screen it asks for nothing. */
import { Drawer, DrawerButton } from "./drawer.js";
import { html, useEffect, useRef } from "./html.js";
import { folded, state, visible } from "./store.js";

/** @param {string} name @param {boolean} on */
function mark(name, on) {
  if (visible.peek().has(name) === on) return;
  const next = new Set(visible.peek());
  if (on) next.add(name);
  else next.delete(name);
  visible.value = next;
}

/** @param {string} name */
function useSight(name) {
  const body = /** @type {{current: HTMLElement | null}} */ (useRef(null));
  const open = !folded.value.includes(name);
  useEffect(() => {
    if (!open || !body.current) return mark(name, false);
    let near = false;
    const tell = () => mark(name, near && !document.hidden);
    const watcher = new IntersectionObserver((entries) => {
      near = entries[entries.length - 1].isIntersecting;
      tell();
    });
    watcher.observe(body.current);
    document.addEventListener("visibilitychange", tell);
    return () => {
      watcher.disconnect();
      document.removeEventListener("visibilitychange", tell);
      mark(name, false);
    };
  }, [name, open]);
  return body;
}

/** @param {string} name @param {boolean} [open] */
export function fold(name, open = folded.value.includes(name)) {
  const rest = folded.value.filter((other) => other !== name);
  folded.value = open ? rest : [...rest, name];
}

/** @param {{name: string, title: string, note?: string, tools?: unknown, children?: unknown}} props note: what its pictures are of, where that is not what is asked for */
export function Panel({ name, title, note = "", tools, children }) {
  const body = useSight(name), open = !folded.value.includes(name);
  return html`<section class="panel" id=${`panel-${name}`} aria-label=${title}>
    <header>
      <h2><button class="fold" aria-expanded=${open} aria-controls=${`body-${name}`} onClick=${() => fold(name)}>
        <span class="chevron" aria-hidden="true"></span>${title}</button></h2>
      ${open && note && html`<small class="other" data-testid=${`note-${name}`} role="status">${note}</small>`}
      ${open && html`<div class="tools">${tools}<${DrawerButton} name=${name} /></div>`}
    </header>
    ${open && html`<${Drawer} name=${name} />`}
    <div class="body" id=${`body-${name}`} ref=${body} hidden=${!open}>${open && children}</div>
  </section>`;
}

/** A model answers one question after the other: what is being computed may be that of another panel. */
export function Computing() {
  const waiting = (state.value?.waiting ?? []).filter((what) => what !== state.value?.computing);
  return html`<span class="hint" role="status" data-testid="computing">computing${state.value?.computing ? `: ${state.value.computing}` : ""}…${waiting.length > 0 && ` then ${waiting.join(", ")}`}</span>`;
}
