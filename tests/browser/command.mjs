// The page's module as a command with the flags of `k3-host`, for scripts/determinism:
//
//   node tests/browser/command.mjs run DIR --ids IDS --gen N --backend NAME --out -
//   node tests/browser/command.mjs tokenize --tok DIR --file FILE [--plain]
//   node tests/browser/command.mjs functions
import { readFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { PAGE, browse, serve, watchedTab } from "./harness.mjs";

const FLAGS = {
  ids: { type: "string" }, gen: { type: "string" }, backend: { type: "string" }, out: { type: "string" },
  tok: { type: "string" }, file: { type: "string" }, plain: { type: "boolean" },
};

/** Runs in the page: generates with a worker of the page's own. */
async function run({ prompt, count, backend }) {
  const { Client } = await import("/client.js");
  const client = new Client();
  const { layers } = await client.request("openModel", { folder: "checkpoint" });
  const steps = [];
  const used = await client.request("generate", { prompt, count, backend }, (step) => steps.push(step));
  return { backend: used, threads: 1, layers, prompt_ids: prompt, steps };
}

/** Runs in the page: the ids of a text. */
async function tokenize({ text, mode }) {
  const { Client } = await import("/client.js");
  const client = new Client();
  const bytes = async (name) => (await fetch(`/tok/${name}`)).bytes();
  const [model, config] = [await bytes("tiktoken.model"), await bytes("tokenizer_config.json")];
  await client.request("loadVocabulary", { model, config });
  await client.request("encode", { text, mode });
  return client.request("allIds");
}

/** Runs in the page. */
async function functions() {
  const { Client } = await import("/client.js");
  return new Client().request("functions");
}

async function main() {
  const { values, positionals } = parseArgs({ options: FLAGS, allowPositionals: true });
  const [command, folder] = positionals;
  const server = await serve({ "": PAGE, checkpoint: path.resolve(folder ?? PAGE), tok: path.resolve(values.tok ?? PAGE) });
  const browser = await browse();
  try {
    const { tab } = await watchedTab(browser.context, server.origin);
    await tab.goto(`${server.origin}/`);
    if (command === "functions") return await tab.evaluate(functions);
    if (command === "tokenize") {
      const text = await readFile(values.file, "utf8");
      return `${await tab.evaluate(tokenize, { text, mode: values.plain ? "Plain" : "Special" })}\n`;
    }
    const wanted = { prompt: values.ids.split(",").map(Number), count: Number(values.gen), backend: values.backend };
    return `${JSON.stringify(await tab.evaluate(run, wanted))}\n`;
  } finally {
    await browser.close();
    server.close();
  }
}

try {
  process.stdout.write(await main());
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exitCode = 1;
}
