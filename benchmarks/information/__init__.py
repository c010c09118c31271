"""Entropy search beside the acquisition functions of BoTorch."""
