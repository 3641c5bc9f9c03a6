// Names of genes: which features of a file are genes, and where those of a model are.

import { counted, duplicates, quoted, some, stripped } from "./text.js";

const GENE_EXPRESSION = "Gene Expression"; // the features of 10x that are genes
const TYPES = ["feature_types", "feature_type"];
// Probes of Xenium, MERFISH, CosMx and Visium that measure no gene
const CONTROL = new RegExp(
  "^(?:NegControl(?:Probe|Codeword)_|(?:Unassigned|Deprecated)Codeword_|antisense_|" +
    "BLANK[_-]|Blank[_-]|NegPrb|Negative[0-9]|SystemControl|FalseCode|Intergenic_Region_)",
);
const FEW = 5; // genes in another case differ between annotations

/** How many of the wanted genes are among some names. */
export const nShared = (wanted, names) => new Set(names.filter((name) => wanted.has(name))).size;

/**
 * The features that are genes: their positions, their names, and notes.
 *
 * `columns` are texts of the features by column, null where one is missing; `geneColumn` names the
 * column to use, null for `index`, or another column that has far more of a model's genes.
 */
export function genesAmong(source, index, columns, geneColumn, wanted) {
  const notes = [];
  const column = geneColumn ?? columnWithMore(index.map(stripped), columns, new Set(wanted), notes);
  const names = (column === null ? index : namesIn(source, columns, column)).map(stripped);
  const types = columns[TYPES.find((name) => name in columns)];
  const others = types?.includes(GENE_EXPRESSION) ? types.map((type) => type !== GENE_EXPRESSION) : names.map(() => false);
  const controls = names.map((name, k) => !others[k] && CONTROL.test(name));
  const kept = Array.from(names.keys()).filter((k) => !others[k] && !controls[k]);
  if (!kept.length) return { kept: Array.from(names.keys()), genes: names, notes };
  const nOthers = others.filter(Boolean).length;
  if (nOthers) {
    const kinds = [...new Set(types.filter((_, k) => others[k]))].sort();
    notes.push(`${nOthers} features are left out, they are no genes: ${some(kinds)}`);
  }
  const probes = names.filter((_, k) => controls[k]);
  if (probes.length) notes.push(`${probes.length} control probes are left out: ${some(probes, 3)}`);
  return { kept, genes: kept.map((k) => names[k]), notes };
}

function namesIn(source, columns, column) {
  if (!(column in columns)) {
    throw new Error(
      `${source} has no gene column ${quoted(column)}: there are ${some(Object.keys(columns), 20)}; ` +
        "without one the names of the features are used",
    );
  }
  const nMissing = columns[column].filter((name) => name === null).length;
  if (nMissing) {
    throw new Error(
      `${source}: ${counted(nMissing, "gene has", "genes have")} no ${quoted(column)}: fill them in, or ` +
        "choose another column (gene_column=)",
    );
  }
  return columns[column];
}

/** The column with more than twice as many of a model's genes as the names, where these have less than half. */
function columnWithMore(names, columns, wanted, notes) {
  const nNamed = nShared(wanted, names);
  let best = null;
  let most = 2 * nNamed;
  for (const [column, texts] of Object.entries(columns)) {
    const found = texts.includes(null) ? 0 : nShared(wanted, texts.map(stripped));
    if (found > most) [best, most] = [column, found];
  }
  if (2 * nNamed >= wanted.size || best === null) return null;
  notes.push(
    `genes are named by the column ${quoted(best)}: it has ${most} of the ${wanted.size} genes of the ` +
      `model, the names of the features ${nNamed}`,
  );
  return best;
}

/**
 * Each name once, with the columns that have it: all of them for counts, which are summed, else
 * the first.
 */
export function uniqueGenes(names, areCounts) {
  const columns = new Map();
  names.forEach((name, column) => {
    if (!columns.has(name)) columns.set(name, [column]);
    else if (areCounts) columns.get(name).push(column);
  });
  const repeated = duplicates(names);
  const how = areCounts ? "their counts are summed" : "the first of each is used";
  const what = counted(repeated.length, "gene name occurs", "gene names occur");
  const notes = repeated.length ? [`${what} more than once, ${how}: ${some(repeated)}`] : [];
  return { names: [...columns.keys()], columns: [...columns.values()], notes };
}

const VERSION = /^(ENS[A-Z]*[GTPER][0-9]{6,})\.[0-9]+(.*)$/i;
const asWritten = (name) => name;
const withoutVersion = (name) => name.replace(VERSION, "$1$2");
export const withoutCase = (name) => withoutVersion(name).toLowerCase();

/**
 * Where each gene that is wanted is among some names (-1: missing): as written, without versions of
 * Ensembl ids, or in another case. A gene that several names could stand for is missing.
 */
export function matchGenes(wanted, names) {
  const columns = new Int32Array(wanted.length).fill(-1);
  const match = { genes: wanted, columns, byVersion: [], byCase: [], ambiguous: [] };
  const itself = new Set(wanted);
  const ambiguous = new Set();
  for (const spelling of [asWritten, withoutVersion, withoutCase]) {
    const nWanted = new Map();
    for (const gene of wanted) nWanted.set(spelling(gene), (nWanted.get(spelling(gene)) ?? 0) + 1);
    const places = new Map();
    names.forEach((name, column) => {
      const key = spelling(name);
      // A name that is wanted is itself, and not another spelling of a gene
      if (!nWanted.has(key) || itself.has(name) !== (spelling === asWritten)) return;
      places.set(key, [...(places.get(key) ?? []), column]);
    });
    wanted.forEach((gene, k) => {
      const candidates = places.get(spelling(gene)) ?? [];
      if (columns[k] >= 0 || ambiguous.has(gene) || !candidates.length) return;
      const spelled = candidates.map((column) => names[column]);
      if (candidates.length > 1 || nWanted.get(spelling(gene)) > 1) {
        ambiguous.add(gene);
        match.ambiguous.push([gene, spelled.join(" and ")]);
        return;
      }
      columns[k] = candidates[0];
      if (spelling === withoutVersion) match.byVersion.push([gene, spelled[0]]);
      if (spelling === withoutCase) match.byCase.push([gene, spelled[0]]);
    });
  }
  return match;
}

/** Genes of a match that were not found, the ambiguous ones among them. */
export const missingGenes = (match) => match.genes.filter((_, k) => match.columns[k] < 0);

const pairs = (spelled) => some(spelled.map(([ours, theirs]) => `${ours} as ${theirs}`));

/** Sentences about genes that were found otherwise than as written, or not at all. */
export function matchNotes(match) {
  const kinds = [
    ["matched without the version of their Ensembl identifier", match.byVersion],
    ["matched in another case", match.byCase],
    ["missing because several columns match", match.ambiguous],
  ];
  const notes = kinds
    .filter(([, spelled]) => spelled.length)
    .map(([what, spelled]) => `${counted(spelled.length, "gene is", "genes are")} ${what}: ${pairs(spelled)}`);
  const missing = missingGenes(match);
  if (missing.length) {
    notes.push(`${missing.length} of ${match.genes.length} genes ${missing.length === 1 ? "is" : "are"} missing: ${some(missing)}`);
  }
  return notes;
}

/** Refuse a match most of which rests on names in another case. */
export function checkCase({ byCase, ...match }) {
  const found = match.genes.length - missingGenes(match).length;
  if (byCase.length <= FEW || 2 * byCase.length <= found) return;
  throw new Error(
    `${byCase.length} of the ${found} genes that were found match in another case only: ${pairs(byCase)}. ` +
      "Another species? Mouse symbols are written Cd4, human ones CD4: translate the names first " +
      "(docs: Names of genes)",
  );
}
