// The grid of heads and the attention map of the one that is chosen. DATA has scores, maps and tokens.
const of = (id) => document.getElementById(id);
const buttons = new Map([...document.querySelectorAll("#grid button")].map((b) => [b.id, b]));
const T = DATA.tokens.length;
let chosen = null, kind = "induction";

const bytes = (name) => Uint8Array.from(atob(DATA.heads[name].map), (c) => c.charCodeAt(0));
const at = (map, t, s) => map[(t * (t + 1)) / 2 + s] / 255;
const rgb = (name) => {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1);
  return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16));
};

function colour() {
  of("scale").textContent = DATA.scales[kind];
  for (const [name, button] of buttons) {
    const value = DATA.heads[name].values[kind];
    button.style.setProperty("--v", Math.min(1, Math.abs(value)));
    button.classList.toggle("less", value < 0);
    button.ariaLabel = `${name}, ${kind} ${value.toFixed(2)}`;
    button.title = `${name} ${value.toFixed(2)}`;
  }
}

function choose(name, focus) {
  if (!buttons.has(name)) return;
  if (chosen) Object.assign(buttons.get(chosen), { tabIndex: -1, ariaPressed: "false" });
  chosen = name;
  Object.assign(buttons.get(name), { tabIndex: 0, ariaPressed: "true" });
  if (focus) buttons.get(name).focus();
  const { words, values } = DATA.heads[name];
  const more = "copying" in values ? ` · copying ${values.copying.toFixed(2)}` : "";
  of("name").textContent = name;
  of("numbers").textContent = `induction ${words.induction} · previous token ${words.previous}${more} (mean, range of the seeds)`;
  draw();
}

const SIZE = Math.max(3, Math.min(18, Math.floor(640 / T)));
const LONGEST = Math.max(...DATA.tokens.map((token) => [...token].length));
const MARGIN = SIZE >= 9 ? 14 + 7 * Math.min(13, LONGEST) : 6;

function draw() {
  const canvas = of("map"), map = bytes(chosen), side = MARGIN + T * SIZE + 4, ratio = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: side * ratio, height: side * ratio });
  Object.assign(canvas.style, { width: `${side}px`, height: `${side}px` });
  const pen = canvas.getContext("2d"), cold = rgb("--cold"), hot = rgb("--hot");
  pen.scale(ratio, ratio);
  for (let t = 0; t < T; t++) for (let s = 0; s <= t; s++) {
    const a = at(map, t, s);
    pen.fillStyle = `rgb(${cold.map((c, i) => Math.round(c + (hot[i] - c) * Math.sqrt(a))).join()})`;
    pen.fillRect(MARGIN + s * SIZE, MARGIN + t * SIZE, SIZE - 1, SIZE - 1);
  }
  if (SIZE >= 9) label(pen);
  const edges = strongest(map);
  canvas.ariaLabel = `attention map of ${chosen} over ${T} tokens; strongest edges: ${edges}`;
  of("strongest").textContent = `Looks most, apart from the first token: ${edges || "nowhere else"}`;
}

function label(pen) {
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--muted");
  pen.font = "10px system-ui, sans-serif";
  pen.textBaseline = "middle";
  DATA.tokens.forEach((token, i) => {
    const short = [...token].slice(0, 13).join("");
    pen.textAlign = "right";
    pen.fillText(short, MARGIN - 5, MARGIN + (i + 0.5) * SIZE);
    pen.save();
    pen.translate(MARGIN + (i + 0.5) * SIZE, MARGIN - 5);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "left";
    pen.fillText(short, 0, 0);
    pen.restore();
  });
}

function strongest(map) {
  const edges = [];
  for (let t = 1; t < T; t++) for (let s = 1; s <= t; s++) edges.push([at(map, t, s), t, s]);
  edges.sort((one, other) => other[0] - one[0]);
  const words = ([a, t, s]) => `${DATA.tokens[t]} (${t + 1}) → ${DATA.tokens[s]} (${s + 1}) ${a.toFixed(2)}`;
  return edges.slice(0, 3).filter(([a]) => a > 0.02).map(words).join(", ");
}

of("map").addEventListener("pointermove", (event) => {
  const [s, t] = [event.offsetX, event.offsetY].map((v) => Math.floor((v - MARGIN) / SIZE));
  if (t < 0 || s < 0 || t >= T || s > t) return;
  of("edge").textContent = `${DATA.tokens[t]} (${t + 1}) looks at ${DATA.tokens[s]} (${s + 1}): ${at(bytes(chosen), t, s).toFixed(2)}`;
});
of("grid").addEventListener("click", (event) => event.target.id && choose(event.target.id, false));
of("grid").addEventListener("keydown", (event) => {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (!(event.key in steps)) return;
  event.preventDefault();
  const [, layer, head] = chosen.match(/L(\d+)H(\d+)/).map(Number), [x, y] = steps[event.key];
  choose(`L${layer + x}H${head + y}`, true);
});
for (const radio of document.querySelectorAll("input[name=kind]"))
  radio.addEventListener("change", () => { kind = radio.value; colour(); });
window.addEventListener("hashchange", () => choose(location.hash.slice(1), false));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
colour();
choose(buttons.has(location.hash.slice(1)) ? location.hash.slice(1) : of("grid").dataset.best, false);
