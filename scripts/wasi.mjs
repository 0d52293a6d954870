// Runs a WASI command under Node: node scripts/wasi.mjs [--dir DIR] MODULE ARGS…
// The module sees the working directory as `.`, and DIR under its own name.
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const given = process.argv.slice(2);
const preopens = { ".": "." };
if (given[0] === "--dir") {
  const [, folder] = given.splice(0, 2);
  preopens[folder] = folder;
}
const [file, ...args] = given;
const wasi = new WASI({ version: "preview1", args: [file, ...args], preopens, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(file));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
