import narrows
import polars as pl

results = narrows.load("slower")
datagrams = results.flows.filter(pl.col("workload") == "datagrams")
print(
    datagrams.group_by("case", maintain_order=True).agg(
        flows=pl.len(),
        finished=pl.col("finished").sum(),
        dropped=(pl.col("unfinished") == "dropped").sum(),
        arrived=pl.col("received_bytes").sum() / pl.col("size_bytes").sum(),
    )
)
print(results.measure("fct_small_p99", "drops / victim", "pauses / victim"))
print(results.measure("goodput_long", "drops / tcp", "pauses / tcp"))
