// The file of labels, as `optirank predict` writes it.

import { fixed } from "./text.js";
import { withheldWord } from "./words.js";

const DIGITS = 4; // of confidences and probabilities: more is noise
const FORMULA = /^[=+\-@\t\r]/; // with these a spreadsheet starts a formula

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
export const labelOf = (labels, i) =>
  labels.codes[i] ? withheldWord(labels.classes) : labels.classes[labels.chosen[i]];

/** The table of labels as text, in parts; `spreadsheet` puts an apostrophe before formulas. */
export function labelsCsv(labels, spreadsheet = false) {
  const plain = (text) => field(spreadsheet && FORMULA.test(text) ? `'${text}` : text);
  const probabilities = labels.classes.map((name) => `probability_${name}`);
  const header = ["sample", "label", "confidence", ...probabilities, "withheld_because"];
  if (labels.alarms.length) header.push("alarm");
  const alarm = plain(labels.alarms.join("; "));
  const parts = [`${header.map(plain).join(",")}\n`];
  const n = labels.classes.length;
  labels.names.forEach((name, i) => {
    const cells = [plain(name), plain(labelOf(labels, i)), fourDigits(labels.confidence[i])];
    for (let c = 0; c < n; c++) cells.push(fourDigits(labels.probabilities[i * n + c]));
    cells.push(plain(labels.reasons[labels.codes[i]]));
    if (labels.alarms.length) cells.push(alarm);
    parts.push(`${cells.join(",")}\n`);
  });
  return parts;
}
