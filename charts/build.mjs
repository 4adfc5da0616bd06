// Bundle the parts of Observable Plot that page.js uses into one file, under the licenses of all packages in it.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const TARGET = "../uq_tracking/comparison/templates/plot.min.js";
const made = await build({
  entryPoints: ["entry.js"], bundle: true, minify: true, format: "iife", globalName: "Plot", target: "es2020",
  charset: "ascii", legalComments: "none", metafile: true, write: false,
});
const [{ inputs }] = Object.values(made.metafile.outputs);
const used = Object.keys(inputs).filter((path) => path.startsWith("node_modules/") && inputs[path].bytesInOutput);
const packages = [...new Set(used.map((path) => path.match(/^node_modules\/(@[^/]+\/)?[^/]+/)[0]))].sort();
const named = new Map();
for (const folder of packages) {
  const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = ["LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE", "README.md"].map((end) => `${folder}/${end}`).find(existsSync);
  const license = readFileSync(file, "utf8").replaceAll("*/", "* /").trim();
  named.set(license, [...(named.get(license) || []), `${name} ${version}`]);
}
const notices = [...named].map(([license, names]) => `${names.join(", ")}\n\n${license}`);
const bundle = `/*!\n${notices.join("\n\n")}\n*/\n${made.outputFiles[0].text}`;
writeFileSync(TARGET, bundle);
writeFileSync("plot.min.js.sha256", `${createHash("sha256").update(bundle).digest("hex")}\n`);
