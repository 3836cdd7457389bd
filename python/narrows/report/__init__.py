"""One offline HTML page per experiment. It opens without a network, and every string in it is escaped."""
