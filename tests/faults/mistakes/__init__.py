"""Ten mistakes in a small pack: what their author reads."""
