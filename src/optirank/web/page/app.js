// The page: takes a file, has it labelled by a worker, and shows what comes back.

import { showCard } from "./card.js";
import { byId, element } from "./dom.js";
import { unpacked, unpackedBytes } from "./packed.js";
import { showSample } from "./sample.js";
import { showLabels } from "./summary.js";
import { printable } from "./text.js";

const part = (name) => document.querySelector(`script[data-part="${name}"]`)?.textContent ?? "";
const models = [...document.querySelectorAll('script[data-part="model"]')];
const state = { run: 0, worker: null, file: null, labels: null, when: "", model: null, address: null };

async function start() {
  const words = JSON.parse(part("words"));
  if (part("h5wasm")) document.body.classList.add("hdf5");
  for (const stored of models) byId("model").append(element("option", {}, stored.dataset.name));
  byId("models").hidden = models.length < 2;
  byId("model").addEventListener("change", chooseModel);
  byId("file").addEventListener("change", (event) => event.target.files[0] && work(event.target.files[0]));
  // So that the same file can be chosen again
  byId("file").addEventListener("click", (event) => (event.target.value = ""));
  byId("label-text").addEventListener("click", () => work(new File([byId("text").value], "pasted.txt")));
  byId("again").addEventListener("click", () => work(state.file));
  byId("cancel").addEventListener("click", cancel);
  byId("sample").addEventListener("close", () => document.body.classList.remove("one-sample"));
  acceptDrops();
  state.words = words;
  await chooseModel();
  document.body.dataset.ready = "yes";
}

async function chooseModel() {
  state.model = await unpacked(models[Math.max(0, byId("model").selectedIndex)].textContent);
  const card = Object.fromEntries(state.model.card);
  byId("title").textContent = `Label samples: ${state.model.name || "a model"}`;
  byId("description").textContent = card.description ?? `Labels: ${state.model.classes.join(", ")}.`;
  document.body.classList.toggle("tree", state.model.tree !== null);
  showCard(byId("about"), state.model, part("licence"));
  if (state.file) await work(state.file);
}

function acceptDrops() {
  const drop = byId("drop");
  for (const type of ["dragenter", "dragover"]) {
    addEventListener(type, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  addEventListener("dragleave", () => drop.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    const file = event.dataTransfer.files[0];
    if (file) work(file);
  });
}

/** The options as `label` takes them. */
function options() {
  const text = (id) => byId(id).value.trim() || null;
  const number = (id) => (byId(id).value === "" ? null : Number(byId(id).value));
  const names = (byId("annotations").value ?? "").split(",");
  return {
    genesIn: text("genes-in"),
    annotations: names.map((name) => name.trim()).filter(Boolean),
    geneColumn: text("gene-column"),
    layer: text("layer"),
    useRaw: byId("use-raw").checked,
    invert: byId("invert").checked,
    dropMissing: byId("drop-missing").checked,
    anyScale: byId("any-scale").checked,
    threshold: number("threshold"),
    targetError: number("target-error"),
    unknownRate: number("unknown-rate"),
    levels: state.model.tree !== null && byId("levels").checked,
    strict: byId("strict").checked,
    dropClasses: byId("drop-classes").checked,
    homologs: byId("any-case").checked ? "case" : null,
  };
}

/** Have a file labelled by a new worker; one that is at work ends. */
async function work(file) {
  endWorker();
  const run = state.run;
  state.file = file;
  state.labels = null;
  byId("labels").hidden = true;
  byId("error").hidden = true;
  byId("again").hidden = false;
  report(`reading ${file.name}`, null);
  const address = await workerAddress(needsHdf5(file));
  const tables = await unpacked(part("tables"));
  if (run !== state.run) return; // cancelled, or another file was chosen meanwhile
  const worker = (state.worker = new Worker(address));
  worker.onmessage = ({ data }) => worker === state.worker && take(data);
  worker.onerror = (event) => worker === state.worker && fail(event.message || "the worker ended: is there too little memory?");
  worker.postMessage({ type: "label", file, model: state.model, tables, words: state.words, options: options() });
}

const needsHdf5 = (file) => /\.h5(ad)?$/i.test(file.name) && part("h5wasm") !== "";

/** The address of the worker's script, which is text of this page. */
async function workerAddress(withHdf5) {
  if (state.address) URL.revokeObjectURL(state.address);
  const parts = [await unpackedBytes(part("worker")).text()];
  if (withHdf5) {
    parts.unshift(await unpackedBytes(part("h5wasm")).blob(), ";globalThis.h5wasm = h5wasm;\n");
  }
  state.address = URL.createObjectURL(new Blob(parts, { type: "text/javascript" }));
  return state.address;
}

function take(data) {
  if (data.type === "progress") report(data.what, data.seen / data.all);
  else if (data.type === "error") fail(data.message);
  else if (data.type === "labels") finish(data.labels);
  else if (data.type === "explained") {
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
  byId("error").textContent = printable(message, 2000);
  byId("error").hidden = false;
}

function cancel() {
  endWorker();
  byId("drop").focus();
}

function endWorker() {
  state.run++;
  state.worker?.terminate();
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
