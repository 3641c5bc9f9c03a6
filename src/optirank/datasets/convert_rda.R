# Rscript convert_rda.R FILE.rda FOLDER: an R list with an expression matrix and a table of its
# samples, as SingleCellNet ships them, becomes a 10x folder with obs.csv beside it.
arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) != 2) stop("use: Rscript convert_rda.R FILE.rda FOLDER")
library(Matrix)

loaded <- new.env()
load(arguments[1], envir = loaded)
parts <- list()
collect <- function(x) {
  if (is.data.frame(x) || length(dim(x)) == 2) {
    parts[[length(parts) + 1]] <<- x
  } else if (is.list(x)) {
    for (part in x) collect(part)
  }
}
for (name in ls(loaded)) collect(get(name, envir = loaded))
if (length(parts) < 2) stop("found no matrix with a table of samples in ", arguments[1])

sizes <- sapply(parts, function(x) as.numeric(nrow(x)) * ncol(x))
expression <- parts[[which.max(sizes)]]
about <- as.data.frame(parts[-which.max(sizes)][[1]])
if (is.data.frame(expression)) expression <- as.matrix(expression)
samples <- colnames(expression)
hits <- c(sum(rownames(about) %in% samples), sapply(about, function(x) sum(as.character(x) %in% samples)))
if (max(hits) == 0) stop("the table of samples names no column of the matrix")
if (which.max(hits) > 1) rownames(about) <- make.unique(as.character(about[[which.max(hits) - 1]]))

folder <- arguments[2]
dir.create(folder, showWarnings = FALSE, recursive = TRUE)
writeMM(as(Matrix(expression, sparse = TRUE), "CsparseMatrix"), file.path(folder, "matrix.mtx"))
writeLines(rownames(expression), file.path(folder, "features.tsv"))
writeLines(samples, file.path(folder, "barcodes.tsv"))
write.csv(about, file.path(folder, "obs.csv"))
cat("written to", folder, "- columns of the samples:", paste(colnames(about), collapse = ", "), "\n")
