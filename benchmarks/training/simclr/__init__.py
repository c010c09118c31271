"""Contrastive learning of representations in one training, whose augmentation may change every round.

References:
    T. Chen, S. Kornblith, M. Norouzi, G. Hinton. A simple framework for contrastive learning of visual
    representations. ICML 2020.
"""
