// Labels of tables by the modules of the page, under Node: reads tasks from standard input.

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

const [folder] = process.argv.slice(2);
const load = (name) => import(`${pathToFileURL(folder)}/${name}.js`);
const [{ openTable }, { label, explainSample }, { readModel }, { labelsCsv }, { unpacked }] = await Promise.all(
  ["tables", "predict", "model", "csv", "packed"].map(load),
);

const { model, tables, words, tasks } = JSON.parse(readFileSync(0, "utf-8"));
const fitted = readModel(await unpacked(model));
const packedTables = await unpacked(tables);
const results = [];
for (const { path, options } of tasks) {
  const file = new File([readFileSync(path)], basename(path));
  try {
    const source = await openTable(file, fitted.genes, options, () => {});
    const labels = await label(source, fitted, packedTables, words, options);
    const { notes, alarms, record, missing } = labels;
    results.push({
      notes,
      alarms,
      record,
      missing,
      warnings: source.warnings,
      probabilities: Array.from(labels.probabilities),
      csv: labelsCsv(labels).join(""),
      explained: explainSample(labels, 0),
    });
  } catch (error) {
    results.push({ error: error.message, stack: error.stack });
  }
}
process.stdout.write(JSON.stringify(results));
