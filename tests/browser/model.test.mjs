// The model of the page: the ids and the logits of the native program, bit for bit.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { PAGE, ROOT, browse, native, serve } from "./harness.mjs";
import { Page } from "./page.mjs";

const MODEL = path.join(ROOT, "fixtures/oracle/a");
const oracle = JSON.parse(readFileSync(path.join(MODEL, "expected/oracle.json"), "utf8"));
const STEPS = 20;

let browser;
before(async () => (browser = await browse()));
after(() => browser?.close());

/** Runs `body` on the page, in which the given files are replaced. */
async function onPage(replaced, body) {
  const server = await serve({ "": PAGE }, replaced);
  const page = await Page.open(browser.context, server.origin);
  try {
    await body(page);
    assert.deepEqual(page.faults, []);
  } finally {
    await page.tab.close();
    server.close();
  }
}

/** What the native program computes after a prompt, with scalar kernels. */
function nativeRun(prompt, steps) {
  const flags = ["--ids", prompt.join(), "--gen", String(steps), "--backend", "scalar", "--out", "-"];
  return JSON.parse(native("run", MODEL, ...flags)).steps;
}

const idsAndHashes = (rows) => rows.map((row) => [Number(row[1]), row[2]]);
const pairs = (steps) => steps.map((step) => [step.id, step.logits_hash]);

for (const backend of ["simd128", "scalar"]) {
  test(`20 steps with ${backend} kernels have the native ids and hashes`, (context) =>
    onPage({}, async (page) => {
      const rows = await page.generate({ steps: STEPS, backend });
      assert.deepEqual(idsAndHashes(rows), pairs(nativeRun(oracle.prompt_ids, STEPS)));
      assert.deepEqual(rows.map((row) => Number(row[1])), oracle.greedy_new_ids.slice(0, STEPS));
      for (const row of rows) assert.deepEqual(row.slice(3), [row[2], "equal ✓"]);
      const status = await page.text("model-status");
      assert.match(status, /^20 of 20 steps have the native logits, bit for bit\./);
      assert.ok(status.toLowerCase().endsWith(`kernels: ${backend}.`), status);
      context.diagnostic(status);
    }));
}

test("another prompt is computed too, and not compared with the wrong run", () =>
  onPage({}, async (page) => {
    const rows = await page.generate({ prompt: "1 2,\n3", steps: 5 });
    assert.deepEqual(idsAndHashes(rows), pairs(nativeRun([1, 2, 3], 5)));
    for (const row of rows) assert.deepEqual(row.slice(3), ["–", "no native run"]);
    assert.match(await page.text("model-status"), /^There is no native run of this prompt/);
  }));

test("steps beyond the native run are not said to be equal", () =>
  onPage({}, async (page) => {
    const rows = await page.generate({ steps: STEPS + 2 });
    assert.equal(rows.length, STEPS + 2);
    assert.deepEqual(rows.slice(STEPS).map((row) => row[4]), ["no native run", "no native run"]);
    assert.match(await page.text("model-status"), /^20 of 20 steps/);
  }));

test("a hash that differs is shown as different", () => {
  const altered = JSON.parse(readFileSync(path.join(PAGE, "native.json"), "utf8"));
  altered.steps[3].logits_hash = "0123456789abcdef";
  return onPage({ "native.json": JSON.stringify(altered) }, async (page) => {
    const rows = await page.generate({ steps: STEPS });
    assert.deepEqual(rows[3].slice(3), ["0123456789abcdef", "different ✗"]);
    assert.match(await page.text("model-status"), /^19 of 20 steps have the native logits/);
  });
});

test("what cannot be a prompt is refused, and the next one is computed", () =>
  onPage({}, async (page) => {
    const refused = async (prompt, word) => {
      assert.deepEqual(await page.generate({ prompt, steps: 2 }), []);
      const error = await page.error("model-error");
      assert.ok(error?.includes(word), `${error} should say ${word}`);
      assert.equal(await page.text("model-status"), "");
    };
    await refused("1,x", "x: not an id");
    await refused("1,-2", "-2: not an id");
    await refused("4294967296", "4294967296: not an id");
    await refused("4294967295", "4294967295 is outside the vocabulary of 131");
    await refused("131", "131 is outside the vocabulary of 131");
    await refused(" , ", "the prompt is empty");
    await refused("1,".repeat(4095), "at most 4096");
    assert.equal((await page.generate({ prompt: "130", steps: 2 })).length, 2);
    assert.equal(await page.error("model-error"), null);
  }));

test("a damaged model is refused, and the file is named", () => {
  const name = "model-00003-of-000014.safetensors";
  const cut = readFileSync(path.join(MODEL, name)).subarray(0, 1000);
  return onPage({ [`model/${name}`]: cut }, async (page) => {
    assert.ok((await page.error("model-error"))?.includes(name));
    assert.ok(await page.tab.getByRole("button", { name: "Generate" }).isDisabled());
  });
});
