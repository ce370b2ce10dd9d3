"""Programs as bytes, text, descriptions and graphs, and what operators declare in them."""
