"""Charts from frames, in Vega-Lite through altair. One module per kind of figure; data are reduced before drawing."""
