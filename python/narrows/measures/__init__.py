"""Numbers by run, made of the results' frames; those with a name are what claims and comparisons are made of."""
