# The front doors. Everything is kept in .venv and target; afterwards .venv/bin/narrows is the command.

PYTHON ?= python3
BIN := .venv/bin
TOOLS := target/tools/bin
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml -o -name '*.cdf') Cargo.toml Cargo.lock \
	python/narrows/controller.py python/narrows/learning/interval.py python/narrows/learning/learner.py

PROFILE := target/wheel-profile/narrows.profdata

# Programs for the kernel need clang and libelf; who has neither builds and checks the rest.
WITHOUT = $(if $(shell command -v clang && pkg-config --exists libelf zlib && echo both),,--exclude narrows-kernel --exclude narrows-daemon)

.PHONY: demo test test-system ci quick fast lints rust-tests python-lints python-tests page-tests system-tests system-tools \
	instruction-gate tools kernel-scripts fuzz fuzz-seeds fuzz-runs mutants faults live-test narrowsd-checked narrowsd narrowsd-aarch64 \
	packages packages-aarch64 \
	check-aarch64 guest-kernel bench nightly wheel release-wheel docs clean

# Installs Debian packages, unless the command says that what they hold is there.
packages = @($(2)) >/dev/null || ($(APT) update && $(APT) install --yes --no-install-recommends $(1))
APT := crates/narrows-testbed/apt.sh

## Builds everything and reproduces one figure, quickly.
demo: .venv/built
	$(BIN)/narrows reproduce gemini/fig13 --quick

# Cargo would take the jobs of the make above it for its own: one for each of two.
OWN_JOBS := env -u MAKEFLAGS -u MFLAGS
# Two jobs at a time, for none of them keeps two processors busy; what each says stands together. Lines begin with + where make
# cannot see that they call it.
SIDE_BY_SIDE = $(MAKE) --no-print-directory --jobs=2 --output-sync=target
TESTS := lints rust-tests python-lints python-tests instruction-gate
SYSTEM_TESTS := system-tests kernel-scripts page-tests

# Hundreds of interpreters start; each would compile all modules anew where none writes its bytecode.
unexport PYTHONDONTWRITEBYTECODE

## Every check that a change must pass, but for `make test-system`.
test: tools
	+@$(SIDE_BY_SIDE) $(TESTS)

## What needs a guest, a browser or a cluster, kills processes, or follows a page of the docs; what cannot run says why.
test-system: tools
	+@$(SIDE_BY_SIDE) $(SYSTEM_TESTS)

## Both, side by side.
ci: tools
	+@$(SIDE_BY_SIDE) $(TESTS) $(SYSTEM_TESTS)

## In three minutes, when all is compiled: format, lints, unit tests of the machines, Python's tests without a simulator.
quick: fast
	cargo fmt --all --check
	$(OWN_JOBS) cargo clippy --workspace $(WITHOUT) --all-targets --quiet -- -D warnings
	$(OWN_JOBS) cargo test --quiet --lib $(QUICK:%=--package narrows-%)
	$(BIN)/ruff check python experiments
	$(BIN)/ruff format --check python experiments
	$(BIN)/mypy
	$(BIN)/pytest --numprocesses=2 --dist=worksteal -m 'not (simulator or page or system or ray or live)'
QUICK := core network plan scenario

# Clippy compiles what the tests run: lints cost what compiling costs, and not both. The native module is built with the rest,
# without a Python to link with.
CLIPPY = $(OWN_JOBS) RUSTC_WORKSPACE_WRAPPER="$$(rustc --print sysroot)/bin/clippy-driver" \
	CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ PYO3_BUILD_EXTENSION_MODULE=1

lints:
	cargo fmt --all --check
	$(CLIPPY) cargo build --quiet --workspace $(WITHOUT) --lib --bins --tests --examples --test live
	RUSTDOCFLAGS='-D warnings' $(OWN_JOBS) cargo doc --quiet --workspace $(WITHOUT) --no-deps --document-private-items

# All of them by one command: what each package asks of its dependencies is then compiled once. After the lints, as both have the
# same folder of cargo's, which one at a time may use.
rust-tests: | lints $(if $(filter system-tests,$(MAKECMDGOALS)),narrowsd-checked)
	$(CLIPPY) cargo test --quiet --workspace $(WITHOUT)
	$(CLIPPY) $(FUZZ_RUNS) --seconds 30
	@$(if $(WITHOUT),echo 'clang or libelf-dev is not installed: the tests of narrows-kernel and narrows-daemon are SKIPPED')

# Random experiments, each run five times with every invariant on; a new seed each time.
FUZZ_RUNS := cargo run --quiet --package narrows-sim --example narrows-fuzz-runs --

## The same for an hour, or as long as SECONDS says; what breaks an invariant is in target/fuzz-runs.
fuzz-runs:
	$(CLIPPY) $(FUZZ_RUNS) --seconds $(or $(SECONDS),3600)

# A program of its own for each parser. What it reads is safe Rust, checked for overflow, so that no sanitizer slows it.
FUZZ_TARGETS := $(sort $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs))))
FUZZ := PATH=$(CURDIR)/$(TOOLS):$$PATH $(OWN_JOBS) cargo +nightly fuzz
SANITIZER := --sanitizer none

## Bytes at random for every parser in Rust, an equal share of an hour or of SECONDS for each of TARGETS; prints how many were
## tried. What breaks one is in fuzz/artifacts.
fuzz: $(TOOLS)/cargo-fuzz
	@mkdir -p target; $(FUZZ) build $(SANITIZER) 2>target/fuzz-build.log || { cat target/fuzz-build.log; exit 1; }
	@share=$$(($(or $(SECONDS),3600) / $(words $(TARGETS)) + 1)); failed=; \
	for target in $(TARGETS); do \
		mkdir -p fuzz/corpus/$$target target/fuzz; \
		( $(FUZZ) run $(SANITIZER) $$target fuzz/corpus/$$target fuzz/seeds/$$target -- -max_total_time=$$share \
			-max_len=4096 -timeout=30 >target/fuzz/$$target.log 2>&1; code=$$?; times >target/fuzz/$$target.times; exit $$code ) || \
			{ failed="$$failed $$target"; tail -40 target/fuzz/$$target.log; }; \
		echo "$$target: $$(sed -n 's/^Done \(.*\)/\1/p' target/fuzz/$$target.log), processor $$(tail -1 target/fuzz/$$target.times)"; \
	done; [ -z "$$failed" ] || { echo "what broke$$failed is in fuzz/artifacts"; exit 1; }
TARGETS := $(FUZZ_TARGETS)

# Small files of fuzz/corpus that reach what all of them reach: the seeds that the repository has. Whoever adds a target calls it.
fuzz-seeds: $(TOOLS)/cargo-fuzz
	@for target in $(TARGETS); do $(PYTHON) fuzz/seeds.py $$target || exit 1; done

## Faults planted at random in controllers, TCP, queues and edges, one of fifty or as SHARD says: which no test of narrows-core
## notices is in target/mutants.out. Two hours of a processor.
mutants: $(TOOLS)/cargo-mutants
	$(OWN_JOBS) $(TOOLS)/cargo-mutants mutants --package narrows-core --output target --shard $(or $(SHARD),0/50) \
		--sharding round-robin $(foreach part,cc tcp queue edge,--file 'crates/narrows-core/src/$(part)/**') || { code=$$?; [ $$code = 2 ] || [ $$code = 3 ]; }

## Faults that real stacks had, planted one after another: which tests notice. An hour of two processors.
faults:
	@$(OWN_JOBS) $(PYTHON) faults/plant.py --write docs/explanation/planted-faults.md

python-lints: .venv/built
	$(BIN)/ruff check python experiments
	$(BIN)/ruff format --check python experiments
	$(BIN)/mypy

python-tests: .venv/built
	$(BIN)/pytest -r s --numprocesses=2 --dist=worksteal

page-tests: .venv/built
	$(BIN)/pytest -r s --numprocesses=2 --dist=worksteal -m page

system-tests: .venv/built $(if $(WITHOUT),,narrowsd-checked) system-tools docs
	$(if $(WITHOUT),,NARROWSD=$(CURDIR)/$(CHECKED)) $(BIN)/pytest -r s -m 'system and not live'

# A static narrowsd for guests, mostly of what the lints have compiled: in one minute instead of the five of `make narrowsd`, and
# sums that overflow are noticed. Before the tests, whose narrowsd is linked anew.
narrowsd-checked: | $(if $(filter lints,$(MAKECMDGOALS)),lints)
	@$(if $(WITHOUT),,$(CLIPPY) cargo rustc --quiet --package narrows-daemon --bin narrowsd -- \
		-C target-feature=+crt-static -C strip=symbols && cp target/debug/narrowsd $(CHECKED))
CHECKED := target/narrowsd-checked

## The packet scripts of narrows-core on the guest's kernel: which it plays as they are written. One minute; SCRIPTS are words of
## their paths.
kernel-scripts: system-tools | $(if $(filter lints,$(MAKECMDGOALS)),lints)
	@$(CLIPPY) cargo rustc --quiet --package narrows-testbed --example kernel-scripts -- -C target-feature=+crt-static
	@target/debug/examples/kernel-scripts $(SCRIPTS) || \
		{ [ $$? -eq 3 ] && echo 'packet scripts on a kernel are SKIPPED, for the reason above'; }

# What tests of alert rules and dashboard run. Unpacked, not installed: installing would start services.
PROMETHEUS := prometheus promtool prometheus-node-exporter
MONITORING = $(dir $(CACHE))monitoring

# The one job that installs packages while others run.
system-tools:
	@$(MAKE) --no-print-directory guest-kernel || echo 'there is no QEMU or no kernel for guests: the tests that compare with it are SKIPPED'
	$(call packages,chromium,command -v chromium) 2>&1 || \
		echo 'chromium cannot be installed here: the tests that open the report in a browser are SKIPPED'
	$(call packages,poppler-utils,command -v pdftotext) 2>&1 || \
		echo 'poppler-utils cannot be installed here: the text of a printed report is not read'
	@($(foreach tool,$(PROMETHEUS),{ command -v $(tool) || test -x $(MONITORING)/usr/bin/$(tool); } &&) true) >/dev/null || \
		crates/narrows-testbed/unpacked.sh $(MONITORING) prometheus prometheus-node-exporter 2>&1 || \
		echo 'prometheus cannot be had here: the tests of alert rules and dashboard are SKIPPED'

instruction-gate: .venv/built
	@$(BIN)/narrows bench --check bench/instructions.toml || { [ $$? -eq 3 ] && echo 'the gate on instructions is SKIPPED, for the reason above'; }

# What compiles; programs for the kernel need more, and who may not install it checks the rest. A cargo that finds the pinned
# toolchain missing installs it, and two at a time get in each other's way.
tools:
	@cargo --version >/dev/null
	$(call packages,clang libelf-dev zlib1g-dev pkg-config,command -v clang && pkg-config --exists libelf zlib) 2>&1 || \
		echo 'clang and libelf-dev cannot be installed here: what needs them is SKIPPED'
	$(call packages,valgrind,command -v valgrind) 2>&1 || true

## The controllers and the emulator on this machine's kernel, as root, then in the guest, and the truth table; what cannot run says why.
live-test:
	$(call packages,clang libelf-dev zlib1g-dev pkg-config,command -v clang && pkg-config --exists libelf zlib)
	cargo test --quiet --package narrows-kernel --test live
	cargo test --quiet --package narrows-daemon --test live
	cargo test --quiet --package narrows-testbed --test live
	@$(MAKE) --no-print-directory narrowsd guest-kernel .venv/built
	$(BIN)/pytest -r s -m live
	$(BIN)/narrows reproduce linux

## narrowsd, static: for hosts without the libraries that built it, and for guests. Only its own crate is told so; the others are
## those of the native module, after which it is therefore built.
narrowsd: | .venv/built
	$(call packages,clang libelf-dev zlib1g-dev pkg-config,command -v clang && pkg-config --exists libelf zlib)
	@echo 'compiling narrowsd: one to four minutes'
	@$(OWN_JOBS) cargo rustc --quiet --release --package narrows-daemon --bin narrowsd -- -C target-feature=+crt-static -C strip=symbols
	@cp target/release/narrowsd target/narrowsd

# The same for hosts with Arm processors, by Debian's cross compiler and its libraries of that kind.
AARCH64 := aarch64-unknown-linux-gnu
ARM_LIBRARIES := /usr/lib/aarch64-linux-gnu
narrowsd-aarch64: | .venv/built
	@test -e $(ARM_LIBRARIES)/libelf.a || dpkg --add-architecture arm64
	$(call packages,clang gcc-aarch64-linux-gnu libc6-dev-arm64-cross libelf-dev:arm64 zlib1g-dev:arm64,\
		command -v clang && command -v aarch64-linux-gnu-gcc && test -e $(ARM_LIBRARIES)/libelf.a)
	rustup --quiet target add $(AARCH64)
	@echo 'compiling narrowsd for aarch64: two to five minutes'
	@PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_LIBDIR=$(ARM_LIBRARIES)/pkgconfig \
		CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc $(OWN_JOBS) cargo rustc --quiet --release \
		--target $(AARCH64) --package narrows-daemon --bin narrowsd -- -C target-feature=+crt-static -C strip=symbols
	@cp target/$(AARCH64)/release/narrowsd target/narrowsd-aarch64

## target/packages: a .deb and an .rpm of narrowsd, with units, manual pages and completions; .rpm without Debian's tools.
packages: narrowsd $(TOOLS)/cargo-deb $(TOOLS)/cargo-generate-rpm
	$(call package_contents,narrowsd)
	rm -f target/packages/*
	$(TOOLS)/cargo-deb --quiet --no-build --no-strip --package narrows-daemon --output target/packages/
	$(TOOLS)/cargo-generate-rpm --package crates/narrows-daemon --output target/packages/
	@ls target/packages/*
## The same for aarch64 in target/packages-aarch64.
packages-aarch64: narrowsd narrowsd-aarch64 $(TOOLS)/cargo-deb $(TOOLS)/cargo-generate-rpm
	$(call package_contents,narrowsd-aarch64)
	rm -rf target/packages-aarch64
	mkdir target/packages-aarch64
	$(TOOLS)/cargo-deb --quiet --no-build --no-strip --package narrows-daemon --target $(AARCH64) --output target/packages-aarch64/
	$(TOOLS)/cargo-generate-rpm --package crates/narrows-daemon --arch aarch64 --output target/packages-aarch64/
	@ls target/packages-aarch64/*
## The .deb for aarch64 installed by dpkg, used and removed: controllers, a route, edge routers and the near-source loop on Debian's
## kernel for that processor, on a machine that QEMU emulates. Five minutes. The .rpm holds the same program.
check-aarch64: packages-aarch64
	$(call packages,rpm cpio,command -v rpm2cpio && command -v cpio)
	rpm2cpio target/packages-aarch64/narrowsd-*.rpm | cpio --quiet --extract --to-stdout '*usr/bin/narrowsd' | cmp - target/narrowsd-aarch64
	crates/narrows-testbed/check-narrowsd.sh target/packages-aarch64/narrowsd_*_arm64.deb arm64
# In packages the command is in /usr/bin, where units find it. This machine's writes the manuals.
define package_contents
rm -rf target/package
mkdir -p target/package/systemd target/packages
cp target/$(1) target/package/narrowsd
target/narrowsd manuals target/package
gzip --best --no-name target/package/man1/*.1
$(PYTHON) crates/narrows-daemon/packaging/pages.py target/package/doc
for unit in crates/narrows-daemon/packaging/systemd/*.service; do \
	sed 's|/usr/local/bin/narrowsd|/usr/bin/narrowsd|' "$$unit" > "target/package/systemd/$${unit##*/}"; done
endef

## Debian's cloud kernel for guests, unpacked into the cache, not installed; KERNEL=6.12 for another.
KERNEL := 6.1
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/narrows/guest
guest-kernel:
	$(call packages,qemu-system-x86 kmod xz-utils,command -v qemu-system-x86_64 && command -v depmod && command -v xz)
	crates/narrows-testbed/guest-kernel.sh $(KERNEL) $(CACHE)

## Cost per packet-hop, beside this machine's hold loop; and ns-3's, where libns3-dev is installed. As wheels are compiled.
bench: .venv/bin/maturin
	$(DEVELOP) --profile dist --extras dev
	rm -f .venv/built
	$(BIN)/narrows bench --wait 300 --threads 2 $(if $(wildcard /usr/include/ns3/core-module.h),--peers)

## What takes longer: fuzzing, licences, undefined behaviour, a cluster, the full experiments and their claims.
nightly: ci $(TOOLS)/cargo-fuzz $(TOOLS)/cargo-deny
	$(TOOLS)/cargo-deny --log-level error check licenses bans sources
	@$(MAKE) --no-print-directory fuzz SECONDS=$(or $(SECONDS),3900)
	NARROWS_FUZZ_EXAMPLES=1000 $(BIN)/pytest --numprocesses=2 python/tests/test_mutated.py
	PROPTEST_CASES=20000 cargo test --quiet --package narrows-daemon --bin narrowsd a_file_with_faults
	@if cargo +nightly miri --version >/dev/null 2>&1; \
		then PROPTEST_CASES=2 MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --package narrows-core --lib && \
			cargo +nightly miri test --package narrows-network --lib prefetch; \
		else echo 'miri is not installed for the nightly toolchain: skipped'; fi
	$(DEVELOP) --release --extras dev,ray
	$(BIN)/pytest -m ray
	NARROWS_NIGHTLY=1 $(BIN)/pytest -k 'how_to or guide or wheel or bench' -m 'not live'
	@$(MAKE) --no-print-directory narrowsd
	NARROWSD=$(CURDIR)/target/narrowsd $(BIN)/pytest -k test_guest -m 'system and not live'
	@$(MAKE) --no-print-directory packages
	$(call packages,rpm,command -v rpm)
	NARROWS_PACKAGES=$(CURDIR)/target/packages $(BIN)/pytest -k test_package -m system
	$(BIN)/narrows reproduce gemini
	@$(MAKE) --no-print-directory faults
	@$(MAKE) --no-print-directory check-aarch64

$(TOOLS)/cargo-%:
	cargo install --quiet --locked --root target/tools cargo-$*

## A wheel for any Python as of 3.11 on Linux with glibc 2.28, which zig links against, whatever this machine has.
wheel: target/wheel-tools/bin/maturin
	@echo 'compiling a wheel: three to ten minutes'
	@PATH=$(CURDIR)/$(<D):$$PATH $(OWN_JOBS) maturin build --quiet --profile dist --zig --compatibility manylinux_2_28 \
		--out target/wheels
	@ls -1t target/wheels/*.whl | head -1

## The wheel to publish: compiled along a profile of the benchmark's workloads, which saves 2 to 4 % of the instructions.
release-wheel: $(PROFILE)
	@$(MAKE) --no-print-directory wheel CARGO_TARGET_DIR=target/wheel \
		RUSTFLAGS=-Cprofile-use=$(CURDIR)/$(PROFILE)

# Zig cannot link what counts, so that this machine's linker does. Functions have equal names only if cargo is told the target in
# both cases, as maturin does for zig.
$(PROFILE): target/wheel-tools/bin/maturin bench/train.py $(RUST) .venv/built
	@echo 'compiling a module that counts what is hot: three to ten minutes'
	@rm -rf $(@D)
	@rustup --quiet component add llvm-tools
	@RUSTFLAGS=-Cprofile-generate=$(CURDIR)/$(@D)/counts CARGO_TARGET_DIR=target/wheel $(OWN_JOBS) $< build --quiet \
		--profile dist --target $(TRIPLE) --compatibility linux --out $(@D)
	@$(PYTHON) -m zipfile -e $(@D)/*.whl $(@D)/module
	@PYTHONPATH=$(CURDIR)/$(@D)/module $(BIN)/python bench/train.py
	@$$(rustc --print sysroot)/lib/rustlib/$(TRIPLE)/bin/llvm-profdata merge --output $@ $(@D)/counts
TRIPLE = $(shell rustc -vV | sed -n 's/^host: //p')

target/wheel-tools/bin/maturin:
	$(PYTHON) -m venv target/wheel-tools
	target/wheel-tools/bin/pip install --quiet --disable-pip-version-check 'maturin[zig]>=1.16,<2'
	touch $@

## The documentation as a site in target/site, which needs no server and fetches nothing; every link is checked.
docs: target/docs-tools/bin/mkdocs
	@NO_MKDOCS_2_WARNING=1 $< build --strict --quiet
	@echo target/site/index.html

target/docs-tools/bin/mkdocs: pyproject.toml
	$(PYTHON) -m venv target/docs-tools
	target/docs-tools/bin/pip install --quiet --disable-pip-version-check $$($(PYTHON) -c 'import tomllib; \
		print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
	touch $@

clean:
	rm -rf target fuzz/target fuzz/corpus .venv runs

.venv/bin/maturin: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check 'maturin>=1.16,<2'
	touch $@

.venv/built: .venv/bin/maturin pyproject.toml $(RUST)
	@echo 'compiling: some minutes'
	$(DEVELOP) --release --extras dev
	touch $@

DEVELOP := PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 $(OWN_JOBS) $(BIN)/maturin develop --quiet

## The native module anew after an edit, optimised less and compiled in pieces: for whoever tries a controller.
fast: .venv/bin/maturin
	@echo 'compiling: two minutes the first time, then less than half of one'
	@test -e .venv/built -o -e .venv/fast || $(DEVELOP) --profile fast --extras dev
	@$(OWN_JOBS) cargo build --quiet --profile fast --package narrows-python --features pyo3/extension-module
	@cp --remove-destination target/fast/lib_native.so python/narrows/_native.abi3.so
	@rm -f .venv/built && touch .venv/fast
