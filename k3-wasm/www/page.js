// Starts the page: a worker for the tokenizer and one for the model, so that neither waits for the other.
import { Client } from "./client.js";
import { byId, showError } from "./elements.js";
import { ModelView } from "./model-view.js";
import { TokenizerView } from "./tokenizer-view.js";

async function start() {
  const tokenizer = new Client();
  const tokenizerView = new TokenizerView(tokenizer);
  const model = new Client();
  const modelView = new ModelView(model);
  const { backends } = await model.request("start");
  await tokenizer.request("start");
  byId("module-status").textContent = "The module is loaded.";
  const { vocabulary } = await (await fetch("page.json")).json();
  await Promise.all([modelView.load(backends), vocabulary ? tokenizerView.loadBundled() : undefined]);
}

start().catch((error) => {
  byId("module-status").textContent = "The module is not loaded.";
  byId("model-status").textContent = "The model is not loaded.";
  showError(byId("module-error"), error);
});
