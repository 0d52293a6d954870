// The tokenizer of the page: the ids that the native program gives, and those that the released code gave.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { PAGE, ROOT, browse, native, serve } from "./harness.mjs";
import { Page, until } from "./page.mjs";

const CASES = path.join(ROOT, "fixtures/tokenizer/cases");
const MODEL = path.join(PAGE, "tiktoken.model");
const PLAIN = "are ordinary text, as in what a user writes";
const SPECIAL = "are special tokens";
const CHIPS = 500;

/** Milliseconds. Nearly all of a pause is the browser's own work on its text box: 0.8 s where this was written. */
const MOST_PAUSE = 3000;

let browser;
let folder;
before(async () => {
  browser = await browse();
  folder = mkdtempSync(path.join(tmpdir(), "k3-texts-"));
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs `body` on the page; with `bundled: false` on one that has no vocabulary. */
async function onPage(body, { bundled = true } = {}) {
  const server = await serve({ "": PAGE }, bundled ? {} : { "page.json": '{"vocabulary": false}' });
  const page = await Page.open(browser.context, server.origin);
  try {
    if (bundled) assert.match(await page.vocabularyStatus(), /163,840 ids/);
    await body(page);
    assert.deepEqual(page.faults, []);
  } finally {
    await page.tab.close();
    server.close();
  }
}

/** Writes a file into the folder of this test. */
function file(name, contents) {
  const written = path.join(folder, name);
  writeFileSync(written, contents);
  return written;
}

/** The ids of a text as the native program gives them. */
function nativeIds(text, ...flags) {
  return native("tokenize", "--tok", PAGE, "--file", file("text", text), ...flags);
}

test("typed text gives the ids of the native program, live", () =>
  onPage(async (page) => {
    const text = "The capital of France is 巴黎 👩‍💻";
    await page.tab.getByLabel("Text", { exact: true }).pressSequentially(text);
    await page.encoded();
    const ids = await page.allIds();
    assert.equal(ids, nativeIds(text));
    assert.ok(ids.startsWith("1008,10484,318,15383,387,"), ids);
    assert.equal(await page.text("count-tokens"), String(ids.split(",").length));
    assert.equal(await page.text("count-characters"), String([...text].length));
    assert.equal(await page.text("count-bytes"), String(Buffer.byteLength(text)));
    assert.equal(await page.text("round-trip"), "same text ✓");
    const items = page.tab.locator("#tokens li");
    assert.equal(await items.nth(1).innerText(), "·capital\n10484");
    // Nothing of the last text may stay.
    await page.fill("");
    assert.equal(await items.count(), 0);
    assert.equal(await page.text("count-tokens"), "0");
  }));

test("special spellings are special tokens or ordinary text, as one chooses", () =>
  onPage(async (page) => {
    const text = "<|open|>a<|reserved_token_163600|>";
    await page.fill(text);
    assert.equal(await page.allIds(), nativeIds(text));
    assert.equal(await page.allIds(), "163587,64,163600");
    assert.equal(await page.tab.locator("#tokens li.special").count(), 2);
    assert.match(await page.tab.locator("#tokens li").first().textContent(), /special token/);
    await page.chooseMode(PLAIN);
    assert.equal(await page.allIds(), nativeIds(text, "--plain"));
    assert.equal(await page.tab.locator("#tokens li.special").count(), 0);
    await page.chooseMode(SPECIAL);
    assert.equal(await page.allIds(), "163587,64,163600");
  }));

test("the table shows the bytes of every token", () =>
  onPage(async (page) => {
    const text = "a\n\t é巴𠀀\u202e";
    await page.fill(text);
    await page.tab.getByText("The same tokens as a table").click();
    await page.tab.locator("#table tr").first().waitFor();
    const rows = await page.tab.locator("#table tr").all();
    const cells = await Promise.all(rows.map((row) => row.locator("td").allInnerTexts()));
    assert.equal(cells.map((row) => row[1]).join(), nativeIds(text));
    assert.equal(cells.map((row) => row[3].replaceAll(" ", "")).join(""), Buffer.from(text).toString("hex"));
    assert.equal(cells[0][2], "a");
    assert.ok(cells.some((row) => /^⟨[0-9a-f ]+⟩$/.test(row[2])), "a token that is no whole character shows its bytes");
  }));

test("recorded texts give the recorded ids", (context) =>
  onPage(async (page) => {
    let [compared, plain] = [0, 0];
    for (const name of readdirSync(CASES).filter((name) => name.endsWith(".txt"))) {
      const read = (end) => readFileSync(path.join(CASES, name.replace(/\.txt$/, end)), "utf8").trim();
      const text = readFileSync(path.join(CASES, name), "utf8");
      // A text box holds no carriage returns, and nothing can be copied of an empty one.
      if (text === "" || text.includes("\r")) continue;
      await page.fill(text);
      assert.equal(await page.allIds(), read(".ids"), name);
      assert.equal(await page.text("round-trip"), "same text ✓", name);
      compared += 1;
      if (!readdirSync(CASES).includes(name.replace(/\.txt$/, ".none.ids"))) continue;
      await page.chooseMode(PLAIN);
      assert.equal(await page.allIds(), read(".none.ids"), name);
      await page.chooseMode(SPECIAL);
      plain += 1;
    }
    assert.ok(compared > 60 && plain > 4, `${compared} texts, ${plain} of them plain`);
    context.diagnostic(`${compared} texts, ${plain} of them in both modes`);
  }));

test("pasting a megabyte leaves the page alive, and shows a part that it names", (context) =>
  onPage(async (page) => {
    const piece = readFileSync(path.join(CASES, "084.txt"), "utf8").replace(/[\0\r]/g, "");
    const text = piece.repeat(Math.ceil(2 ** 20 / Buffer.byteLength(piece)));
    await page.tab.evaluate((text) => navigator.clipboard.writeText(text), text);
    await page.tab.evaluate(() => {
      let last = performance.now();
      globalThis.longestPause = 0;
      setInterval(() => {
        const now = performance.now();
        globalThis.longestPause = Math.max(globalThis.longestPause, now - last);
        last = now;
      }, 10);
    });
    await page.tab.getByLabel("Text", { exact: true }).press("Control+v");
    await page.encoded();
    const pause = await page.tab.evaluate(() => globalThis.longestPause);
    context.diagnostic(`longest pause ${Math.round(pause)} ms, encoded in ${await page.text("encode-time")}`);
    assert.ok(pause < MOST_PAUSE, `the page stood still for ${pause} ms`);
    assert.equal(page.tab.workers().length, 2, "the work is done in workers");
    const ids = nativeIds(text).split(",");
    assert.equal(await page.text("count-tokens"), ids.length.toLocaleString("en"));
    assert.equal(await page.text("count-bytes"), Buffer.byteLength(text).toLocaleString("en"));
    assert.equal(await page.text("round-trip"), "same text ✓");
    const items = page.tab.locator("#tokens li");
    assert.equal(await items.count(), CHIPS);
    const total = ids.length.toLocaleString("en");
    assert.equal(await page.text("shown"), `1 to 500 of ${total}`);
    await page.tab.getByRole("button", { name: "Next" }).click();
    await until(page.tab, () => document.querySelector("#shown").textContent.startsWith("501 "));
    assert.equal(await page.text("shown"), `501 to 1,000 of ${total}`);
    const shown = await page.tab.locator("#tokens li small").allInnerTexts();
    assert.deepEqual(shown, ids.slice(CHIPS, 2 * CHIPS));
    assert.equal(await page.allIds(), ids.join());
  }));

test("half a surrogate pair is not said to come back", () =>
  onPage(async (page) => {
    // Playwright sends texts as UTF-8, which half a pair cannot cross.
    await page.tab.evaluate(() => {
      const box = document.querySelector("#text");
      box.value = "a\ud800";
      box.dispatchEvent(new InputEvent("input"));
    });
    await page.encoded();
    assert.equal(await page.text("round-trip"), "another text ✗");
    assert.equal(await page.allIds(), nativeIds("a\ufffd"));
  }));

test("a vocabulary that is chosen is read, whatever was tried before", (context) =>
  onPage(async (page) => {
    assert.equal(await page.vocabularyStatus(), "No vocabulary is loaded.");
    const config = path.join(PAGE, "tokenizer_config.json");
    const lines = readFileSync(MODEL, "utf8").split("\n");
    const refused = async (files, ...words) => {
      await page.chooseVocabulary(...files);
      const error = await page.error("vocabulary-error");
      for (const word of words) assert.ok(error?.includes(word), `${error} should say ${word}`);
    };
    await refused([config], "tiktoken.model is missing");
    await refused([file("picture.png", "\x89PNG\n\x1a\n")], "tiktoken.model, line 1", "base64");
    await refused([file("cut.model", lines.slice(0, 300).join("\n"))], "tiktoken.model", "cut short");
    await refused([file("gap.model", lines.toSpliced(99, 1).join("\n"))], "line 100: rank 100 where 99 belongs");
    await refused([MODEL, file("other.json", "{}")], "tokenizer_config.json", "added_tokens_decoder");
    await refused([MODEL, file("second.model", "")], "choose one vocabulary");
    assert.equal(await page.vocabularyStatus(), "No vocabulary is loaded.");
    await page.fill("The capital");
    assert.equal(await page.text("count-tokens"), "–");

    await page.chooseVocabulary(MODEL);
    assert.match(await page.vocabularyStatus(), /^163,840 ids from tiktoken.model, read in /);
    context.diagnostic(await page.vocabularyStatus());
    assert.equal(await page.error("vocabulary-error"), null);
    assert.equal(await page.allIds(), "1008,10484", "the text that waited is encoded");

    await refused([file("empty.model", "")], "the file is empty");
    assert.equal(await page.vocabularyStatus(), "The vocabulary that was loaded before is still in use.");
    assert.equal(await page.allIds(), "1008,10484");
    await page.chooseVocabulary(MODEL, config);
    assert.match(await page.vocabularyStatus(), /tiktoken.model, tokenizer_config.json/);
  }, { bundled: false }));
