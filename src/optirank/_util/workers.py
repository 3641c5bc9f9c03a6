"""How many threads or processes to use."""

from __future__ import annotations


def worker_count(n_jobs: int | None) -> int:
    """Number of workers: ``n_jobs``, one for None, all processors for -1, all but one for -2, ...

    Processors are those that this process may use (its affinity and its container's limit count),
    as joblib sees them; inside a worker of joblib there is one.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs=0 leaves no worker: use a count of at least 1, or -1 for all")
    if n_jobs is None or n_jobs > 0:
        return n_jobs or 1
    from joblib import effective_n_jobs

    return effective_n_jobs(n_jobs)
