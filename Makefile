# Every target sets up what it needs: `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements/cpu.txt
FOLDERS := s2l workloads collectors serving_adapter replayer reports
SOURCES := $(foreach f,$(FOLDERS),$(wildcard $f/*.py $f/*/*.py $f/*/*/*.py)) $(wildcard reports/templates/* datasets/*/*)
# uv knows where PyTorch keeps its CPU builds; it is used only where the plain index lacks them.
UV := uv==0.13.9


.PHONY: demo test test-extra lint types unit install browser bench clean

demo: install
	$(BIN)/s2l demo

test: lint types unit

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# From inside the tree of links: in the root, s2l/ alone would be taken for the whole package.
types: install
	cd build/__editable__.s2l-*/ && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml

# Two at once, but for what asserts times and what starts an engine.
unit: install browser
	$(BIN)/pytest -n 2 --dist loadfile -m "not (slow or timed or engine)"
	$(BIN)/pytest -m "(timed or engine) and not slow"

# What takes minutes more: many kills, large fuzzes.
test-extra: install browser
	$(BIN)/pytest -m slow

# Chromium for the tests that open reports. As root on Debian it is installed, elsewhere asked for.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; \
	else echo "the tests need Chromium: install it with your package manager"; exit 1; fi

bench: install
	$(BIN)/python benchmarks/demo.py

install: $(VENV)/.installed

$(VENV)/.locked: $(LOCK)
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-deps -r $(LOCK) || \
	{ $(BIN)/pip install --quiet $(UV) && VIRTUAL_ENV=$(VENV) \
		$(BIN)/uv pip install --torch-backend cpu --no-deps -r $(LOCK); }
	touch $@

# Strict: type checkers see the mapped packages only as a tree of links, made anew for new files.
$(VENV)/.installed: $(VENV)/.locked pyproject.toml $(SOURCES)
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --config-settings editable_mode=strict -e .
	touch $@

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache *.egg-info
