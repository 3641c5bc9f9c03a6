// Which labels of a query are withheld, and why.

import { general, counted, percent } from "./text.js";
import { forgivenShift, quantiles } from "./vote.js";
import { cannotShow, heldOutReason, notChecked, notKept, raisedReason } from "./words.js";

const FEW_GENES = 5; // outside the largest tie: below, a label rests on very little

/**
 * The reason of each sample (0: the label is given; else a position in `reasons`), and notes.
 *
 * `query` has confidence (of each sample, or of a tree one per level in `ways`), likeness, labels, shift and genesApart of all samples; `bound` is what
 * the model is over the file's genes; `options` has threshold, targetError and unknownRate.
 */
export function withhold(query, bound, options, words) {
  const reasons = ["", words.no_information, words.low_confidence, words.unknown, words.not_kept, words.strict];
  const decision = {
    reasons,
    codes: new Uint8Array(query.confidence.length),
    threshold: null,
    thresholdReason: "",
    notes: [],
  };
  if (options.unknownRate !== null) withholdUnknown(decision, query, bound, options.unknownRate);
  const byLevel = query.ways !== null;
  const confidence = byLevel ? query.ways.map((way) => way.confidence) : Array.from(query.confidence, (x) => [x]);
  const target = setThreshold(decision, confidence, byLevel, bound, options, words);
  if (byLevel && decision.threshold === null && options.targetError !== 1) {
    decision.threshold = words.sure;
    decision.thresholdReason = "a label of the tree is given where it is more probable than all others together";
  }
  if (decision.threshold !== null) withholdUnsure(decision, confidence, byLevel);
  if (target !== null) withholdUntrusted(decision, target, query);
  withholdTied(decision, query.genesApart);
  return decision;
}

/** Refuse options that cannot be, as `PredictOptions` does. */
export function checkOptions(options) {
  if (options.threshold !== null && options.targetError !== null) {
    throw new Error("give a threshold or a target error, not both");
  }
  const shares = [
    ["threshold", options.threshold],
    ["target_error", options.targetError],
    ["unknown_rate", options.unknownRate],
  ];
  for (const [name, x] of shares) {
    if (x !== null && !(x >= 0 && x <= 1)) throw new Error(`${name}=${x}: use a share between 0 and 1`);
  }
}

function withholdUnknown(decision, query, bound, rate) {
  if (!(rate > 0 && rate < 1)) {
    throw new Error(`unknown rate ${rate}: use a share between 0 and 1, such as 0.01`);
  }
  if (bound.panel.levels === null) {
    throw new Error(
      "the model has no out-of-distribution score, so unknown samples cannot be told: train it " +
        "with optirank train, or give a threshold instead",
    );
  }
  const limits = quantiles(bound.panel.levels, rate);
  const forgiven = forgivenShift(query.shift, query.likeness.length);
  let unknown = 0;
  query.likeness.forEach((score, i) => {
    if (!(score + forgiven < limits[query.labels[i]])) return;
    decision.codes[i] = 3;
    unknown++;
  });
  const n = query.likeness.length;
  decision.notes.push(
    `${unknown} of ${n} samples (${percent(unknown / n)}) look like no class, and their labels are ` +
      `withheld; of held-out samples it was ${percent(rate)}`,
  );
}

/** The confidence below which labels are withheld; gives the target error it is to keep, or null. */
function setThreshold(decision, confidence, byLevel, bound, options, words) {
  if (options.threshold !== null) {
    decision.threshold = options.threshold;
    decision.thresholdReason = `asked for a confidence of at least ${general(options.threshold)}`;
    return null;
  }
  const control = bound.panel.errorControl;
  const target = options.targetError ?? bound.trainedTarget;
  if (target === null || target === 1) return null; // 1: withhold none
  if (!(target > 0 && target < 1)) {
    throw new Error(`target error ${target}: use a share between 0 and 1, such as 0.05`);
  }
  if (bound.leftOut.length) {
    throw new Error(
      `target error ${general(target)}: the model without some of its classes was never judged; ` +
        "give a threshold instead",
    );
  }
  if (control === null) {
    throw new Error(
      `target error ${general(target)}: the model stores no errors of held-out samples; give a ` +
        "threshold instead",
    );
  }
  const step = lastStepThatPasses(control, target);
  if (step === null) throw new Error(cannotShow(target, control, words.certainty));
  const heldOut = control.kept[step] === 1 ? 0 : control.thresholds[step];
  decision.threshold = raiseThreshold(confidence, heldOut, target);
  decision.thresholdReason =
    decision.threshold > heldOut
      ? raisedReason(decision.threshold, target, heldOut)
      : heldOutReason(heldOut, control, step, target, words.certainty, byLevel);
  return target;
}

/** Tests from the most confident samples down, and stops at the first failure. */
function lastStepThatPasses(control, target) {
  const first = control.least.findIndex((bound) => bound <= target);
  if (first < 0) return null;
  let step = first;
  while (step < control.bounds.length && control.bounds[step] <= target) step++;
  return step > first ? step - 1 : null;
}

/**
 * The threshold at which a query's own confidences expect the target error.
 *
 * A falling threshold gives labels one after another; of a tree, a finer label takes the place of the
 * coarser one before it.
 */
function raiseThreshold(confidence, threshold, target) {
  const nLevels = confidence[0].length;
  const flat = confidence.flat();
  const given = flat.map((_, k) => k).filter((k) => flat[k] >= threshold).sort((a, b) => flat[b] - flat[a] || a - b);
  if (!given.length) return threshold;
  let wrong = 0;
  let labelled = 0;
  let last = -1;
  given.forEach((k, step) => {
    const isCoarsest = k % nLevels === 0;
    wrong += 1 - flat[k] - (isCoarsest ? 0 : 1 - flat[k - 1]);
    if (isCoarsest) labelled++;
    const ends = step === given.length - 1 || flat[given[step + 1]] !== flat[k]; // equal ones stay together
    if (ends && wrong / labelled <= target) last = step;
  });
  if (last < 0) return 1 + Number.EPSILON;
  return last === given.length - 1 ? threshold : flat[given[last]];
}

function withholdUnsure(decision, confidence, byLevel) {
  let below = 0;
  let coarse = 0;
  confidence.forEach((levels, i) => {
    if (levels[0] < decision.threshold) {
      decision.codes[i] = 2;
      below++;
    } else if (levels.at(-1) < decision.threshold) coarse++;
  });
  const n = confidence.length;
  let what = "no label is withheld";
  const verb = (count) => (count === 1 ? "is" : "are");
  if (below) what = `${below} of ${n} labels (${percent(below / n)}) ${verb(below)} withheld`;
  if (coarse) what += `, ${coarse} (${percent(coarse / n)}) ${verb(coarse)} coarser than a class`;
  decision.notes.push(`${what}: ${decision.thresholdReason}`);
}

/** Withhold all labels where the error cannot be kept; say where nobody knows. */
function withholdUntrusted(decision, target, { alarms, trust }) {
  if (alarms.length) {
    decision.codes.fill(4);
    decision.notes.push(notKept(target));
  } else if (trust.agreement === null) decision.notes.push(notChecked(target));
}

/** Withhold all labels because of an alarm, where that was asked for. */
export const withholdAll = (decision) => decision.codes.fill(5);

function withholdTied(decision, genesApart) {
  let tied = 0;
  let few = 0;
  genesApart.forEach((n, i) => {
    if (n === 0) {
      decision.codes[i] = 1;
      tied++;
    } else if (n < FEW_GENES) few++;
  });
  if (tied) {
    decision.notes.push(
      `${counted(tied, "sample has", "samples have")} the same value in all genes of the panel, ` +
        "and no label is given",
    );
  }
  if (few) {
    decision.notes.push(
      `in ${counted(few, "sample", "samples")} all but ${FEW_GENES - 1} or fewer genes of the ` +
        "panel have the same value: labels there rest on few genes",
    );
  }
}
