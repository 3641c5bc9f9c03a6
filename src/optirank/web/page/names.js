// Give the genes of a file the names of a model's genes: another column, Ensembl ids, homologs.

import { nShared } from "./match.js";
import { counted, duplicates, quoted, some } from "./text.js";

const ENSEMBL = /^(ENS(?:MUS)?G[0-9]{11})(?:\.[0-9]+)?(?:_PAR_Y)?$/i;

const ensemblId = (name) => ENSEMBL.exec(name)?.[1].toUpperCase() ?? null;
const areEnsemblIds = (names) => 2 * names.filter((name) => ensemblId(name) !== null).length > names.length;
const findsMore = (found, present, size) => 2 * present < size && found > 2 * present;

/**
 * The table of symbols by Ensembl id, from its packed text.
 *
 * A line has the step from the id before, in hexadecimal digits, and a symbol where the page
 * needs it: of a gene that a model knows, or one that several ids share. A line with a species'
 * prefix begins anew. Other ids stand for themselves, which no other gene does either.
 */
export function readSymbols(text) {
  const symbols = new Map();
  let prefix = "";
  let number = 0;
  for (const line of text.split("\n")) {
    if (line.startsWith(">")) {
      prefix = line.slice(1);
      number = 0;
      continue;
    }
    const space = line.indexOf(" ");
    number += parseInt(space < 0 ? line : line.slice(0, space), 16);
    const id = prefix + String(number).padStart(11, "0");
    symbols.set(id, space < 0 ? `symbol of ${id}` : line.slice(space + 1));
  }
  return symbols;
}

/**
 * Names of the file's genes as the model has them, and notes that say what was done.
 *
 * `known` are further genes of the training data, which tell the model's species. `source` has `genes` and `others` (names by column); `tables` has `symbols` (text, see
 * `readSymbols`) and `homologs` (pairs of mouse and human names).
 */
export function inNamesOf(source, panel, known, tables, homologs = null) {
  const notes = [];
  let names = byOwnColumn(source, panel, notes);
  names = byEnsembl(names, panel, tables, notes);
  if (homologs === null) names = byHomologs(names, panel, known, tables.homologs, notes);
  return { names, notes };
}

function byOwnColumn(source, panel, notes) {
  const present = nShared(panel, source.genes);
  let column = null;
  let most = -1;
  for (const [name, values] of Object.entries(source.others)) {
    const found = nShared(panel, values);
    if (found > most) [column, most] = [name, found];
  }
  if (column === null || !findsMore(most, present, panel.length)) return source.genes;
  notes.push(
    `gene names are those of the column ${quoted(column)} of the data's genes: it has ${most} of ` +
      `the panel's ${panel.length} genes, the names have ${present}`,
  );
  const values = source.others[column];
  return source.genes.map((name, k) => (["", "nan", "None"].includes(values[k]) ? name : values[k]));
}

function byEnsembl(given, panel, tables, notes) {
  const idsGiven = areEnsemblIds(given);
  if (idsGiven === areEnsemblIds(panel)) return given;
  const symbols = readSymbols(tables.symbols);
  const names = idsGiven ? symbolsOf(given, symbols) : idsOf(given, symbols);
  const wanted = [...panel, ...panel.map((name) => ensemblId(name) ?? name)];
  const shared = nShared(wanted, names);
  let fromMouse = 0;
  if (idsGiven) fromMouse = nShared(panel, translated(names, bothWays(tables.homologs)));
  if (!findsMore(Math.max(shared, fromMouse), nShared(panel, given), panel.length)) return given;
  const direction = idsGiven ? "Ensembl ids to symbols" : "symbols to Ensembl ids";
  const changed = names.filter((name, k) => name !== given[k]).length;
  notes.push(
    `${changed} of ${names.length} gene names are translated from ${direction} by the shipped ` +
      "table of human and mouse genes",
  );
  return names;
}

const symbolsOf = (names, symbols) => names.map((name) => symbols.get(ensemblId(name) ?? "") ?? name);

/** Names with symbols as Ensembl ids; other names, and symbols of several ids, stay. */
function idsOf(names, symbols) {
  const ids = new Map();
  for (const [id, symbol] of symbols) ids.set(symbol, ids.has(symbol) ? null : id);
  return names.map((name) => ids.get(name) ?? name);
}

const translated = (names, table) => names.filter((name) => table.has(name)).map((name) => table.get(name));

/** Homologs of either species; a name of both is read as that of a mouse gene last. */
function bothWays(homologs) {
  const table = new Map(homologs);
  for (const [mouse, human] of homologs) table.set(human, mouse);
  return table;
}

function byHomologs(given, panel, further, homologs, notes) {
  const present = nShared(panel, given);
  if (2 * present >= panel.length) return given;
  const found = nShared(panel, translated(given, bothWays(homologs)));
  if (!findsMore(found, present, panel.length)) return given;
  notes.push(
    "gene names are translated between mouse and human by the shipped table: " +
      `${found} of the panel's ${panel.length} genes`,
  );
  const names = new Set(given);
  const known = new Set([...panel, ...further]);
  const nKnown = (pairs) => pairs.filter(([left, right]) => names.has(left) && known.has(right)).length;
  const turned = homologs.map(([mouse, human]) => [human, mouse]);
  const table = new Map(nKnown(turned) > nKnown(homologs) ? turned : homologs);
  return given.map((name) => table.get(name) ?? name);
}

/**
 * Each name once, with the columns that have it: all of them for counts, which are summed, else
 * the first.
 */
export function uniqueGenes(names, areCounts) {
  const repeated = duplicates(names);
  const columns = new Map();
  names.forEach((name, column) => {
    if (!columns.has(name)) columns.set(name, [column]);
    else if (areCounts) columns.get(name).push(column);
  });
  const how = areCounts ? "their counts are summed" : "the first of each is used";
  const what = counted(repeated.length, "gene name occurs", "gene names occur");
  const note = repeated.length ? [`${what} more than once, ${how}: ${some(repeated)}`] : [];
  return { names: [...columns.keys()], columns: [...columns.values()], notes: note };
}
