// What the page shows of all labels: tiles, warnings, counts by label, notes, how they were made.

import { labelOf, labelsCsv } from "./csv.js";
import { bar, boxes, element, facts, plainTable, save, sentences, tiles } from "./dom.js";
import { Grid } from "./grid.js";
import { treeTable } from "./tree.js";
import { withheldWord } from "./words.js";
import { fixed, percent, share, some, thousands } from "./text.js";

// Steps of confidence and where they begin: 19 in 20 should be right, 4 in 5, 1 in 2
const STEPS = [
  ["≥ 0.95", 0.95],
  ["0.8–0.95", 0.8],
  ["0.5–0.8", 0.5],
  ["< 0.5", 0],
];

/** Fill the section of the labels. `when` is the date, `open` shows one sample. */
export function showLabels(section, labels, when, open) {
  const grid = new Grid(labels, open);
  section.replaceChildren(
    element("h2", { id: "labels-title" }, `Labels of ${labels.source}`),
    ...boxes([...labels.alarms, ...mostlyWithheld(labels)]),
    tiles(numbersOf(labels)),
    downloads(labels, when),
    element("h3", {}, "Label by label"),
    countsTable(labels, grid),
    ...treeSection(labels),
    element("h3", {}, "Sample by sample"),
    element("p", { class: "note hint" }, "Choose a sample to see why it got its label."),
    grid.root,
    ...missingSection(labels),
    ...sentences("Notes", [...labels.notes, ...labels.warnings]),
    element("h3", {}, "How these labels were made"),
    facts(provenance(labels, when)),
  );
}

function numbersOf(labels) {
  const n = labels.names.length;
  const withheld = labels.codes.reduce((sum, code) => sum + (code > 0), 0);
  const mean = labels.confidence.reduce((sum, x) => sum + x, 0) / n;
  const used = new Set(labels.names.map((_, i) => (labels.codes[i] ? -1 : labels.given[i])));
  used.delete(-1);
  return [
    [thousands(n - withheld), `samples labelled${withheld ? `, of ${thousands(n)}` : ""}`],
    [fixed(mean, 3), "mean confidence"],
    genesTile(labels),
    [`${used.size} of ${labels.all.length}`, `${labels.tree ? "labels of the tree" : "classes"} among the labels`],
  ];
}

/** How many genes of the panel the file has. */
export function genesTile(labels) {
  const n = labels.record.n_genes;
  return [`${n - labels.missing.length} of ${n}`, "genes of the panel found"];
}

function mostlyWithheld(labels) {
  const counts = new Map();
  for (const code of labels.codes) if (code) counts.set(code, (counts.get(code) ?? 0) + 1);
  const n = [...counts.values()].reduce((sum, x) => sum + x, 0);
  if (n <= labels.codes.length / 2) return [];
  const [most] = [...counts].sort((a, b) => b[1] - a[1])[0];
  return [
    `${percent(n / labels.codes.length)} of the labels are withheld, mostly because: ${labels.reasons[most]}`,
  ];
}

function downloads(labels, when) {
  const stem = labels.source.replace(/\.[^.]*$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80) || "query";
  const csv = (spreadsheet) => () =>
    save(`${stem}-labels.csv`, labelsCsv(labels, spreadsheet), "text/csv;charset=utf-8");
  const json = () =>
    save(`${stem}-labels.csv.json`, [`${JSON.stringify({ ...labels.record, date: when }, null, 1)}\n`], "application/json");
  return element(
    "div",
    { class: "row" },
    element("button", { type: "button", class: "main", id: "save-csv", onclick: csv(false) }, "Save the labels (.csv)"),
    element("button", { type: "button", onclick: csv(true), title: "Texts that a spreadsheet would run as formulas get an apostrophe" }, "… for a spreadsheet"),
    element("button", { type: "button", onclick: json }, "How they were made (.json)"),
    element("button", { type: "button", onclick: () => print() }, "Print"),
  );
}

/** One line per label, the most frequent first, those that are withheld last. */
function countsTable(labels, grid) {
  const lines = new Map();
  labels.names.forEach((_, i) => {
    const name = labelOf(labels, i);
    if (!lines.has(name)) lines.set(name, { n: 0, sum: 0, steps: [0, 0, 0, 0] });
    const line = lines.get(name);
    line.n++;
    line.sum += labels.confidence[i];
    line.steps[STEPS.findIndex(([, from]) => labels.confidence[i] >= from)]++;
  });
  const withheld = withheldWord(labels.all);
  const ordered = [...lines].sort(([a, x], [b, y]) => (a === withheld) - (b === withheld) || y.n - x.n);
  const rows = ordered.map(([name, line]) => [
    element("button", { type: "button", class: "link", onclick: () => grid.find(name) }, name),
    thousands(line.n),
    share(line.n / labels.names.length, 1),
    bar(line.n / labels.names.length),
    fixed(line.sum / line.n, 3),
    ...line.steps.map((n) => (n && name !== withheld ? thousands(n) : "")),
  ]);
  const columns = [["label", true], ["samples", false], ["share", false], ["", true], ["mean confidence", false]];
  const unused = labels.all.filter((name) => !lines.has(name));
  return element(
    "div",
    {},
    plainTable("Samples by label", [...columns, ...STEPS.map(([name]) => [name, false])], rows),
    unused.length ? element("p", { class: "note" }, `No sample got the label ${some(unused, 20)}.`) : null,
  );
}

/** The labels of a tree, each with the samples that have it or a finer one. */
function treeSection(labels) {
  if (!labels.tree) return [];
  const n = labels.names.length;
  const rows = treeTable(labels).map((line, k) => [
    `${"\u2003".repeat(labels.tree.depths[k])}${labels.all[k]}`,
    thousands(line.n),
    thousands(line.own),
    share(line.n / n, 1),
    line.n ? fixed(line.sum / line.n, 3) : "",
  ]);
  const columns = [["label", true], ["samples", false], ["with this very label", false], ["share", false], ["mean confidence", false]];
  return [
    element("h3", {}, "The tree of labels"),
    element("p", {}, "A sample gets the finest label that is sure; it counts for the coarser ones as well."),
    plainTable("The tree of labels", columns, rows),
  ];
}

/** The genes of the panel that the file lacks, and what that means. */
export function missingSection(labels) {
  const n = labels.missing.length;
  if (!n) return [];
  return [
    element("h3", {}, "Missing genes"),
    element(
      "p",
      {},
      `${n} of the panel's ${labels.record.n_genes} genes are missing: ${some(labels.missing, 20)}. Their ` +
        "votes are missing; the genes that are there are ranked among themselves.",
    ),
  ];
}

/** How labels were made, as names and texts. */
export function provenance(labels, when) {
  const record = labels.record;
  const options = Object.keys(record.options).length ? JSON.stringify(record.options) : "none";
  const lines = [
    ["model", record.model || "without a name"],
    ["model file", `SHA-256 ${record.model_sha256}`],
    ["optirank", `${record.optirank_version}, in a browser`],
    ["date", when],
    ["options", options],
    ["query", record.query],
    ["checksum of the query", record.query_checksum],
  ];
  if ("threshold" in record) {
    lines.push(["confidence from", `${fixed(record.threshold, 3)}: ${record.threshold_reason}`]);
  }
  return lines;
}
