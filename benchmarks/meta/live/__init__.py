"""Families of related tasks that are really run: evaluated once, then played on by policies.

They follow section 6.2 and appendix D.2 of Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet, *On provably
robust meta-Bayesian optimization*, UAI 2022; what the paper leaves open is said where it is decided.
"""
