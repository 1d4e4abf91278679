"""Five sparse kernel classifiers for up to some 10^5 rows; they write the same model files as the additive part."""
