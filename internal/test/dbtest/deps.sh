#!/bin/sh
# Installs the database servers that tests start, where they are missing:
# PostgreSQL and MariaDB of the distribution. It may be run again, says nothing
# when there is nothing to do, and never fails: without a server its tests say
# why they were skipped. CI runs it.
have() { [ -n "$(ls /usr/lib/postgresql/*/bin/postgres 2>/dev/null)" ] && command -v mariadbd mariadb-install-db >/dev/null; }
have && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0
echo "deps.sh: installing postgresql and mariadb-server" >&2
# Tests make clusters of their own; the package is not to make one.
[ -e /etc/postgresql-common/createcluster.conf ] || {
	mkdir -p /etc/postgresql-common && echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf
}
get() { DEBIAN_FRONTEND=noninteractive timeout 300 apt-get -qq "$@" >/dev/null 2>&1; }
packages="postgresql mariadb-server"
get install -y --no-install-recommends $packages || { get update && get install -y --no-install-recommends $packages; } ||
	echo "deps.sh: $packages could not be installed; the tests on them will be skipped" >&2
exit 0
