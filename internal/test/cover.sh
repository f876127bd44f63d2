#!/usr/bin/env bash
# Lists the statements of packages that their own tests do not reach, and fails if
# there are any.
#
# usage: cover.sh package...
set -euo pipefail
profile="$(mktemp)"
trap 'rm -f "$profile"' EXIT
go test -short -coverprofile="$profile" "$@"
missed="$(awk '/ 0$/ { sub(/\.[0-9]+,.*/, "", $1); print "no test reaches " $1 }' "$profile")"
[ -z "$missed" ] || { echo "$missed"; exit 1; }
