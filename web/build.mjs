// Bundles the page into one self-contained file. The same sources give the same bytes.
// With --check nothing is written: the file that is there must be the one that these sources give.
import { build } from "esbuild";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = new URL(".", import.meta.url);
const target = new URL("../src/engram/lab/static/lab.html", here);

/** @param {string} entry */
async function bundle(entry) {
  const result = await build({
    absWorkingDir: fileURLToPath(here),
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["es2022"],
    charset: "utf8",
    legalComments: "none", // the notice in index.html stands for all of them
  });
  return result.outputFiles[0].text.trim().replace(/\n +/g, "\n"); // only templates have lines, and htm skips blanks there
}

const [page, script, style] = await Promise.all([
  readFile(new URL("src/index.html", here), "utf8"),
  bundle("src/main.js"),
  bundle("src/theme.css"),
]);
const safe = script.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
const html = page
  .replace("/* style */", () => style)
  .replace("/* script */", () => safe);
if (process.argv.includes("--check")) {
  if ((await readFile(target, "utf8")) !== html) {
    console.error("lab.html is not what web/ builds; run: make page");
    process.exit(1);
  }
} else {
  await mkdir(new URL(".", target), { recursive: true });
  await writeFile(target, html);
  console.log(`lab.html: ${(Buffer.byteLength(html) / 1024).toFixed(1)} KB`);
}
