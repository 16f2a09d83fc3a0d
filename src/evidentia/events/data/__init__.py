"""Where clips come from: sound files and soundscapes, tsv and CSV files, video features, and a built-in generator."""
