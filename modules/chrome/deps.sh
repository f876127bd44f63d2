#!/bin/sh
# Installs the browser that the tests here need and a machine may lack. It may
# be run again, says nothing when there is nothing to do, and never fails:
# without it the tests say why they were skipped. CI and make test run it.
command -v chromium >/dev/null && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0
echo "deps.sh: installing chromium" >&2
get() { DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -qq "$@" >/dev/null 2>&1; }
get install -y --no-install-recommends chromium || { get update && get install -y --no-install-recommends chromium; } ||
	echo "deps.sh: chromium could not be installed; the tests with a browser will be skipped" >&2
exit 0
