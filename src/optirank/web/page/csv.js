// The file of labels, as `optirank predict` writes it.

import { fixed } from "./text.js";
import { withheldWord } from "./withhold.js";

const DIGITS = 4; // of confidences and probabilities: more is noise
const ID_COLUMN = "cell_type_ontology_term_id"; // CELLxGENE's name for ids of cell types
const NO_TERM = "unknown";

/** A field in quotes where it has to be. */
const field = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** A share with four digits; a tie goes to the even one. */
function fourDigits(x) {
  const scaled = x * 10 ** DIGITS;
  let whole = Math.round(scaled);
  if (whole - scaled === 0.5 && whole % 2) whole--;
  return fixed(whole / 10 ** DIGITS, DIGITS);
}

/** The label of a sample, or the word for one that is withheld. */
export const labelOf = (labels, i) => (labels.codes[i] ? withheldWord(labels.all) : labels.all[labels.given[i]]);

/** The table of labels as text, in parts. */
export function labelsCsv(labels) {
  const { classes, likeness, tree, terms, alarms } = labels;
  const n = classes.length;
  const alarm = alarms.join("; ");
  const columns = [
    ["sample", (i) => labels.names[i]],
    ["label", (i) => labelOf(labels, i)],
    ["confidence", (i) => fourDigits(labels.confidence[i])],
    ...classes.map((name, c) => [`probability_${name}`, (i) => fourDigits(labels.probabilities[i * n + c])]),
    ["likeness", (i) => (Number.isNaN(likeness[i]) ? "" : fixed(likeness[i], DIGITS))],
    ["withheld_because", (i) => labels.reasons[labels.codes[i]]],
  ];
  if (alarm) columns.push(["alarm", () => alarm]);
  if (tree) {
    columns.push(["leaf", (i) => classes[labels.chosen[i]]], ["leaf_confidence", (i) => fourDigits(labels.leafConfidence[i])]);
  }
  if (terms.size) columns.push([ID_COLUMN, (i) => terms.get(labelOf(labels, i)) ?? NO_TERM]);
  const lines = labels.names.map((_, i) => columns.map(([, cell]) => field(cell(i))));
  return [columns.map(([name]) => field(name)), ...lines].map((cells) => `${cells.join(",")}\n`);
}
