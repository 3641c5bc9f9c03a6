// Which labels of a query are withheld, and why.

import { counted, fixed, general, percent, share } from "./text.js";

export const [GIVEN, NO_INFORMATION, LOW_CONFIDENCE] = [0, 1, 2]; // codes of reasons

/** Refuse options that cannot be, as `PredictOptions` does. */
export function checkOptions({ threshold, targetError }) {
  if (threshold !== null && targetError !== null) throw new Error("give a threshold or a target error, not both");
  for (const [name, x] of [["threshold", threshold], ["target_error", targetError]]) {
    const isEnd = name === "target_error" && (x === 0 || x === 1);
    if (x !== null && (isEnd || !(x >= 0 && x <= 1))) throw new Error(`${name}=${x}: use a share between 0 and 1`);
  }
}

/**
 * The code of each sample's reason, the threshold with its reason, and notes.
 *
 * `confidence` has of each sample a number per level of a tree, from coarse to fine, or a single one;
 * `tied` says of each whether all genes of the panel have the same value.
 */
export function withhold(confidence, tied, model, options, words) {
  const { threshold, reason } = ruleOf(confidence, model, options, words);
  const notes = [];
  const isBelow = (levels) => threshold !== null && levels[0] < threshold;
  const codes = Uint8Array.from(confidence, (levels, i) => (tied[i] ? NO_INFORMATION : isBelow(levels) ? LOW_CONFIDENCE : GIVEN));
  if (threshold !== null) {
    const n = confidence.length;
    const below = confidence.filter(isBelow).length;
    const coarse = confidence.filter((levels) => !isBelow(levels) && levels.at(-1) < threshold).length;
    const coarser = coarse ? `, ${coarse} (${percent(coarse / n)}) are coarser than a class` : "";
    notes.push(`${below} of ${n} labels (${percent(below / n)}) are withheld${coarser}: ${reason}`);
  }
  const nTied = tied.filter(Boolean).length;
  if (nTied) {
    const samples = counted(nTied, "sample has", "samples have");
    notes.push(`${samples} the same value in all genes of the panel, and no label is given`);
  }
  return { codes, threshold, reason, notes };
}

/** The confidence below which labels are withheld, null for none, and why. */
function ruleOf(confidence, model, { threshold, targetError }, words) {
  if (threshold !== null) return { threshold, reason: `asked for a confidence of at least ${general(threshold)}` };
  if (targetError !== null) return raisedRule(confidence, model, targetError, words);
  if (!model.tree) return { threshold: null, reason: "" };
  return {
    threshold: words.sure,
    reason: "a label of the tree is given where it is more probable than all others together",
  };
}

/** The rule of held-out samples, or a higher threshold where the query's own confidences ask for it. */
function raisedRule(confidence, model, target, words) {
  const heldOut = heldOutRule(model, target, words);
  const threshold = raiseThreshold(confidence, heldOut.threshold, target);
  let { reason } = heldOut;
  if (threshold > heldOut.threshold) {
    reason =
      `the query's own confidences ask for at least ${fixed(threshold, 3)}, so that ` +
      `${percent(target)} of the labels given are expected to be wrong; by held-out samples it would ` +
      `be ${fixed(heldOut.threshold, 3)}`;
  }
  return { threshold, reason: `${reason}; an error is an aim on data like the training` };
}

/** The threshold above which held-out samples kept a target error. */
function heldOutRule(model, target, words) {
  const control = model.errorControl;
  if (!control) {
    throw new Error(`target error ${general(target)}: the model stores no errors of held-out samples; give a threshold instead`);
  }
  const certainty = share(words.certainty, 0);
  const step = lastStepThatPasses(control, target);
  if (step === null) {
    throw new Error(
      `target error ${general(target, 3)}: ${control.n_samples} held-out samples cannot show it. With ` +
        `${certainty} confidence the error of the most confident ones is at most ` +
        `${share(Math.min(...control.bounds), 1)}, classes counted equally; of all, ` +
        `${share(control.errors.at(-1), 1)} are wrong. Allow a larger error, or train on more samples`,
    );
  }
  const threshold = control.kept[step] === 1 ? 0 : control.thresholds[step];
  const [label, these] = model.tree
    ? ["finest label", "all labels given, coarse and fine,"]
    : ["label", "these labels"];
  const reason =
    `at a confidence of at least ${fixed(threshold, 3)}, ${share(control.kept[step], 1)} of the ` +
    `${control.n_samples} held-out samples keep their ${label}, and ${share(control.errors[step], 1)} ` +
    `of ${these} are wrong, classes counted equally (asked for: at most ${general(target, 3)}, ` +
    `with ${certainty} confidence, on samples like these)`;
  return { threshold, reason };
}

/**
 * The threshold at which a query's own confidences expect the target error.
 *
 * A falling threshold gives labels one after another; a finer label takes the place of the coarser one.
 */
function raiseThreshold(confidence, threshold, target) {
  const nLevels = confidence[0].length;
  const flat = confidence.flat();
  const given = Array.from(flat.keys()).filter((k) => flat[k] >= threshold);
  given.sort((a, b) => flat[b] - flat[a] || a - b);
  let wrong = 0;
  let labelled = 0;
  let last = -1;
  given.forEach((k, step) => {
    const isCoarsest = k % nLevels === 0;
    wrong += 1 - flat[k] - (isCoarsest ? 0 : 1 - flat[k - 1]);
    if (isCoarsest) labelled++;
    const ends = flat[given[step + 1]] !== flat[k]; // equal ones stay together
    if (ends && wrong / labelled <= target) last = step;
  });
  if (last === given.length - 1) return threshold;
  return last < 0 ? 1 + Number.EPSILON : flat[given[last]];
}

/** Tests from the most confident samples down, and stops at the first failure. */
function lastStepThatPasses(control, target) {
  const first = control.least.findIndex((bound) => bound <= target);
  if (first < 0) return null;
  let step = first;
  while (step < control.bounds.length && control.bounds[step] <= target) step++;
  return step > first ? step - 1 : null;
}

/** The word for a label that is withheld: one that no class is called. */
export function withheldWord(classes) {
  if (!classes.includes("unassigned")) return "unassigned";
  let word = "withheld";
  for (let k = 2; classes.includes(word); k++) word = `withheld ${k}`;
  return word;
}
