// Sentences about a query, as `optirank predict` says them.
//
// Those that Python has as constants come with the data of the page, as `words`.

import { counted, fixed, general, percent, share, some } from "./text.js";

/** The error of data that have too few of a model's genes; `droppable`: at least two classes stay. */
export function missingError(model, panel, match, lacking) {
  const size = match.genes.length;
  const present = match.columns.filter((column) => column >= 0).length;
  const missing = match.genes.filter((_, k) => match.columns[k] < 0);
  let what = `no gene with a vote for ${counted(lacking.length, "class", "classes")} is present: ${some(lacking)}.`;
  if (present === 0) what = `none of the model's ${size} genes are present.`;
  else if (present < 2) what = `one of the model's ${size} genes is present, and ranks need two.`;
  const left = model.classes.length - lacking.length;
  const droppable = present >= 2 && left >= 2 && lacking.length > 0;
  const remedies = ["check that the gene names are of the same kind as the model's"];
  if (match.otherColumn) {
    const [column, found] = match.otherColumn;
    remedies[0] =
      `name the column '${column}', which has ${found} of the ${size} genes (gene_column=)`;
  }
  if (droppable) remedies.push("leave these classes out (drop_classes=True)");
  if (present) remedies.push("train again on the genes that are present (query=)");
  const error = new Error(`${what} Missing genes: ${some(missing)}. Please ${remedies.join(", or ")}.`);
  error.droppable = droppable;
  error.match = match;
  return error;
}

/** How the values of a query differ from those of training, in ways that matter. */
export function valueNotes(query, trained, words) {
  if (query.scale === null || trained.scale === null) return [];
  const notes = [];
  if (query.negative && !trained.negative) {
    notes.push(
      `${share(query.negative, 1)} of the values are negative, and none were in the training ` +
        `data: ${words.scaled}`,
    );
  }
  if (!query.zeros && trained.zeros >= words.many_zeros) {
    notes.push(
      `no value is zero, and ${share(trained.zeros, 0)} were in the training data: that is usual ` +
        "for a microarray; smoothed or imputed values would change ranks",
    );
  } else if (query.zeros - trained.zeros > words.more_zeros) {
    notes.push(
      `${share(query.zeros, 0)} of the values are zero, and ${share(trained.zeros, 0)} were in the ` +
        "training data: zeros are ties, so labels are less certain; a larger panel may do better",
    );
  }
  return notes;
}

/** What the missing genes cost, as part of a sentence. */
export const costOf = (whole, without) =>
  `without so many of its genes the model's held-out accuracy was ${share(without, 1)}, with all ` +
  `of them ${share(whole, 1)}`;

/** Says that the missing genes are those that matter. */
export const weightNote = (genes, weight) =>
  `the missing genes are ${share(genes, 0)} of the panel and have ${share(weight, 0)} of its weight: ` +
  "labels are less certain, by more than held-out samples with genes missing at random tell";

/** Why a panel of another size is used than the model's own. */
export const whyOther = (size, present, lack, own) =>
  `the panel of ${size} genes on the model's path is used, of which ${present} are present: the ` +
  `data lack ${lack} of the ${own} genes of the model's own panel, and held-out samples were ` +
  "labelled better so";

/** Says that classes were left out. */
export const leftOutNote = (names) =>
  `${names.length} classes are LEFT OUT because too many of their genes are missing: ` +
  `${some(names)}; their samples get the label of another class`;

/** Says which threshold held-out samples ask for. */
export function heldOutReason(threshold, control, step, target, certainty, byLevel) {
  const kept = byLevel ? "their finest label" : "their label";
  const these = byLevel ? "all labels given, coarse and fine," : "these labels";
  return (
    `at a confidence of at least ${fixed(threshold, 3)}, ${share(control.kept[step], 1)} of the ` +
    `${control.n_samples} held-out samples keep ${kept}, and ${share(control.errors[step], 1)} ` +
    `of ${these} are wrong, classes counted equally (asked for: at most ${general(target, 3)}, ` +
    `with ${share(certainty, 0)} confidence, on samples like these)`
  );
}

/** Says that the query's own confidences ask for more. */
export const raisedReason = (threshold, target, heldOut) =>
  `the query's own confidences ask for at least ${fixed(threshold, 3)}, so that ` +
  `${percent(target)} of the labels given are expected to be wrong; by held-out samples it would ` +
  `be ${fixed(heldOut, 3)}`;

/** Says that the held-out samples cannot show such an error. */
export const cannotShow = (target, control, certainty) =>
  `target error ${general(target, 3)}: ${control.n_samples} held-out samples cannot show it. With ` +
  `${share(certainty, 0)} confidence the error of the most confident ones is at most ` +
  `${share(Math.min(...control.bounds), 1)}, classes counted equally; of all, ` +
  `${share(control.errors.at(-1), 1)} are wrong. Allow a larger error, or train on more samples`;

/** Says that a target error cannot be kept on data unlike the training. */
export const notKept = (target) =>
  `an error of ${percent(target)} is an aim on data like the training, and for these there is an ` +
  "alarm: all labels are withheld";

/** Says that nobody knows whether a target error is kept. */
export const notChecked = (target) =>
  `an error of ${percent(target)} is an aim on data like the training: whether these are like it ` +
  "cannot be checked by other genes";

/** The word for a label that is withheld: one that no class is called. */
export function withheldWord(classes) {
  if (!classes.includes("unassigned")) return "unassigned";
  let word = "withheld";
  for (let k = 2; classes.includes(word); k++) word = `withheld ${k}`;
  return word;
}
