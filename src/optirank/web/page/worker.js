// The worker of the page: reads the file, labels its samples, explains one of them.

import { openHdf5 } from "./hdf5.js";
import { readModel } from "./model.js";
import { label } from "./predict.js";
import { openTable } from "./tables.js";
import { contributions } from "./votes.js";

const PROGRESS = 100; // milliseconds between two reports
let labels = null;

self.onmessage = async ({ data }) => {
  try {
    if (data.type === "explain") {
      const n = labels.panel.present.length;
      const values = labels.values.subarray(data.row * n, (data.row + 1) * n);
      const explanation = contributions(values, labels.panel, labels.chosen[data.row]);
      self.postMessage({ type: "explained", row: data.row, explanation });
      return;
    }
    labels = await labelFile(data);
    const { values, panel, ...shown } = labels;
    self.postMessage({ type: "labels", labels: shown });
  } catch (error) {
    self.postMessage({ type: "error", message: String(error?.message ?? error) });
  }
};

async function labelFile({ file, model, words, options }) {
  const open = /\.h5(ad)?$/i.test(file.name) ? openHdf5 : openTable;
  const fitted = readModel(model);
  const progress = reporter();
  const source = await open(file, fitted, options, progress);
  return label(source, fitted, words, options, progress);
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
