# Headway: two commands do everything on a Debian 12 machine, as root.
#   make demo    the LSST scenario: table, report and figure in out/demo
#   make test    lint, types, imports, unit, property and emulated tests: the short tier
# The others: make check (fast, no root), test-all (the long tier too), paper and paper-quick, bpf (the kernel part again),
# clean. Every experiment and bench is mininet-tests/run NAME; without a name it lists them.

PYTHON  := .venv/bin/python
# Tests are rewritten once, by the first process that reads them.
export PYTHONDONTWRITEBYTECODE :=
# Files side by side, more than there are cores: many tests wait.
MANY := -n 4 --dist loadfile
BY_THE_CLOCK := mininet-tests/bench mininet-tests/scenarios/deploy mininet-tests/scenarios/faults/test_away.py \
	mininet-tests/scenarios/faults/test_two_switches.py mininet-tests/scenarios/floods/test_switch.py
# Longest first, as their timeouts say: two labs at a time, and beside them what a busy machine makes slower but not wrong.
LONGEST_FIRST := --dist loadfile --no-loadscope-reorder --durations 20
BESIDE := -n 4 $(LONGEST_FIRST) apps contrib controller headway topology mininet-tests $(addprefix --ignore=,$(BY_THE_CLOCK))
# What is judged by this machine's clock comes after the labs: three guests beside it have made 86 of 100 Mbit/s. It mostly
# waits: with four processes it had a quarter of two cores. What a machine that stood still has disturbed is made again.
AFTER := -n 6 --reruns 2 -rR $(LONGEST_FIRST) hostagent $(BY_THE_CLOCK)
PACKAGES := python3-venv mininet openvswitch-switch iperf3 nuttcp nftables iproute2 iputils-ping ethtool libbpf1 curl procps util-linux
TEST_PACKAGES := postgresql chromium chromium-driver systemd-container mmdebstrap umoci runc python3-simgrid libusrsctp2
RIVALS := globus-gridftp-server-progs globus-gass-copy-progs libglobus-xio-udt-driver srt-tools uftp \
	mariadb-server-core mariadb-client-core rclone mptcpize aria2

define installed  # packages of Debian, those that are missing
	@echo "== packages of Debian: $(1)"
	@missing=""; for package in $(1); do \
	    dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q "ok installed" || missing="$$missing $$package"; done; \
	if [ -n "$$missing" ]; then \
	    if [ "$$(id -u)" != 0 ]; then echo "not root: install$$missing first, or run make as root" >&2; exit 1; fi; \
	    echo "installing$$missing"; apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; fi
endef

define linted
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/lint-imports
endef

# Types beside tests: what runs them, what pytest is given, and how what ran before has ended; a failure there does not keep
# these from being made. Types take one core for as long.
typed_beside = $(1) .venv/bin/mypy >.venv/mypy.txt 2>&1 & types=$$!; \
	    $(PYTHON) -m pytest $(2); tests=$$?; \
	    wait $$types; types=$$?; cat .venv/mypy.txt; exit $$((tests | types | $(or $(3),0)))

.PHONY: demo test test-all check paper paper-quick install bpf packages clean

demo:  ## installs what it needs first; ARGS="--full", "--full --rate '10 Gbit/s'" go to the scenario; "--network FILE" is any
	mininet-tests/run --install .venv/.demo $(if $(findstring --network,$(ARGS)),emulate,figure2) --out out/demo $(ARGS)

test: install  ## what CI runs: CONTRIBUTING.md says what is in it, and how long it takes
	$(linted)
	mininet-tests/lab/boot --setup-only
	$(PYTHON) -m pytest -v -m "not long" $(BESIDE); first=$$?; \
	    $(call typed_beside,nice -n 19,-v -m "not lab and not long" $(AFTER),first)

test-all: export HEADWAY_EXAMPLES := 100  # of each property; the short tier draws 40
test-all: install  ## everything: before a change of the agent, the southbound or the lab lands
	$(linted)
	mininet-tests/lab/boot --setup-only
	HEADWAY_SCHEMA_EXAMPLES=400 $(PYTHON) -m pytest -v -m "" $(BESIDE); first=$$?; \
	    $(call typed_beside,nice -n 19,-v -m "not lab" $(AFTER),first)

check: install  ## no root
	$(linted)
	$(call typed_beside,,-q $(MANY))

paper: install  ## Freemon 2013 and its rivals in numbers: out/paper, docs/results.md; ARGS="--only REGEX", "--list"
	$(call installed,$(RIVALS))
	mininet-tests/run $(or $(RUN),freemon --out out/paper) $(ARGS)  # RUN=receiver: another paper, beside the same rivals

paper-quick: install  ## a part of it, in less than a quarter of an hour: out/paper-quick
	mininet-tests/run freemon --quick --out out/paper-quick $(ARGS)

install: .venv/.installed

.venv/.demo: setup.cfg pyproject.toml  # all that runs; what only checks and tests need comes after it
	$(call installed,$(PACKAGES))
	@echo "== packages of Python, into .venv"
	/usr/bin/python3 -m venv .venv
	.venv/bin/pip install -q --disable-pip-version-check --no-compile -e '.[controller,emulation]'
	echo $(CURDIR) > $$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/mininet_tests.pth  # -m mininet_tests...
	.venv/bin/python -m compileall -q -j 0 .venv/lib apps controller hostagent topology mininet-tests  # on all cores; pip uses one
	@touch $@

.venv/.installed: .venv/.demo
	$(call installed,$(TEST_PACKAGES))
	@echo "== packages of Python for checks and tests, into .venv"
	.venv/bin/pip install -q --disable-pip-version-check --no-compile -e '.[controller,emulation,test]'
	.venv/bin/python -m compileall -q -j 0 .venv/lib
	@echo "== promtool and prometheus of Debian's package, into .venv"
	test -x .venv/bin/promtool || contrib/prometheus/unpack .venv/bin
	@touch $@

bpf:  ## needs clang, llvm and libbpf-dev; the result is committed
	$(MAKE) -C hostagent/bpf
	$(MAKE) -C mininet-tests/site/bpf

packages: install  ## Debian packages (agent, controller, command), wheel and sdist: in dist/
	$(PYTHON) contrib/packaging/build.py --out dist

clean:
	rm -rf .venv out build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
