# Web search [DCTCP §2.2] with sizes divided by ten: bytes, cumulative probability.
0 0
1000 0.15
2000 0.20
3000 0.30
5000 0.40
8000 0.53
20000 0.60
100000 0.70
200000 0.80
500000 0.90
1000000 0.97
3000000 1
