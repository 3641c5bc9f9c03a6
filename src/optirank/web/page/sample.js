// The page of one sample: its label, its probabilities, and the votes behind them.

import { labelOf } from "./csv.js";
import { bar, boxes, element, facts, plainTable, sentences, tiles } from "./dom.js";
import { genesTile, missingSection, provenance } from "./summary.js";
import { descend } from "./tree.js";
import { general, percent, signed, thousands } from "./text.js";

const SHOWN = 12; // classes and genes that a reader looks at
const WHOLE = 1000; // values from here on are shown without decimals

/** Fill the dialog with a sample, by its position; `explanation` is that of the worker. */
export function showSample(dialog, labels, row, explanation, when) {
  const n = labels.classes.length;
  const shares = Array.from(labels.probabilities.subarray(row * n, (row + 1) * n));
  const order = shares.map((_, c) => c).sort((a, b) => shares[b] - shares[a] || a - b);
  const explained = labels.chosen[row];
  const why = explanation.classes[explained];
  const name = labels.classes[explained];
  const close = () => dialog.close();
  dialog.replaceChildren(
    element("div", { class: "close row" },
      element("button", { type: "button", onclick: () => print() }, "Print"),
      element("button", { type: "button", onclick: close, autofocus: "" }, "Close")),
    element("h2", { id: "sample-title" }, `Sample ${labels.names[row]}`),
    element("p", { class: "lead" }, `Labelled by the model ${labels.record.model || "without a name"}, from ${labels.source}.`),
    ...boxes([...labels.alarms, ...withheldBox(labels, row, name)]),
    tiles([...labelTiles(labels, row, shares, order), genesTile(labels)]),
    element("h3", {}, "Probabilities"),
    probabilityTable(labels, shares, order),
    ...waySection(labels, shares),
    element("h3", {}, `Why ${name}: the pairs of genes that count most`),
    pairTable(why.pairs, name),
    element("h3", {}, `Why ${name}: gene by gene`),
    element("p", { class: "note" }, `The contributions of all genes sum to the score, ${signed(why.score, 4)}. A rank runs from -0.5, the lowest of the panel in this sample, to 0.5.`),
    geneTable(why.genes, name),
    ...missingSection(labels),
    ...sentences("Notes", labels.notes),
    element("h3", {}, "How this label was made"),
    facts(provenance(labels, when)),
    element("p", { class: "note" }, "For research; not a medical device."),
  );
}

function withheldBox(labels, row, likely) {
  const reason = labels.reasons[labels.codes[row]];
  return reason ? [`the label is withheld: ${reason}. The most probable class is ${likely}`] : [];
}

function labelTiles(labels, row, shares, order) {
  const withheld = labels.codes[row] > 0;
  const label = withheld ? "no label" : labelOf(labels, row);
  return [
    [label, withheld ? "withheld" : "label"],
    [percent(shares[order[0]]), "probability of the most probable class"],
    [percent(shares[order[1]]), `probability of the next class, ${labels.classes[order[1]]}`],
  ];
}

/** The labels on the way of a sample down the tree. */
function waySection(labels, shares) {
  if (!labels.tree) return [];
  const way = descend(labels.tree, shares, labels.classes);
  const rows = [...new Set(way.path)].map((label, k) => [labels.all[label], percent(way.confidence[k]), bar(way.confidence[k])]);
  return [
    element("h3", {}, "From coarse to fine"),
    plainTable("From coarse to fine", [["label", true], ["probability", false], ["", true]], rows),
  ];
}

function probabilityTable(labels, shares, order) {
  const rows = order.slice(0, SHOWN).map((c) => [labels.classes[c], percent(shares[c]), bar(shares[c])]);
  if (order.length > SHOWN) rows.push([`and ${order.length - SHOWN} more`, "", ""]);
  return plainTable("Probabilities", [["class", true], ["probability", false], ["", true]], rows);
}

function pairTable(pairs, name) {
  const longest = Math.max(...pairs.map((pair) => Math.abs(pair.vote)), Number.MIN_VALUE);
  const rows = pairs.map((pair) => [
    `${pair.higher} > ${pair.lower}`,
    `${valueText(pair.valueHigher)} > ${valueText(pair.valueLower)}`,
    signed(pair.vote, 4),
    bar(Math.abs(pair.vote) / longest, pair.vote < 0),
    speaksFor(pair.vote, name),
  ]);
  const columns = [["genes", true], ["values", true], ["vote", false], ["", true], ["speaks", true]];
  return plainTable("The pairs of genes that count most", columns, rows);
}

function geneTable(genes, name) {
  const longest = Math.max(...genes.map((line) => Math.abs(line.contribution)), Number.MIN_VALUE);
  const rows = genes.slice(0, SHOWN).map((line) => [
    line.gene,
    valueText(line.value),
    signed(line.rank, 2),
    signed(line.contribution, 4),
    bar(Math.abs(line.contribution) / longest, line.contribution < 0),
    speaksFor(line.contribution, name),
  ]);
  const rest = genes.slice(SHOWN);
  if (rest.length) {
    const sum = rest.reduce((total, line) => total + line.contribution, 0);
    rows.push([`${rest.length} more`, "", "", signed(sum, 4), "", ""]);
  }
  const columns = [["gene", true], ["value", false], ["rank", false], ["contribution", false], ["", true], ["speaks", true]];
  return plainTable("Genes", columns, rows);
}

function speaksFor(amount, name) {
  if (amount === 0) return "";
  return amount > 0 ? `for ${name}` : `against ${name}`;
}

const valueText = (x) => (Math.abs(x) >= WHOLE ? thousands(Math.round(x)) : general(x, 4));
