// The page: takes a file, has it labelled by a worker, and shows what comes back.

import { boxes, byId, element, facts, plainTable } from "./dom.js";
import { showSample } from "./sample.js";
import { showLabels } from "./summary.js";
import { printable } from "./text.js";

const TEXTS_OF_CARD = ["class", "data", "platform", "how", "worst class"]; // columns of text, in its tables
const part = (name) => document.querySelector(`script[data-part="${name}"]`)?.textContent ?? "";
const models = [...document.querySelectorAll('script[data-part="model"]')];
const state = { worker: null, file: null, model: null, labels: null, when: "", address: null };

/** The bytes that a packed text (base64 of gzip) holds, as a response to read. */
function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
}

async function start() {
  if (part("h5wasm")) document.body.classList.add("hdf5");
  byId("model").append(...models.map((stored) => element("option", {}, stored.dataset.name)));
  byId("models").hidden = models.length < 2;
  byId("model").addEventListener("change", chooseModel);
  byId("file").addEventListener("change", (event) => event.target.files[0] && work(event.target.files[0]));
  // So that the same file can be chosen again
  byId("file").addEventListener("click", (event) => (event.target.value = ""));
  byId("label-text").addEventListener("click", () => work(new File([byId("text").value], "pasted.txt")));
  byId("again").addEventListener("click", () => work(state.file));
  byId("cancel").addEventListener("click", endWorker);
  byId("sample").addEventListener("close", () => document.body.classList.remove("one-sample"));
  acceptDrops(byId("drop"));
  await chooseModel();
  document.body.dataset.ready = "yes";
}

async function chooseModel() {
  const model = await unpacked(models[Math.max(0, byId("model").selectedIndex)].textContent).json();
  state.model = model;
  const card = Object.fromEntries(model.card);
  byId("title").textContent = `Label samples: ${model.name || "a model"}`;
  byId("description").textContent = card.description ?? `Labels: ${model.classes.join(", ")}.`;
  showCard(byId("about"), model, part("licence"));
  if (state.file) await work(state.file);
}

/** The model's card: what it is for, what it was trained on, how good it is. */
function showCard(place, model, licence) {
  const details = (title, ...inside) => element("details", {}, element("summary", {}, title), ...inside);
  const tables = Object.entries(model.tables).map(([title, columns]) => {
    const names = Object.keys(columns);
    const rows = columns[names[0]].map((_, k) => names.map((name) => columns[name][k]));
    return details(title, plainTable(title, names.map((name) => [name, TEXTS_OF_CARD.includes(name) ? "text" : ""]), rows));
  });
  place.replaceChildren(
    element("h2", {}, "The model"),
    facts([...model.card.filter(([name]) => name !== "description"), ["model file", `SHA-256 ${model.digest}`]]),
    ...tables,
    details(`The panel's ${model.genes.length} genes`, element("p", {}, model.genes.join(", "))),
  );
  if (licence) place.append(details("Licence of the reader of .h5ad (h5wasm, by NIST)", element("pre", {}, licence)));
}

function acceptDrops(drop) {
  const over = (event) => {
    event.preventDefault();
    drop.classList.add("over");
  };
  addEventListener("dragenter", over);
  addEventListener("dragover", over);
  addEventListener("dragleave", () => drop.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    const file = event.dataTransfer.files[0];
    if (file) work(file);
  });
}

/** The options as `label` and the readers take them. */
function options() {
  const text = (id) => byId(id).value.trim() || null;
  const number = (id) => (byId(id).value === "" ? null : Number(byId(id).value));
  return {
    genesIn: text("genes-in"),
    geneColumn: text("gene-column"),
    layer: text("layer"),
    invert: byId("invert").checked,
    threshold: number("threshold"),
    targetError: number("target-error"),
  };
}

/** Have a file labelled by a new worker; one that is at work ends. */
async function work(file) {
  endWorker();
  state.file = file;
  byId("labels").hidden = true;
  byId("error").hidden = true;
  byId("again").hidden = false;
  report(`reading ${file.name}`, null);
  const run = (state.worker = {}); // until there is one
  const script = await workerScript(/\.h5(ad)?$/i.test(file.name));
  if (state.worker !== run) return; // cancelled, or another file was chosen meanwhile
  if (state.address) URL.revokeObjectURL(state.address);
  state.address = URL.createObjectURL(script);
  const worker = (state.worker = new Worker(state.address));
  worker.onmessage = ({ data }) => worker === state.worker && take(data);
  worker.onerror = (event) => worker === state.worker && fail(event.message || "the worker ended: is there too little memory?");
  worker.postMessage({ type: "label", file, model: state.model, words: JSON.parse(part("words")), options: options() });
}

/** The worker's script, which is text of this page. */
async function workerScript(withHdf5) {
  const parts = [await unpacked(part("worker")).text()];
  if (withHdf5 && part("h5wasm")) parts.unshift(await unpacked(part("h5wasm")).blob(), ";globalThis.h5wasm = h5wasm;\n");
  return new Blob(parts, { type: "text/javascript" });
}

function take(data) {
  if (data.type === "progress") report(data.what, data.seen / data.all);
  else if (data.type === "error") fail(data.message);
  else if (data.type === "labels") finish(data.labels);
  else {
    showSample(byId("sample"), state.labels, data.row, data.explanation, state.when);
    document.body.classList.add("one-sample");
    if (!byId("sample").open) byId("sample").showModal();
    byId("sample").scrollTop = 0;
  }
}

function finish(labels) {
  state.labels = labels;
  state.when = new Date().toISOString().slice(0, 10);
  byId("working").hidden = true;
  byId("labels").hidden = false;
  showLabels(byId("labels"), labels, state.when, (row) => state.worker.postMessage({ type: "explain", row }));
  byId("labels").focus();
}

function fail(message) {
  endWorker();
  byId("error").replaceChildren(...boxes([printable(message, 2000)]));
  byId("error").hidden = false;
}

function endWorker() {
  state.worker?.terminate?.();
  state.worker = null;
  byId("working").hidden = true;
}

/** Show how far the work is; a share of null is not known. */
function report(what, share) {
  byId("working").hidden = false;
  byId("doing").textContent = printable(what, 200);
  if (share === null) byId("progress").removeAttribute("value");
  else byId("progress").value = share;
}

start();
