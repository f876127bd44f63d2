#!/bin/sh
# Installs what ext4_test.go needs and a machine may lack: mkfs.xfs. It may be
# run again, says nothing when there is nothing to do, and never fails: without
# it the test says why it was skipped. CI and make soak run it.
command -v mkfs.xfs >/dev/null && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0
echo "deps.sh: installing xfsprogs" >&2
get() { DEBIAN_FRONTEND=noninteractive timeout 120 apt-get -qq "$@" >/dev/null 2>&1; }
get install -y --no-install-recommends xfsprogs || { get update && get install -y --no-install-recommends xfsprogs; } ||
	echo "deps.sh: xfsprogs could not be installed; the test on ext4 will be skipped" >&2
exit 0
