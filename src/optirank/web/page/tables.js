// Tables of text: genes in rows or columns, annotations beside them, values parsed and checked.

import { genesAmong, nameWarnings } from "./features.js";
import { QUOTE, fieldStarts, fieldTexts, firstField, linesOf, numberOf, parseNumber } from "./lines.js";
import { duplicates, quoted, readable, some, stripped } from "./text.js";

const DECIMAL_COMMA = /^\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*$/;

/**
 * Open a table: the source that `label` takes.
 *
 * `options` has genesIn ("rows", "columns" or null: where more of the wanted names are),
 * annotations (names of columns that are no values) and geneColumn.
 */
export async function openTable(file, wanted, options, progress) {
  const head = await readable(file.name, () => readHead(file, progress));
  const described = [...options.annotations, ...(options.geneColumn ? [options.geneColumn] : [])];
  checkDescribed(file.name, head, described);
  const skipped = new Set(described);
  const inside = head.header.map((_, k) => k).filter((k) => k > 0 && !skipped.has(head.header[k]));
  if (!inside.length || !head.lines.length) {
    throw new Error(
      `${file.name} holds no numbers: it has ${head.lines.length} lines, ${inside.length} columns`,
    );
  }
  const genesIn = options.genesIn ?? sideOf(wanted, head, inside);
  if (options.geneColumn && genesIn === "columns") {
    throw new Error(
      `${file.name}: the gene column '${options.geneColumn}' is for tables with genes in rows`,
    );
  }
  const across = inside.map((k) => head.header[k]);
  let down = head.lines;
  if (options.geneColumn) down = await columnOf(file, head, head.header.indexOf(options.geneColumn, 1));
  const names = (genesIn === "rows" ? down : across).map(stripped);
  const { kept, genes, notes } = genesAmong(file.name, names, {}, null);
  const samples = genesIn === "rows" ? across : head.lines;
  const table = { file, head, inside, genesIn, genes: names, samples };
  return {
    name: file.name,
    genes,
    others: {},
    rawGenes: null,
    notes,
    warnings: nameWarnings(file.name, genes, true),
    genesIn,
    nSamples: samples.length,
    samples,
    options: {
      genes_in: genesIn,
      annotations: options.annotations.length ? options.annotations : null,
      gene_column: options.geneColumn || null,
    },
    read: (columns, rows, seen) =>
      readable(file.name, () => read(table, columns.map((group) => group.map((k) => kept[k])), rows, seen)),
  };
}

/** The header, the names of the lines, the separator and the decimal mark of a table. */
async function readHead(file, progress) {
  let header = null;
  let first = null;
  let separator = 0;
  const lines = [];
  for await (const line of linesOf(file, (seen, all) => progress("reading names", seen, all))) {
    if (header === null) {
      separator = separatorOf(file.name, line);
      header = fieldTexts(line, separator);
      if (header.length === 1 && line.length) {
        throw new Error(
          `${file.name} has a single column: separate its columns by commas, tabs or semicolons`,
        );
      }
      continue;
    }
    if (!line.length) continue;
    first ??= fieldTexts(line, separator);
    lines.push(firstField(line, separator));
  }
  if (first === null) {
    throw new Error(
      `${file.name} is empty: it should have a header line and a line for each entry`,
    );
  }
  if (first.length === header.length + 1) header = ["", ...header]; // as R writes it
  const commas = separator !== 44 && first.some((text) => DECIMAL_COMMA.test(text));
  return { header, lines, separator, decimal: commas ? 44 : 46 };
}

/** The separator of a table: that of its name, else the most frequent of its header. */
function separatorOf(name, line) {
  const suffixes = name.toLowerCase().split(".").slice(1).slice(-2);
  const usual = suffixes.includes("csv") ? "," : "\t";
  const counts = (mark) => line.reduce((n, code) => n + (code === mark.charCodeAt(0)), 0);
  let chosen = usual;
  if (!counts(usual)) for (const mark of [",", "\t", ";"]) if (counts(mark) > counts(chosen)) chosen = mark;
  return chosen.charCodeAt(0);
}

/** Where more of the wanted genes are; in columns where there are as many. */
function sideOf(wanted, head, inside) {
  const known = new Set(wanted.map((name) => name.toLowerCase()));
  const found = (names) => names.filter((name) => known.has(name.trim().toLowerCase())).length;
  const [rows, columns] = [found(head.lines), found(inside.map((k) => head.header[k]))];
  if (rows !== columns) return rows > columns ? "rows" : "columns";
  return head.lines.length > inside.length ? "rows" : "columns";
}

function checkDescribed(name, head, described) {
  const columns = head.header.slice(1);
  const absent = described.filter((column) => !columns.includes(column));
  if (absent.length) {
    const transposed = head.lines.some((line) => absent.includes(line));
    const hint = transposed
      ? "; it has such a line: is it transposed? (genes_in='rows')"
      : "";
    throw new Error(`${name} has no column ${some(absent)}: there are ${some(columns, 20)}${hint}`);
  }
  const repeated = duplicates(columns).filter((column) => described.includes(column));
  if (repeated.length) {
    throw new Error(`${name} has several columns called ${some(repeated)}: rename or remove them`);
  }
}

async function columnOf(file, head, column) {
  const texts = [];
  let first = true;
  for await (const line of linesOf(file)) {
    if (!first && line.length) texts.push(fieldTexts(line, head.separator)[column] ?? "");
    first = false;
  }
  return texts;
}

/**
 * Values of some groups of columns, each group added up, of all samples or some rows, in order.
 *
 * With genes in rows every value is parsed; with genes in columns those of the genes alone, unless
 * these are most. Words are refused, and so are missing values of the genes.
 */
async function read(table, groups, rows, progress) {
  const { head, inside, genesIn, samples } = table;
  const chosen = groups.flat();
  const target = groups.flatMap((group, k) => group.map(() => k));
  const byRows = genesIn === "rows";
  const every = byRows || 2 * chosen.length > inside.length;
  const order = new Map(rows?.map((row, k) => [row, k]));
  const nSamples = rows?.length ?? samples.length;
  const place = (sample) => (rows === null ? sample : order.get(sample));
  const into = {
    values: new Float64Array(nSamples * groups.length),
    missing: new Map(),
    words: new Map(),
  };
  const targets = new Map();
  chosen.forEach((gene, k) => {
    if (targets.has(gene)) targets.get(gene).push(target[k]);
    else targets.set(gene, [target[k]]);
  });
  const positions = every ? inside.map((_, k) => k) : chosen;
  const put = (sample, gene, number) => {
    const at = place(sample);
    const of = targets.get(gene);
    if (at === undefined || of === undefined) return;
    if (!Number.isFinite(number)) note(into.missing, gene, sample);
    for (const k of of) into.values[at * groups.length + k] += number;
  };
  await eachLine(table, progress, (line, number) => {
    if (line.length > head.header.length) refuseLong(table, number, line.length);
    for (const k of positions) {
      const value = line.number(inside[k]);
      if (value === undefined) addWord(into.words, inside[k], number, line.text(inside[k]));
      else if (byRows) put(k, number, value);
      else put(number, k, value);
    }
  });
  refuseWords(table, into.words, positions.map((k) => inside[k]));
  refuseMissing(table, into.missing, chosen);
  return into.values;
}

function note(missing, gene, sample) {
  if (!missing.has(gene)) missing.set(gene, new Set());
  missing.get(gene).add(sample);
}

function addWord(words, column, number, text) {
  if (!words.has(column)) words.set(column, { number, text, count: 0 });
  words.get(column).count++;
}

/** Calls a function with every line below the header, by its number, without parsing it. */
async function eachLine(table, progress, use) {
  const { head, file } = table;
  const starts = new Int32Array(head.header.length + 2);
  let number = -2;
  for await (const line of linesOf(file, (seen, all) => progress("reading values", seen, all))) {
    number++;
    if (number < 0) continue;
    if (!line.length) {
      number--;
      continue;
    }
    if (line.includes(QUOTE)) {
      const texts = fieldTexts(line, head.separator);
      const text = (k) => texts[k] ?? "";
      use({ length: texts.length, text, number: (k) => numberOf(text(k), head.decimal) }, number);
      continue;
    }
    const length = fieldStarts(line, head.separator, starts);
    use(
      {
        length,
        text: (k) => (k < length ? new TextDecoder().decode(line.subarray(starts[k], starts[k + 1] - 1)) : ""),
        number: (k) => (k < length ? parseNumber(line, starts[k], starts[k + 1] - 1, head.decimal) : NaN),
      },
      number,
    );
  }
}

function refuseLong(table, number, length) {
  const n = table.head.header.length;
  throw new Error(
    `${table.file.name} cannot be read, it may be truncated or damaged: Error tokenizing data. C ` +
      `error: Expected ${n} fields in line ${number + 2}, saw ${length} (copy or fetch it again)`,
  );
}

function refuseWords(table, words, columns) {
  const column = columns.find((k) => words.has(k));
  if (column === undefined) return;
  const { number, text, count } = words.get(column);
  const { lines, header } = table.head;
  const remedy =
    count === lines.length
      ? "if that column describes the lines, name it (annotations=)"
      : "correct it";
  throw new Error(
    `${table.file.name}: line ${quoted(lines[number])} (number ${number + 1} below the header), ` +
      `column ${quoted(header[column])} holds ${quoted(text)}, which is not a number: ${remedy}`,
  );
}

function refuseMissing(table, missing, chosen) {
  if (!missing.size) return;
  const genes = chosen.filter((gene) => missing.has(gene));
  const named = genes.map((gene) => `${table.genes[gene]} (${missing.get(gene).size})`);
  const samples = new Set(genes.flatMap((gene) => [...missing.get(gene)]));
  const first = table.samples[Math.min(...samples)];
  throw new Error(
    `${table.file.name}: ${named.length} of ${chosen.length} genes ${named.length === 1 ? "has" : "have"} ` +
      `missing or infinite values, in ${samples.size} of ${table.samples.length} samples (first ` +
      `${quoted(first)}): ${some(named, 20)}; fill them in, or leave these genes out ` +
      "(drop_missing=True)",
  );
}
