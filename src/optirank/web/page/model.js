// A model as the page holds it, and the same over the genes of some data.

import { checkCase, matchGenes, matchNotes, missingGenes } from "./genes.js";
import { counted, share, some } from "./text.js";
import { readTree } from "./tree.js";
import { between } from "./votes.js";

function numbers(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return Float64Array.from(new Kind(bytes.buffer));
}

function rows(flat, length) {
  return Array.from({ length: flat.length / length }, (_, k) => flat.slice(k * length, (k + 1) * length));
}

/** The model of a page's data. */
export function readModel(data) {
  const { panel, further } = data;
  const n = data.genes.length;
  return {
    ...data,
    coef: rows(numbers(panel.coef, Float64Array), n),
    profiles: panel.profiles && rows(numbers(panel.profiles, Float32Array), n),
    medians: panel.medians,
    calibration: panel.calibration,
    errorControl: panel.error_control,
    accuracies: panel.missing,
    further: further && { genes: further.genes, means: rows(numbers(further.means, Float32Array), further.genes.length) },
    tree: data.tree && readTree(data.tree),
    terms: new Map(data.terms),
  };
}

/**
 * The model over the genes of some data: the weights and profiles of the genes of its panel that
 * are there. An error says which classes cannot be told.
 */
export function bind(model, names) {
  const match = matchGenes(model.genes, names);
  const there = model.genes.map((_, k) => k).filter((k) => match.columns[k] >= 0);
  const named = model.classes.slice(-model.coef.length); // two classes have the weights of the second
  const lacking = named.filter((_, row) => there.length < 2 || there.every((k) => model.coef[row][k] === 0));
  if (lacking.length) refuseTooFew(match, there.length, lacking);
  checkCase(match);
  const pick = (row) => Array.from(there, (k) => row[k]);
  return {
    match,
    columns: pick(match.columns),
    panel: {
      present: pick(model.genes),
      nRows: model.coef.length,
      coef: Float64Array.from(model.coef.flatMap(pick)),
      profiles: model.profiles?.map(pick),
    },
    further: furtherOf(model, names),
  };
}

/** The genes that check labels: columns of the data, and their mean ranks by class. */
function furtherOf({ further, genes }, names) {
  if (further === null) return null;
  const { columns } = matchGenes(further.genes, names);
  const kept = further.genes.map((_, k) => k).filter((k) => columns[k] >= 0 && !genes.includes(further.genes[k]));
  return { columns: kept.map((k) => columns[k]), means: further.means.map((row) => kept.map((k) => row[k])) };
}

function refuseTooFew(match, nPresent, lacking) {
  const retrain = nPresent ? ", or train again on the genes that are present (query=)" : "";
  throw new Error(
    `${nPresent || "none"} of the model's ${match.genes.length} genes are present, too few for ` +
      `${counted(lacking.length, "class", "classes")}: ${some(lacking)}. Missing genes: ` +
      `${some(missingGenes(match))}. Please check that the gene names are of the same kind as the model's, or ` +
      `name another column (gene_column=)${retrain}.`,
  );
}

/** Held-out accuracy with such a share of the genes missing; NaN if it was not measured. */
function expectedAccuracy(model, shareMissing) {
  if (!model.accuracies.length) return NaN;
  const log = (missing) => Math.log(Math.max(1, model.genes.length * (1 - missing)));
  const rising = model.accuracies.slice().reverse();
  const guessing = 1 / Math.max(2, model.coef.length);
  const shares = [0, ...rising.map(([missing]) => log(missing))];
  return between(log(shareMissing), shares, [guessing, ...rising.map(([, accuracy]) => accuracy)]);
}

const LOST = 0.05; // of the held-out accuracy: more is said

/** What is to be said of the genes: notes, and an alarm where most of what the model knows is lost. */
export function geneNotes(model, bound) {
  const notes = matchNotes(bound.match);
  const shareMissing = missingGenes(bound.match).length / model.genes.length;
  const [whole, without] = [expectedAccuracy(model, 0), expectedAccuracy(model, shareMissing)];
  const cost =
    `without so many of its genes the model's held-out accuracy was ${share(without, 1)}, with all ` +
    `of them ${share(whole, 1)}`;
  const guessing = 1 / model.classes.length;
  if (without - guessing < whole - without) {
    return { notes, alarms: [`${cost}: these labels are little more than guesses`] };
  }
  if (whole - without > LOST) notes.push(`${cost}: labels are less certain`);
  return { notes, alarms: [] };
}
