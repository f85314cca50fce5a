# Headway: two commands do everything on a Debian 12 machine, as root.
#   make demo    the LSST scenario: table, report and figure in out/demo
#   make test    lint, types, imports, unit, property and emulated tests
# The others: make check (fast, no root), bpf (the kernel part again), clean; experiments: failover, handover, layers, floods,
# faults, soak, bursts, paper, bench-reservations, bench-agent.

PYTHON  := .venv/bin/python
PACKAGES := python3-venv mininet openvswitch-switch iperf3 nuttcp nftables iproute2 iputils-ping ethtool libbpf1 curl procps util-linux postgresql
RIVALS := globus-gridftp-server-progs globus-gass-copy-progs libglobus-xio-udt-driver srt-tools \
	mariadb-server-core mariadb-client-core rclone

define installed  # packages of Debian, those that are missing
	@echo "== packages of Debian: $(1)"
	@missing=""; for package in $(1); do \
	    dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q "ok installed" || missing="$$missing $$package"; done; \
	if [ -n "$$missing" ]; then \
	    if [ "$$(id -u)" != 0 ]; then echo "not root: install$$missing first, or run make as root" >&2; exit 1; fi; \
	    echo "installing$$missing"; apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; fi
endef

.PHONY: demo test check schema root lab failover handover layers faults soak floods bursts paper paper-quick bench-reservations bench-agent install bpf clean

demo: install  ## ARGS="--exact --rate '10 Gbit/s'" and the like go to the scenario
	$(PYTHON) -m mininet_tests.scenarios.figure2.demo $(ARGS)

test: check schema root lab

check: install
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	$(PYTHON) -m pytest -q

schema: install  ## over six thousand requests drawn from the API's description, over HTTP
	HEADWAY_SCHEMA_EXAMPLES=400 $(PYTHON) -m pytest -q controller/northbound/tests/test_schema.py

root: install  ## real sockets, BPF and a userspace Open vSwitch in namespaces on this machine
	$(PYTHON) -m pytest -q -m root

lab: install  ## the emulation with a real kernel in virtual time
	mininet-tests/lab/boot --setup-only
	$(PYTHON) -m pytest -q -m lab -s --durations 25

handover: install  ## out/handover: how long the circuit is idle when an image comes and goes, our way and the cautious one
	mininet-tests/lab/boot --dilation 6 --out out/handover -- mininet-tests/site/isolated.sh $(PYTHON) -m mininet_tests.scenarios.handover.run --out out/handover $(ARGS)
	$(PYTHON) -m mininet_tests.scenarios.handover.figure out/handover

layers: install  ## out/layers/report.json: what each layer lets through against the rate it was set to
	mininet-tests/lab/boot --dilation 3 --out out/layers -- mininet-tests/site/isolated.sh $(PYTHON) -m mininet_tests.scenarios.layers.run --out out/layers --seconds 8 $(ARGS)

floods: install  ## hosts that misbehave, in the lab: out/floods/report.json; ARGS="--only REGEX" for some of them
	mininet-tests/lab/boot --dilation 2 --out out/floods -- mininet-tests/site/isolated.sh $(PYTHON) -m mininet_tests.scenarios.floods.run --out out/floods $(ARGS)

faults: install  ## what breaks while traffic runs, case by case: out/faults/report.json; ARGS="--case 'openflow cut'"
	mininet-tests/lab/boot --dilation 2 --out out/faults -- mininet-tests/site/isolated.sh $(PYTHON) -m mininet_tests.scenarios.faults.run --out out/faults $(ARGS)

soak: install  ## 200 random announcements, reservations and faults: out/soak/report.json; ARGS="--seed 2 --count 50"
	mininet-tests/lab/boot --dilation 2 --out out/soak -- mininet-tests/site/isolated.sh $(PYTHON) -m mininet_tests.scenarios.soak.run --out out/soak $(ARGS)

failover: install  ## one of two circuits dies under traffic: out/failover/report.json, failover.png
	mininet-tests/lab/boot --dilation 3 --out out/failover -- mininet-tests/site/isolated.sh $(PYTHON) -m mininet_tests.scenarios.failover.run --out out/failover
	$(PYTHON) -m mininet_tests.scenarios.failover.figure out/failover

bench-reservations: install  ## out/bench/reservations.json
	$(PYTHON) -m mininet_tests.bench.reservations $(ARGS)

bench-agent: install  ## out/bench/agent.json
	$(PYTHON) -m mininet_tests.bench.agent $(ARGS)

bursts: install  ## out/bursts: buffers at starts, as in Freemon 2013 and Antony 2003; ARGS="fig2", "freemon", "fig4", "--quick"
	$(PYTHON) -m mininet_tests.papers.antony.run $(ARGS)

paper: install  ## Freemon 2013 and its rivals in numbers: out/paper, docs/results.md; ARGS="--only REGEX", "--list"
	$(call installed,$(RIVALS))
	$(PYTHON) -m mininet_tests.papers.freemon.run $(ARGS)

paper-quick: install  ## a part of it, in less than a quarter of an hour: out/paper-quick
	$(PYTHON) -m mininet_tests.papers.freemon.run --quick $(ARGS)

install: .venv/.installed

.venv/.installed: setup.cfg pyproject.toml
	$(call installed,$(PACKAGES))
	@echo "== packages of Python, into .venv"
	/usr/bin/python3 -m venv .venv
	.venv/bin/pip install -q --disable-pip-version-check -e '.[emulation,test]'
	echo $(CURDIR) > $$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/mininet_tests.pth  # -m mininet_tests...
	.venv/bin/python -m compileall -q apps controller hostagent topology mininet-tests
	@touch $@

bpf:  ## needs clang, llvm and libbpf-dev; the result is committed
	$(MAKE) -C hostagent/bpf
	$(MAKE) -C mininet-tests/site/bpf

clean:
	rm -rf .venv out build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
