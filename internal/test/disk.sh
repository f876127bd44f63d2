#!/bin/sh
# Prints how much space is free in the build cache of Go and in the directory of temporary
# files, if it is less than GB gigabytes. It fails only if the directories are unreadable.
#
# usage: disk.sh GB
set -eu
for dir in "$(go env GOCACHE)" "${TMPDIR:-/tmp}"; do
	mkdir -p "$dir"
	free=$(($(df -Pk "$dir" | awk 'NR == 2 { print $4 }') / 1048576))
	[ "$free" -ge "$1" ] || echo "disk.sh: $free GB are free for $dir, and make check may need $1: \"go clean -cache\" empties the build cache" >&2
done
