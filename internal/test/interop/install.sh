#!/usr/bin/env bash
# Installs the packages of requirements-2.7.txt and requirements-2.11.txt, each into a virtual
# environment of its own (180 MB together).
set -euo pipefail
cd "$(dirname "$0")"
for version in 2.7 2.11; do
	rm -rf ".venv-$version"
	python3 -m venv ".venv-$version"
	".venv-$version/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "requirements-$version.txt"
	touch ".venv-$version/ready"
done
