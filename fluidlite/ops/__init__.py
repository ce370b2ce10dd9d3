"""The operators. A module of declarations is loaded at the first use of one of its operators (`registry.find`)."""
