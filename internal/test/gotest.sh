#!/usr/bin/env bash
# Runs go test. A package that fails runs a second time, alone, with the same order of
# tests. A test that then passes is printed as
#
#	FLAKY package test seed
#
# Fix its cause. The exit status is that of the last runs.
#
# usage: gotest.sh [flag of go test]... package...
set -uo pipefail
flags=()
while [ $# -gt 0 ] && [[ $1 == -* ]]; do flags+=("$1"); shift; done

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
go test "${flags[@]}" "$@" 2>&1 | tee "$log" | grep --line-buffered -v '\[no test files\]$'
[ "${PIPESTATUS[0]}" = 0 ] && exit 0

# Each line: package, seed, its failed tests joined by commas.
failed="$(awk '
	/^-test.shuffle / { seed = $2 }
	/^--- FAIL: / { tests = tests (tests == "" ? "" : ",") $3 }
	/^(FAIL|ok)\t/ { if ($1 == "FAIL") print $2, (seed == "" ? "off" : seed), (tests == "" ? "-" : tests); seed = tests = "" }
' "$log")"
if [ -z "$failed" ] || [ "$(echo "$failed" | wc -l)" -gt 5 ] || grep -q '\[\(build\|setup\) failed\]' "$log"; then
	exit 1
fi
status=0
while read -r package seed tests; do
	echo "again, alone: $package"
	if go test "${flags[@]}" -shuffle="$seed" "$package"; then
		echo "FLAKY $package $tests $seed"
	else
		status=1
	fi
done <<<"$failed"
exit $status
