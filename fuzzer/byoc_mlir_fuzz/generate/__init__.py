"""Random models, from tables of ops by family and from the schemas of the rest."""
