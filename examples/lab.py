import polars as pl

import narrows

run = narrows.run("mine.toml", seeds=[1, 2])  # a handle: progress(), cancel(), done(), join(); takes jobs and on, too
results = run.join()  # waits; runs that are there already are not made again

fct_ms = pl.col("fct_ns") / 1e6
print(
    results.flows.filter(pl.col("finished"))
    .group_by("arm", maintain_order=True)
    .agg(fct_ms.mean().alias("mean_ms"), fct_ms.quantile(0.95).alias("p95_ms"), pl.len().alias("flows"))
)
print(results.ports.filter(pl.col("role") == "wan").select("arm", "seed", "name", "utilisation", "dropped_packets"))
