# The front doors. Everything is kept in .venv and target; afterwards .venv/bin/narrows is the command.

PYTHON ?= python3
BIN := .venv/bin
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml -o -name '*.cdf') Cargo.toml Cargo.lock

.PHONY: demo test bench nightly clean

## Builds everything and reproduces one figure, quickly.
demo: .venv/built
	$(BIN)/narrows reproduce gemini/fig13 --quick

## Every check that a change must pass.
test: .venv/built
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --document-private-items --quiet
	cargo test --quiet
	$(BIN)/ruff check python experiments
	$(BIN)/ruff format --check python experiments
	$(BIN)/mypy
	@command -v chromium >/dev/null || (apt-get update && apt-get install --yes --no-install-recommends chromium) >/dev/null 2>&1 || \
		echo 'chromium is not installed: the test that opens the report in a browser will be skipped'
	$(BIN)/pytest

## Cost per packet-hop, beside this machine's hold loop.
bench:
	cargo run --release --quiet --package narrows-sim --example speed cubic

## What takes longer: the full experiments and their claims.
nightly: test
	$(BIN)/narrows reproduce gemini

clean:
	rm -rf target .venv runs

.venv/bin/maturin: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check 'maturin>=1.16,<2'
	touch $@

.venv/built: .venv/bin/maturin pyproject.toml $(RUST)
	$(BIN)/maturin develop --release --quiet --extras dev
	touch $@
