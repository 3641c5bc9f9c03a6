// The worker of the page: reads the file, labels its samples, explains one of them.

import { explainSample, label } from "./predict.js";
import { openHdf5 } from "./hdf5.js";
import { readModel } from "./model.js";
import { openTable } from "./tables.js";

const TABLES = ["csv", "tsv", "txt", "tab", "gct", "sf", "results"];
const PROGRESS = 100; // milliseconds between two reports
let labels = null;

self.onmessage = async ({ data }) => {
  try {
    if (data.type === "explain") {
      self.postMessage({ type: "explained", row: data.row, explanation: explainSample(labels, data.row) });
      return;
    }
    labels = await labelled(data);
    const { values, panel, ...shown } = labels;
    self.postMessage({ type: "labels", labels: { ...shown, present: panel.present } });
  } catch (error) {
    self.postMessage({ type: "error", message: String(error?.message ?? error) });
  }
};

/** The labels of a file by a model's data, with what the reader says of the file. */
async function labelled({ file, model, tables, words, options }) {
  const progress = reporter();
  const fitted = readModel(model);
  const binary = isBinary(file.name);
  const source = binary
    ? await openHdf5(file, fitted.genes, options)
    : await openTable(file, fitted.genes, options, progress);
  const result = await label(source, fitted, tables, words, options, progress);
  const about = { layers: source.layers ?? [], hasRaw: source.hasRaw ?? false, genesIn: source.genesIn };
  return { ...result, warnings: source.warnings, about };
}

/** Whether a file is HDF5 by its name; an error for a name of neither kind. */
function isBinary(name) {
  const suffixes = name.toLowerCase().split(".").slice(1);
  if (suffixes.slice(-2).some((suffix) => TABLES.includes(suffix))) return false;
  if (!["h5ad", "h5"].includes(suffixes.at(-1))) {
    throw new Error(
      `${name}: its name has no ending of a format that this page reads (.csv, .tsv, .txt, .tab, .gct, .sf or ` +
        ".results, also .gz; .h5ad and .h5 of 10x): rename it, or save it as one of these; cells of a spreadsheet " +
        "can be pasted",
    );
  }
  if (!globalThis.h5wasm) {
    throw new Error(
      `${name}: this page reads tables (.csv, .tsv, .txt, .tab, .gct, .sf or .results, also .gz); optirank export --h5ad ` +
        "makes one that reads .h5ad and .h5 too",
    );
  }
  return true;
}

/** A function that reports progress, not more often than the page can show it. */
function reporter() {
  let last = 0;
  return (what, seen, all) => {
    const now = performance.now();
    if (now - last < PROGRESS) return;
    last = now;
    self.postMessage({ type: "progress", what, seen, all });
  };
}
