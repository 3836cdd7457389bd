import narrows

results = narrows.load("equal-paths")
print(results.measure("path_changes", "rehashing"))
