import narrows

results = narrows.load("reduce")
print(results.measure("execution_time"))
print(results.ranks.select("case", "seed", "rank", "compute_ns", "wait_ns"))
