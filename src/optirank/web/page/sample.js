// The page of one sample: its label, its probabilities, and what each gene contributes.

import { labelOf } from "./csv.js";
import { bar, boxes, button, element, facts, plainTable, section, sentences, tiles } from "./dom.js";
import { genesTile, provenance } from "./summary.js";
import { fixed, general, percent, signed, thousands } from "./text.js";
import { descend } from "./tree.js";

const SHOWN = 12; // classes and genes that a reader looks at
const WHOLE = 1000; // values from here on are shown without decimals

/** Fill the dialog with a sample, by its position; `why` are the contributions to its class. */
export function showSample(dialog, labels, row, why, when) {
  const n = labels.classes.length;
  const shares = Array.from(labels.probabilities.subarray(row * n, (row + 1) * n));
  const order = shares.map((_, c) => c).sort((a, b) => shares[b] - shares[a] || a - b);
  const name = labels.classes[labels.chosen[row]];
  const sum = `The contributions of all genes sum to the score, ${signed(why.score, 4)}. A rank runs from -0.5, the lowest of the panel in this sample, to 0.5.`;
  dialog.replaceChildren(
    element("div", { class: "close row" }, button("Print", () => print()), button("Close", () => dialog.close(), { autofocus: "" })),
    element("h2", { id: "sample-title" }, `Sample ${labels.names[row]}`),
    element("p", { class: "lead" }, `Labelled by the model ${labels.record.model || "without a name"}, from ${labels.source}.`),
    ...boxes([...labels.alarms, ...withheldBox(labels, row, name)]),
    tiles(tilesOf(labels, row, shares, order)),
    ...section("Probabilities", probabilityTable(labels.classes, shares, order)),
    ...waySection(labels, shares),
    ...section(`Why ${name}: gene by gene`, element("p", { class: "note" }, sum), geneTable(why.genes, name)),
    ...sentences("Notes", labels.notes),
    ...section("How this label was made", facts(provenance(labels, when))),
    element("p", { class: "note" }, "For research; not a medical device."),
  );
}

function withheldBox(labels, row, likely) {
  const reason = labels.reasons[labels.codes[row]];
  return reason ? [`the label is withheld: ${reason}. The most probable class is ${likely}`] : [];
}

function tilesOf(labels, row, shares, order) {
  const label = labels.codes[row] ? ["no label", "withheld"] : [labelOf(labels, row), "label"];
  return [
    label,
    [percent(shares[order[0]]), "probability of the most probable class"],
    [percent(shares[order[1]]), `probability of the next class, ${labels.classes[order[1]]}`],
    [fixed(labels.likeness[row], 2), "likeness (1 is typical)"],
    genesTile(labels),
  ];
}

/** The labels on the way of a sample down the tree. */
function waySection(labels, shares) {
  if (!labels.tree) return [];
  const way = descend(labels.tree, shares, labels.classes);
  const rows = [...new Set(way.path)].map((label, k) => [labels.all[label], percent(way.confidence[k]), bar(way.confidence[k])]);
  const title = "From coarse to fine";
  return section(title, plainTable(title, [["label", "text"], ["probability", ""], ["", "bar"]], rows));
}

function probabilityTable(classes, shares, order) {
  const rows = order.slice(0, SHOWN).map((c) => [classes[c], percent(shares[c]), bar(shares[c])]);
  if (order.length > SHOWN) rows.push([`and ${order.length - SHOWN} more`, "", ""]);
  return plainTable("Probabilities", [["class", "text"], ["probability", ""], ["", "bar"]], rows);
}

function geneTable(genes, name) {
  const longest = Math.max(...genes.map((line) => Math.abs(line.contribution)), Number.MIN_VALUE);
  const rows = genes.slice(0, SHOWN).map(({ gene, value, rank, contribution }) => [
    gene,
    Math.abs(value) >= WHOLE ? thousands(Math.round(value)) : general(value, 4),
    signed(rank, 2),
    signed(contribution, 4),
    bar(Math.abs(contribution) / longest, contribution < 0),
    speaksFor(contribution, name),
  ]);
  const rest = genes.slice(SHOWN);
  if (rest.length) {
    const sum = rest.reduce((total, line) => total + line.contribution, 0);
    rows.push([`${rest.length} more`, "", "", signed(sum, 4), "", ""]);
  }
  const columns = [["gene", "text"], ["value", ""], ["rank", ""], ["contribution", ""], ["", "bar"], ["speaks", "text"]];
  return plainTable("Genes", columns, rows);
}

function speaksFor(amount, name) {
  if (amount === 0) return "";
  return amount > 0 ? `for ${name}` : `against ${name}`;
}
