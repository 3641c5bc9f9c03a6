// Find the genes of a model in the names of a file, as `optirank.io.genes` does.

import { counted, some } from "./text.js";

const VERSION = /^(ENS[A-Z]*[GTPER][0-9]{6,})\.[0-9]+(.*)$/i;
const FEW = 5; // genes in another case differ between annotations

const asWritten = (name) => name;
const withoutVersion = (name) => name.replace(VERSION, "$1$2");
const withoutCase = (name) => withoutVersion(name).toLowerCase();

/** Where each gene that is wanted is among the names given; -1 where it is missing. */
export function matchGenes(wanted, given, otherNames = {}) {
  const match = {
    genes: wanted,
    columns: new Int32Array(wanted.length).fill(-1),
    byVersion: new Map(),
    byCase: new Map(),
    ambiguous: new Map(),
    otherColumn: null,
  };
  const written = lookUp(match, given, asWritten, null);
  const taken = new Set([...wanted, ...written.keys()]);
  match.byVersion = lookUp(match, given, withoutVersion, taken);
  match.byCase = lookUp(match, given, withoutCase, taken);
  let most = nPresent(match);
  for (const [column, names] of Object.entries(otherNames)) {
    const found = nShared(wanted, names);
    if (found > most) {
      most = found;
      match.otherColumn = [column, found];
    }
  }
  return match;
}

/** Genes of a match that were found. */
export const nPresent = (match) => match.columns.reduce((n, column) => n + (column >= 0), 0);

/** Genes of a match that were not found, the ambiguous ones among them. */
export const lackingGenes = (match) => match.genes.filter((_, k) => match.columns[k] < 0);

/** How many of the wanted names are among others. */
export function nShared(wanted, names) {
  const known = new Set(names);
  let found = 0;
  for (const name of new Set(wanted)) if (known.has(name)) found++;
  return found;
}

/** Find what is still missing by a key of the names; how each gene found is spelled. */
function lookUp(match, given, key, taken) {
  const left = match.columns.reduce((n, column) => n + (column < 0), 0);
  if (left === match.ambiguous.size) return new Map();
  const nWanted = new Map();
  for (const gene of match.genes) nWanted.set(key(gene), (nWanted.get(key(gene)) ?? 0) + 1);
  const places = new Map();
  given.forEach((name, column) => {
    const wanted = taken?.has(name) ? "" : key(name);
    if (taken?.has(name) || !nWanted.has(wanted)) return;
    if (places.has(wanted)) places.get(wanted).push(column);
    else places.set(wanted, [column]);
  });
  const spelled = new Map();
  match.genes.forEach((gene, k) => {
    const candidates = places.get(key(gene)) ?? [];
    if (match.columns[k] >= 0 || match.ambiguous.has(gene) || !candidates.length) return;
    if (candidates.length === 1 && nWanted.get(key(gene)) === 1) {
      match.columns[k] = candidates[0];
      spelled.set(gene, given[candidates[0]]);
    } else {
      match.ambiguous.set(gene, candidates.map((column) => given[column]));
    }
  });
  return spelled;
}

/** The match of some of the genes, in the order given. */
export function ofGenes(match, genes) {
  const where = new Map(match.genes.map((gene, k) => [gene, k]));
  const those = (spelled) => new Map(genes.filter((g) => spelled.has(g)).map((g) => [g, spelled.get(g)]));
  return {
    genes,
    columns: Int32Array.from(genes, (gene) => match.columns[where.get(gene)]),
    byVersion: those(match.byVersion),
    byCase: those(match.byCase),
    ambiguous: those(match.ambiguous),
    otherColumn: match.otherColumn,
  };
}

const spellings = (spelled) => some([...spelled].map(([ours, theirs]) => `${ours} as ${theirs}`));

/** Sentences about genes that were found otherwise than as written, or not at all. */
export function matchNotes(match) {
  const several = new Map([...match.ambiguous].map(([gene, names]) => [gene, names.join(" and ")]));
  const kinds = [
    ["matched without the version of their Ensembl identifier", match.byVersion],
    ["matched in another case", match.byCase],
    ["missing because several columns match", several],
  ];
  const notes = kinds
    .filter(([, spelled]) => spelled.size)
    .map(([what, spelled]) => `${counted(spelled.size, "gene is", "genes are")} ${what}: ${spellings(spelled)}`);
  const missing = lackingGenes(match);
  if (missing.length) {
    const verb = missing.length === 1 ? "is" : "are";
    notes.push(`${missing.length} of ${match.genes.length} genes ${verb} missing: ${some(missing)}`);
  }
  if (match.otherColumn) {
    const [column, found] = match.otherColumn;
    notes.push(
      `the column '${column}' of the data's genes has ${found} of the ${match.genes.length}: ` +
        "it may be the one to use (gene_column=)",
    );
  }
  return notes;
}

/** Refuse a match most of which rests on names in another case. */
export function checkCase(match) {
  const nCase = match.byCase.size;
  const found = nPresent(match);
  if (nCase <= FEW || 2 * nCase <= found) return;
  throw new Error(
    `${nCase} of the ${found} genes that were found match in another case only: ` +
      `${spellings(match.byCase)}. This may be another species (mouse symbols are written Cd4, ` +
      "human ones CD4). Please give a table of homologs (homologs='mouse', or a " +
      "file), or say that case does not matter (homologs='case').",
  );
}
