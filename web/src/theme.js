/** Light or dark: as the system says, or as chosen. */
import { computed, effect, signal } from "@preact/signals";

/** @type {import("@preact/signals").Signal<"auto" | "light" | "dark">} */
export const theme = signal("auto");

const system = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(system.matches);
system.addEventListener("change", () => (systemDark.value = system.matches));

export const dark = computed(() => theme.value === "dark" || (theme.value === "auto" && systemDark.value));

export function toggleTheme() {
  const other = dark.value ? "light" : "dark";
  theme.value = (other === "dark") === systemDark.value ? "auto" : other;
}

effect(() => {
  document.documentElement.style.colorScheme = dark.value ? "dark" : "light";
});
