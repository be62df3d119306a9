"""Run by `python3 -m unittest discover -s python/tests -t python`, and by go test ./cmd/coterie -run Python."""
