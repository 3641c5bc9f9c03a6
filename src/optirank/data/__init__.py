"""Profiles (samples by genes), the readers that make them, names of genes, and passes.

- `profiles`: `Profiles`, columns of annotations, the errors of data.
- `opening`: ``with open_profiles(path, label=(), layer=None, table=None,
  gene_column=None, genes_in=None, samples=None, invert=False, known_genes=(),
  exclude=()) as profiles`` for files.
- `objects`: ``profiles_of(object, layer=None, table=None, gene_column=None, label=(),
  known_genes=(), exclude=())`` for AnnData, SpatialData, MuData and data frames.
- `passes`: `run_pass`, `read_blocks`, `read_values`.
- `cluster`: ``with on_cluster(address):`` passes of opened files run there.
- `genes`: `match_genes`, `join_profiles` (several data sets), `gene_profiles`.
"""
