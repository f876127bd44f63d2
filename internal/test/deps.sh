#!/bin/sh
# Installs the programs that the tests of make check start: PostgreSQL, MariaDB,
# RabbitMQ, Chromium, mkfs.xfs, strace, ip, curl and promtool from the distribution, and the npm packages that
# internal/test/e2e/package-lock.json pins (660 MB; package scripts do not run), and the Python
# packages of openai/requirements.txt (40 MB), toolbox/requirements.txt (60 MB) and
# trustgraph/requirements.txt (100 MB) in
# internal/test/e2e. It is safe to run again, and prints nothing if everything is installed.
set -eu
cd "$(dirname "$0")"
missing=""
need() { command -v "$1" >/dev/null || missing="$missing $2"; }
[ -n "$(ls /usr/lib/postgresql/*/bin/postgres 2>/dev/null)" ] || missing=" postgresql"
need mariadbd mariadb-server
[ -e /usr/lib/rabbitmq/bin/rabbitmq-server ] || missing="$missing rabbitmq-server"
need chromium chromium
need mkfs.xfs xfsprogs
need strace strace
need ip iproute2
need curl curl
need promtool prometheus
python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
if [ -n "$missing" ]; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "deps.sh: install these packages, or run this as root on Debian:$missing" >&2
		exit 1
	fi
	echo "deps.sh: installing$missing" >&2
	# Tests create their own clusters, so the package must not create one.
	[ -e /etc/postgresql-common/createcluster.conf ] || {
		mkdir -p /etc/postgresql-common && echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
	}
	get() { DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -qq "$@" >/dev/null 2>&1; }
	# shellcheck disable=SC2086
	get install -y --no-install-recommends $missing || { get update && get install -y --no-install-recommends $missing; } || {
		echo "deps.sh: apt-get could not install$missing" >&2
		exit 1
	}
fi
[ e2e/node_modules/.package-lock.json -nt e2e/package-lock.json ] || {
	echo "deps.sh: installing the npm packages of internal/test/e2e" >&2
	(cd e2e && npm ci --ignore-scripts --loglevel=error --no-audit --no-fund >/dev/null)
	touch e2e/node_modules/.package-lock.json
}
python() {
	[ e2e/$1/.venv/ready -nt e2e/$1/requirements.txt ] || {
		echo "deps.sh: installing the Python packages of internal/test/e2e/$1" >&2
		rm -rf e2e/$1/.venv
		python3 -m venv e2e/$1/.venv
		e2e/$1/.venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r e2e/$1/requirements.txt
		touch e2e/$1/.venv/ready
	}
}
python openai
python trustgraph
python toolbox
