"""Ten mistakes in a small pack: what their author sees. They make the page docs/ten-mistakes.md."""
