// Whether the labels of a query can be right as a whole: the rules and words of `Trust` in `optirank.verbs.query`.

import { counted, fixed, general, share, some } from "./text.js";

/**
 * What checks the labels of a query.
 *
 * `compared` is the agreement, null where the model stores no further genes; `likeness` the median
 * likeness as a share of that of held-out samples, null where it is not known; `missing` the share
 * of the panel's genes that the query lacks.
 */
export function trustOf({ compared, likeness, missing, nSamples }, classes, words) {
  const agreement = compared?.overall ?? null;
  const byLabel = new Map([...(compared?.byLabel ?? [])].map(([label, value]) => [classes[label], value]));
  const alarmed = isAlarm(agreement, likeness, missing, words);
  const trust = { compared, agreement, likeness, missing, byLabel, alarmed, nSamples };
  return {
    ...trust,
    adaptHelps:
      agreement !== null && agreement >= words.adapt_from && !alarmed && nSamples >= words.suggest_adapt,
    alarms: alarmsOf(trust, words),
    notes: notesOf(trust, words),
  };
}

function isAlarm(agreement, known, missing, words) {
  const likeness = known ?? Infinity;
  if (agreement === null) return likeness < words.unlike_unchecked || missing > words.most;
  return agreement < words.alarm_below || (agreement < words.doubt_below && likeness < words.unlike);
}

function alarmsOf({ alarmed, agreement, likeness, missing }, words) {
  if (!alarmed) return [];
  if (agreement === null) {
    const lacking =
      `${share(missing, 0)} of the panel's genes are missing, and nothing else checks the labels: ` +
      "they may all be wrong";
    return [
      ...(isAlarm(null, likeness, 0, words) ? [words.unlikely] : []),
      ...(missing > words.most ? [lacking] : []),
    ];
  }
  return [
    `${words.unlikely}. Genes outside the panel do not confirm the labels ` +
      `(agreement ${fixed(agreement, 2)})`,
  ];
}

function notesOf(trust, words) {
  const { agreement, byLabel, alarmed } = trust;
  if (agreement === null) return [`the labels cannot be checked by other genes: ${unchecked(trust, words)}`];
  const notes = [`agreement of other genes ${fixed(agreement, 2)}: ${meaning(agreement, words)}`];
  const low = [...byLabel].sort((a, b) => a[1] - b[1]).filter(([, value]) => value < words.low_label);
  if (low.length && !alarmed) {
    const named = low.map(([label, value]) => `${label} ${fixed(value, 2)}`);
    notes.push(
      `${counted(named.length, "label agrees", "labels agree")} little with the training data in other ` +
        `genes: ${some(named)}; look at the markers of these`,
    );
  }
  return notes;
}

/** Why there is no agreement, and what follows. */
function unchecked({ compared, nSamples }, words) {
  if (compared === null) {
    return (
      "the model stores none, because its training data had too few genes outside the panel that " +
      "differ between the classes"
    );
  }
  if (compared.nGenes < words.fewest_genes) {
    return (
      `the query has ${compared.nGenes} of those that the model stores; a check takes ` +
      `${words.fewest_genes}, or fewer that agree clearly`
    );
  }
  return (
    `a check takes two labels with at least ${words.fewest_samples} samples each; the query has ` +
    `${counted(nSamples, "sample", "samples")}`
  );
}

/** What an agreement says, by the queries of the study. */
function meaning(agreement, words) {
  const { steps } = words;
  const starts = [-1, ...steps.map(([end]) => end)];
  const above = starts.filter((start) => start <= agreement).length;
  const number = Math.min(above, steps.length) - 1;
  const [end, right, wrong, accuracy] = steps[number];
  const between = number ? `${general(starts[number])} to ${general(end)}` : `below ${general(end)}`;
  return (
    `${between} in ${share(right, 0)} of real queries of the right tissue and ${share(wrong, 0)} of ` +
    `those of another; ${share(accuracy, 0)} of the labels of the right ones were right (mean over classes)`
  );
}
