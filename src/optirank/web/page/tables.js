// Tables of text: genes in rows or columns. A column of numbers is a gene or a sample, others are annotations.

import { genesAmong, nShared, withoutCase } from "./genes.js";
import { fieldTexts, firstField, linesOf, parseFields, textOf } from "./lines.js";
import { counted, duplicates, plainName, quoted, readable, repeatedSamples, some } from "./text.js";

const DECIMAL_COMMA = /^\s*[-+]?\d+,\d+(?:e[-+]?\d+)?\s*$/i;
const UNDETECTED = ["undetermined", "undet", "undetected", "no ct", "nd"]; // of qPCR
const PEEKED = 100; // lines that tell whether every line ends in a separator
const HASH = 35;

/**
 * Open a table: the source that `label` takes. `options` has genesIn ("rows", "columns" or null: where
 * more of the model's genes are), geneColumn and invert.
 */
export async function openTable(file, model, options, progress) {
  if (!/\.(csv|tsv|txt|tab)(\.gz)?$/i.test(file.name)) {
    throw new Error(
      `${file.name}: its name has no ending of a format that this page reads (.csv, .tsv, .txt or .tab, also .gz; ` +
        ".h5ad and .h5 of 10x): rename it, or save it as one of these; cells of a spreadsheet can be pasted",
    );
  }
  const table = await readable(file.name, () => readTable(file, progress));
  return sourceOfTable(table, model.genes, options);
}

/**
 * A table as it is read: names of its columns (the first has those of the lines), and of each line the
 * numbers, NaN where there are none; by column `nNumbers`, and `words` as pairs of a line and its text.
 */
async function readTable(file, progress) {
  const lines = linesOf(file, (seen, all) => progress("reading", seen, all));
  const { header, separator, decimal, peeked } = await readHeader(file.name, lines);
  const table = { name: file.name, header: header.map(plainName), names: [], lines: [], nNumbers: new Uint32Array(header.length), words: new Map() };
  const add = (line) => {
    if (!line.length) return;
    const numbers = new Float64Array(header.length).fill(NaN);
    const { n, words } = parseFields(line, separator, decimal, numbers);
    if (n > header.length) {
      throw new Error(
        `Error tokenizing data. C error: Expected ${header.length} fields in line ${table.lines.length + 1}, saw ${n}`,
      );
    }
    for (const [k, text] of words) {
      if (!table.words.has(k)) table.words.set(k, []);
      table.words.get(k).push([table.lines.length, text]);
    }
    for (let k = 1; k < header.length; k++) if (numbers[k] === numbers[k]) table.nNumbers[k]++;
    table.names.push(plainName(firstField(line, separator)));
    table.lines.push(numbers);
  };
  peeked.forEach(add);
  for await (const line of lines) add(line);
  return table;
}

/** The names of the columns, the separator, the decimal mark, and the first lines of values. */
async function readHeader(name, lines) {
  const next = async () => (await lines.next()).value?.slice();
  let comment = null;
  let first = (await next()) ?? new Uint8Array(0);
  while (first[0] === HASH) [comment, first] = [first, (await next()) ?? new Uint8Array(0)];
  const separator = separatorOf(name, first);
  const peeked = [];
  const count = (line) => line.filter((code) => code === separator).length;
  if (comment && count(comment) > 0 && count(comment) === count(first)) {
    peeked.push(first);
    first = comment; // a header that begins with #
  }
  for (let line = await next(); line; line = peeked.length < PEEKED ? await next() : null) peeked.push(line);
  const fields = peeked.filter((line) => line.length).map((line) => fieldTexts(line, separator));
  if (!fields.length) throw new Error(`${name}: it is empty: it needs a header and a line for each entry`);
  let header = fieldTexts(first, separator);
  if (fields[0].length === header.length + 1) {
    const allEndEmpty = fields.every((texts) => texts.length === header.length + 1 && !texts.at(-1));
    // A separator ends every line; or R writes no name above the names of the lines
    header = allEndEmpty ? [...header, ""] : ["", ...header];
  }
  if (header.length === 1) throw new Error(`${name}: it has a single column: separate its columns by commas, tabs or semicolons`);
  const hasCommas = separator !== 44 && fields[0].some((text) => DECIMAL_COMMA.test(text));
  return { header, separator, decimal: hasCommas ? 44 : 46, peeked };
}

/** The separator of a line: that of the file's name, else the most frequent. */
function separatorOf(name, line) {
  const text = textOf(line);
  const usual = /\.csv(\.gz)?$/i.test(name) ? "," : "\t";
  const count = (mark) => text.split(mark).length;
  const most = text.includes(usual) ? usual : [usual, ",", "\t", ";"].reduce((a, b) => (count(b) > count(a) ? b : a));
  return most.charCodeAt(0);
}

/** The source of a table, in memory. */
function sourceOfTable(table, wanted, { genesIn, geneColumn, invert }) {
  const { name, header, lines, names } = table;
  const known = new Set(wanted.map(withoutCase));
  const beside = new Map(); // texts of the columns that hold words, or none
  const inside = [];
  for (let k = 1; k < header.length; k++) {
    if (isOfNumbers(table, k, invert)) inside.push(k);
    else beside.set(k, textsOf(table, k));
  }
  refuseLong(table, known, beside, inside.length);
  const inRows = whereGenesAre(table, known, [...beside.values()], genesIn) === "rows";
  for (const k of inside.filter((k) => inRows && header[k] === geneColumn)) beside.set(k, textsOf(table, k));
  const columns = inside.filter((k) => !beside.has(k));
  checkWords(table, columns);
  if (!columns.length) throw new Error(`${name}: it holds no numbers in its ${lines.length} lines`);
  const about = [...beside].filter(([k, texts]) => header[k].trim() || texts.some((text) => text.trim()));
  const repeated = duplicates(about.map(([k]) => header[k]));
  if (repeated.length) throw new Error(`${name}: it has several columns called ${some(repeated)}: rename or remove them`);
  if (invert) turnRound(lines, columns);
  const across = columns.map((k) => header[k]);
  const [features, samples] = inRows ? [names, across] : [across, names];
  const value = inRows ? (i, j) => lines[j][columns[i]] : (i, j) => lines[i][columns[j]];
  if (lines.some((line) => columns.some((k) => !Number.isFinite(line[k])))) refuseMissing(name, features, samples, value, known);
  const texts = inRows ? Object.fromEntries(about.map(([k, column]) => [header[k], column])) : {};
  const { kept, genes, notes } = genesAmong(name, features, texts, geneColumn, wanted);
  const turned = invert ? ["values are inverted: the lowest of the table is the most expressed"] : [];
  return {
    name,
    genes,
    hasRaw: false,
    notes: [...turned, ...repeatedSamples(samples), ...notes],
    nSamples: samples.length,
    samples,
    options: { genes_in: genesIn, gene_column: geneColumn, invert: invert || null },
    read: (parts) => parts.map(({ groups, rows }) => sumsOf(groups, rows ?? samples.map((_, i) => i), kept, value)),
  };
}

/** Samples by groups of genes, each added up to one. */
function sumsOf(groups, rows, kept, value) {
  const sums = new Float64Array(rows.length * groups.length);
  rows.forEach((i, at) => {
    groups.forEach((group, k) => {
      for (const gene of group) sums[at * groups.length + k] += value(i, kept[gene]);
    });
  });
  return sums;
}

const isUndetected = (text) => UNDETECTED.includes(text.trim().toLowerCase());

/** Whether a column holds numbers, and at most as many words; undetected values of qPCR become infinite. */
function isOfNumbers({ lines, nNumbers, words }, k, invert) {
  let found = words.get(k) ?? [];
  if (invert) {
    const undetected = found.filter(([, text]) => isUndetected(text));
    for (const [line] of undetected) lines[line][k] = Infinity;
    nNumbers[k] += undetected.length;
    found = found.filter(([, text]) => !isUndetected(text));
    words.set(k, found);
  }
  return nNumbers[k] > 0 && nNumbers[k] >= found.length;
}

/** A column as texts. */
function textsOf({ lines, words }, k) {
  const texts = lines.map((line) => (Number.isNaN(line[k]) ? "" : String(line[k])));
  for (const [line, text] of words.get(k) ?? []) texts[line] = text;
  return texts;
}

const nKnown = (known, names) => nShared(known, names.map(withoutCase));

/** Where the genes are, as those of the model or the user tell. */
function whereGenesAre({ name, header, lines, names }, known, texts, asked) {
  const inColumns = nKnown(known, header.slice(1));
  const inRows = Math.max(...[names, ...texts].map((column) => nKnown(known, column)));
  if (asked || inRows !== inColumns) return asked ?? (inRows > inColumns ? "rows" : "columns");
  throw new Error(
    `${name}: it is a table of ${lines.length} lines and ${header.length - 1} columns, and nothing tells where its ` +
      "genes are: say it (genes_in='rows' or 'columns')",
  );
}

/** Refuse a long table: a line for each sample and gene, so that there are many more lines than names. */
function refuseLong({ name, lines, names }, known, beside, nNumbers) {
  [names, ...beside.values()].forEach((column, number) => {
    const different = new Set(column);
    const many = nNumbers <= 2 ? 2 : 10; // several probes of a gene are no long table
    if (many * different.size >= lines.length || (number > 0 && nKnown(known, column) < 2)) return;
    throw new Error(
      `${name}: it has ${lines.length} lines with ${different.size} different names (${some([...different], 3)}): it ` +
        "looks like a long table, with a line for each sample and gene. Make it one with a line per sample: " +
        "pandas.DataFrame.pivot",
    );
  });
}

/** Refuse a few words among the numbers of a column. */
function checkWords({ name, header, names, words }, columns) {
  const k = columns.find((column) => words.get(column)?.length);
  if (k === undefined) return;
  const [line, text] = words.get(k)[0];
  const remedy = isUndetected(text)
    ? "if less is more, as in Ct of qPCR, say so (invert=)"
    : "correct it, or name the column as no gene (exclude=)";
  throw new Error(
    `${name}: line ${quoted(names[line])} (number ${line + 1} below the header), column ${quoted(header[k])} ` +
      `holds ${quoted(text)}, which is not a number: ${remedy}`,
  );
}

/** Refuse missing and infinite values of the model's genes, with the names of these. */
function refuseMissing(name, genes, samples, value, known) {
  const needed = genes.flatMap((gene, j) => (!known.size || known.has(withoutCase(gene)) ? [j] : []));
  const isMissing = (i, j) => !Number.isFinite(value(i, j));
  const named = needed
    .map((j) => [genes[j], samples.filter((_, i) => isMissing(i, j)).length])
    .filter(([, n]) => n)
    .map(([gene, n]) => `${gene} (${n})`);
  if (!named.length) return;
  const incomplete = samples.filter((_, i) => needed.some((j) => isMissing(i, j)));
  throw new Error(
    `${name}: ${counted(named.length, "gene has", "genes have")} missing or infinite values, in ` +
      `${incomplete.length} of ${samples.length} samples (first ${quoted(incomplete[0])}): ${some(named, 20)}; ` +
      "fill them in, or remove these genes",
  );
}

/** Turn values of which less is more the other way round; infinite ones were not detected. */
function turnRound(lines, columns) {
  let highest = -Infinity;
  let undetected = 0;
  for (const line of lines) {
    for (const k of columns) {
      if (line[k] === Infinity) undetected = 1;
      else if (line[k] > highest) highest = line[k];
    }
  }
  for (const line of lines) for (const k of columns) line[k] = line[k] === Infinity ? 0 : highest + undetected - line[k];
}
