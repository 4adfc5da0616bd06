"""n-MeRCI (Moukari et al. 2019)."""
