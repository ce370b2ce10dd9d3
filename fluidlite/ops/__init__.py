"""The operators. A module with declarations is loaded when one of its operators is asked for (`registry.find`)."""
