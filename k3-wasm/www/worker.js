// Does the work, so that the page never waits: a module instance, and one handler for each kind of message.
//
// A message is { id, kind, … }. Its answer is { id, result } or { id, error }; before it may come { id, step }.
import init, { ModelFiles, TextMode, TextTokenizer, backends, functions } from "./k3.js";

/** How many tokens are shown at once. */
const PART = 500;

const ready = init({ module_or_path: new URL("k3_bg.wasm", import.meta.url) });
const vocabulary = { model: null, config: null };
let tokenizer = null;
let ids = new Uint32Array();
let model = null;
let broken = null;

const handlers = {
  start: () => ({ backends: backends() }),
  functions: () => functions(),
  loadVocabulary,
  encode,
  tokens: ({ start }) => tokensFrom(start),
  allIds: () => ids.join(","),
  openModel,
  generate,
};

self.onmessage = async ({ data }) => {
  const { id, kind } = data;
  try {
    await ready;
    if (broken) throw broken;
    self.postMessage({ id, result: await handlers[kind](data) });
  } catch (error) {
    if (isFault(error)) broken = new Error(`${error.message}. Reload the page.`);
    self.postMessage({ id, error: (broken ?? error).message });
  }
};

/** Whether the module itself failed: it must not be called again. */
function isFault(error) {
  return error instanceof WebAssembly.RuntimeError || error.message.startsWith("this should not have happened");
}

/** The contents of a file of this page. */
async function fetched(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: the server answers ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** Takes the files that are given, and those given before in place of others. If they are refused, nothing changes. */
async function loadVocabulary(given) {
  const model = given.model ?? vocabulary.model;
  const config = given.config ?? vocabulary.config ?? (await fetched("tokenizer_config.json"));
  if (!model) throw new Error("tiktoken.model is missing: choose it too");
  const started = performance.now();
  const loaded = new TextTokenizer(model, config);
  const milliseconds = performance.now() - started;
  tokenizer?.free();
  tokenizer = loaded;
  Object.assign(vocabulary, { model, config });
  return { size: tokenizer.vocabulary(), milliseconds };
}

/** Encodes a text, keeps its ids, and decodes them again to see whether the same text comes back. */
function encode({ text, mode }) {
  const started = performance.now();
  ids = tokenizer.encode(text, TextMode[mode]);
  const milliseconds = performance.now() - started;
  const bytes = tokenizer.decode(ids);
  return {
    milliseconds,
    characters: characterCount(text),
    bytes: new TextEncoder().encode(text).length,
    sameText: decodesTo(bytes, text),
    ...tokensFrom(0),
  };
}

function characterCount(text) {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

function decodesTo(bytes, text) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) === text;
  } catch {
    return false;
  }
}

/** The part of the tokens that begins at `wanted`; the first, if the text has become shorter than that meanwhile. */
function tokensFrom(wanted) {
  const start = wanted < ids.length ? wanted : 0;
  const part = ids.subarray(start, start + PART);
  const tokens = Array.from(part, (id) => ({
    id,
    bytes: tokenizer.decode(Uint32Array.of(id)),
    special: tokenizer.isSpecial(id),
  }));
  return { start, part: PART, total: ids.length, tokens };
}

/** Fetches a checkpoint, whose index names its shards, and opens it. */
async function openModel({ folder }) {
  const index = await fetched(`${folder}/model.safetensors.index.json`);
  const shards = new Set(Object.values(JSON.parse(new TextDecoder().decode(index)).weight_map));
  const files = new ModelFiles();
  files.add("model.safetensors.index.json", index);
  for (const name of ["config.json", ...shards]) files.add(name, await fetched(`${folder}/${name}`));
  model?.free();
  model = null;
  model = files.open();
  return { layers: model.layers(), vocabulary: model.vocabulary() };
}

/** Generates, and tells of each step as it comes; the result names the kernels that computed. */
function generate({ id, prompt, count, backend }) {
  const onStep = (token, logits_hash, seconds) => self.postMessage({ id, step: { id: token, logits_hash, seconds } });
  return model.generate(Uint32Array.from(prompt), count, backend, onStep);
}
