import narrows
import polars as pl

results = narrows.load("lossless")
paused = results.ports.filter(pl.col("paused_ns") > 0)
print(
    paused.group_by("case", "role")
    .agg(
        ports=pl.col("name").n_unique(),
        longest_pause_ms=pl.col("longest_pause_ns").max() / 1e6,
        paused_ms=pl.col("paused_ns").max() / 1e6,
        dropped=pl.col("dropped_packets").sum(),
    )
    .sort("case", "role")
)
print(results.measure("fct_small_p99", "CUBIC+PFC / victim", "DCTCP+PFC / victim"))
