// What the page shows of all labels: tiles, warnings, notes, counts by label, samples, how they were made.

import { labelOf, labelsCsv } from "./csv.js";
import { bar, boxes, button, element, facts, plainTable, save, section, sentences, tiles } from "./dom.js";
import { Grid } from "./grid.js";
import { fixed, percent, share, some, thousands } from "./text.js";
import { treeTable } from "./tree.js";
import { withheldWord } from "./withhold.js";

/** Fill the section of the labels. `when` is the date, `open` shows one sample. */
export function showLabels(place, labels, when, open) {
  const grid = new Grid(labels, open);
  place.replaceChildren(
    element("h2", { id: "labels-title" }, `Labels of ${labels.source}`),
    ...boxes([...labels.alarms, ...mostlyWithheld(labels)]),
    tiles(numbersOf(labels)),
    downloads(labels, when),
    ...sentences("Notes", labels.notes),
    ...section("Label by label", countsTable(labels, grid)),
    ...treeSection(labels),
    ...section(
      "Sample by sample",
      element("p", { class: "note hint" }, "Choose a sample to see why it got its label."),
      grid.root,
    ),
    ...section("How these labels were made", facts(provenance(labels, when))),
  );
}

function numbersOf(labels) {
  const n = labels.names.length;
  const given = labels.given.filter((_, i) => !labels.codes[i]);
  const mean = labels.confidence.reduce((sum, x) => sum + x, 0) / n;
  return [
    [thousands(given.length), `samples labelled${given.length < n ? `, of ${thousands(n)}` : ""}`],
    [fixed(mean, 3), "mean confidence"],
    ...(labels.record.likeness === null ? [] : [[fixed(labels.record.likeness, 2), "likeness (median; 1 is typical)"]]),
    genesTile(labels),
    [`${new Set(given).size} of ${labels.all.length}`, `${labels.tree ? "labels of the tree" : "classes"} among the labels`],
  ];
}

/** How many genes of the panel the file has. */
export function genesTile(labels) {
  const n = labels.record.n_genes;
  return [`${n - labels.missing.length} of ${n}`, "genes of the panel found"];
}

function mostlyWithheld({ codes, reasons }) {
  const n = codes.filter((code) => code).length;
  if (n <= codes.length / 2) return [];
  const counts = reasons.map((_, code) => (code ? codes.filter((one) => one === code).length : 0));
  const most = reasons[counts.indexOf(Math.max(...counts))];
  return [`${percent(n / codes.length)} of the labels are withheld, mostly because: ${most}`];
}

function downloads(labels, when) {
  const stem = labels.source.replace(/\.[^.]*$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80) || "query";
  const csv = () => save(`${stem}-labels.csv`, labelsCsv(labels), "text/csv;charset=utf-8");
  const record = `${JSON.stringify({ ...labels.record, date: when }, null, 1)}\n`;
  const json = () => save(`${stem}-labels.csv.json`, [record], "application/json");
  return element(
    "div",
    { class: "row" },
    button("Save the labels (.csv)", csv, { class: "main", id: "save-csv" }),
    button("How they were made (.json)", json),
    button("Print", () => print()),
  );
}

/** One line per label, the most frequent first, those that are withheld last. */
function countsTable(labels, grid) {
  const n = labels.names.length;
  const lines = new Map();
  labels.names.forEach((_, i) => {
    const name = labelOf(labels, i);
    if (!lines.has(name)) lines.set(name, { n: 0, confidence: 0 });
    const line = lines.get(name);
    line.n++;
    line.confidence += labels.confidence[i];
  });
  const withheld = withheldWord(labels.all);
  const ordered = [...lines].sort(([a, x], [b, y]) => (a === withheld) - (b === withheld) || y.n - x.n);
  const rows = ordered.map(([name, line]) => [
    button(name, () => grid.find(name), { class: "link" }),
    thousands(line.n),
    share(line.n / n, 1),
    bar(line.n / n),
    fixed(line.confidence / line.n, 3),
  ]);
  const columns = [["label", "text"], ["samples", ""], ["share", ""], ["", "bar"], ["mean confidence", ""]];
  const table = plainTable("Samples by label", columns, rows);
  const unused = labels.all.filter((name) => !lines.has(name));
  if (!unused.length) return table;
  return element("div", {}, table, element("p", { class: "note" }, `No sample got the label ${some(unused, 20)}.`));
}

/** The labels of a tree, each with the samples that have it or a finer one. */
function treeSection(labels) {
  if (!labels.tree) return [];
  const rows = treeTable(labels).map((line, k) => [
    "\u00a0\u00a0\u00a0".repeat(labels.tree.ways[k].length - 1) + labels.all[k],
    thousands(line.n),
    thousands(line.itself),
    line.n ? fixed(line.sum / line.n, 3) : "",
  ]);
  const columns = [["label", "text"], ["samples", ""], ["with this very label", ""], ["mean confidence", ""]];
  return section(
    "The tree of labels",
    element("p", {}, "A sample gets the finest label that is sure; it counts for the coarser ones as well."),
    plainTable("The tree of labels", columns, rows),
  );
}

/** How labels were made, as names and texts. */
export function provenance({ record }, when) {
  const asked = Object.keys(record.options).length ? JSON.stringify(record.options) : "none";
  const lines = [
    ["model", record.model || "without a name"],
    ["model file", `SHA-256 ${record.model_sha256}`],
    ["optirank", `${record.optirank_version}, in a browser`],
    ["date", when],
    ["options", asked],
    ["query", record.query],
  ];
  if ("threshold" in record) lines.push(["confidence from", `${fixed(record.threshold, 3)}: ${record.threshold_reason}`]);
  return lines;
}
