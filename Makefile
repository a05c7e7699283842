# SPDX-License-Identifier: Apache-2.0
# What people type. The work is meson's (build/) and tools/'s.

.PHONY: all test format check-format tidy lint bench install clean

all:
	@tools/install-packages build
	@tools/build all

# Packages, both builds, every suite as root and as an ordinary user; ends with the sum.
test:
	@tools/install-packages build test
	@tools/run-tests

format:
	@tools/format

check-format:
	@tools/format --check

# With the analyzer: minutes. make test runs the quick part.
tidy:
	@tools/install-packages build test
	@tools/build-asan
	@tools/tidy

lint:
	@tools/lint

# Numbers next to peers; never part of a test.
bench: all
	@for bench in bench/*/run; do [ ! -x "$$bench" ] || "$$bench" || exit; done
	@ninja -C build bench/govern bench/inprocess bench/kept bench/snapshots >build/bench.log
	@build/bench/govern
	@build/bench/inprocess build
	@build/bench/kept -i 100 build
	@build/bench/snapshots build

# Also as helm, unless another program of that name is there.
install: all
	meson install -C build --no-rebuild

clean:
	rm -rf build build-asan
