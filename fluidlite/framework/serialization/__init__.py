"""Programs as bytes, text, descriptions and graphs, and declarations of operators in these forms."""
