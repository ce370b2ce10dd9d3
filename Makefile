# make demo    trains the network of the Fluid guide on real digits, with a line an epoch
# make test    runs the tests, in two processes
# make check   formatting, lint and types, and the tests of what has changed
# make wheels  builds a manylinux wheel for every Python that it finds, and tries each without a compiler
# make docs   builds the site of the documents in build/site/html, with the API and the examples as they run
# make ci      all checks, as in .ci/run
# make clean   removes what the others have made
#
# Each does its own set-up, in .venv; PYTHON=python3.12 chooses the interpreter (another VENV=... keeps several apart).

PYTHON ?= python3
VENV ?= .venv
SOURCES = setup.py scripts/compiling.py pyproject.toml $(shell find fluidlite/_ext -name '*.pyx' -o -name '*.px[di]' -o -name '*.cc' -o -name '*.h')
AHEAD = $(CURDIR)/build/ahead
INSTALL = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check

# Python compiles what is imported: installing need not compile what never is. pip reads 0 as "do not".
export PIP_NO_COMPILE = 0

.PHONY: demo test check docs ci wheels clean

demo: $(VENV)/.demo
	$(VENV)/bin/python -m fluidlite examples/demo.py

test: $(VENV)/.test
	$(VENV)/bin/python scripts/run_tests.py

check: $(VENV)/.test
	@$(VENV)/bin/python -c "import mypy, ruff" 2>/dev/null || $(INSTALL) 'fluidlite[lint]'
	$(VENV)/bin/python scripts/check.py $(BASE)

# What is installed is not compiled again: only the packages of these extras are added.
docs: $(VENV)/.demo
	$(INSTALL) 'fluidlite[docs,test]'
	$(VENV)/bin/python scripts/site/build.py

ci:
	PYTHON=$(PYTHON) bash .ci/run

wheels:
	bash scripts/wheels.sh

clean:
	rm -rf $(VENV) build dist *.egg-info fluidlite/_ext/*.cpp fluidlite/_ext/*.so

# Half of the C++ files need no package: these are compiled while the environment is made.
$(VENV)/.demo: $(SOURCES)
	@echo "making $(VENV) and compiling the package, which takes some minutes"
	@rm -rf $(AHEAD)
	@$(PYTHON) scripts/compiling.py $(AHEAD) 2>/dev/null & \
	$(MAKE) --no-print-directory $(VENV)/bin/python && \
	FLUIDLITE_NATIVE=1 FLUIDLITE_OBJECTS=$(AHEAD) $(INSTALL) --editable '.[demo]'; \
	code=$$?; kill $$! 2>/dev/null; wait; rm -rf $(AHEAD); exit $$code
	@touch $@

# The demo is compiled for this machine alone; the tests try all instruction sets that it can run.
$(VENV)/.test: $(VENV)/bin/python $(SOURCES)
	@echo "compiling the package for all instruction sets, which takes some minutes"
	rm -f fluidlite/_ext/kernels.*.so
	$(INSTALL) --editable '.[demo,test]'
	$(VENV)/bin/python -m compileall -qq -j 0 $(VENV)/lib || true
	@touch $(VENV)/.demo $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "fluidlite needs Python 3.10 or newer, $(PYTHON) is " + sys.version.split()[0] + ": set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
