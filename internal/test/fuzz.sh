#!/usr/bin/env bash
# Runs fuzz targets, each for TIME. With a number it runs that many targets, chosen by
# a seed that it prints; ROLECALL_TEST_SEED repeats the choice.
#
# The fuzzing engine may end a successful run with "context deadline exceeded". Such a
# run is repeated once.
#
# usage: fuzz.sh TIME [all|NUMBER]
set -euo pipefail
time="$1" number="${2:-all}"

targets="$(go test -list '^Fuzz' ./... | awk '
	/^Fuzz/ { names = names " " $1 }
	/^ok/ { n = split(names, list, " "); for (i = 1; i <= n; i++) print $2, list[i]; names = "" }')"
if [ "$number" != all ]; then
	seed="${ROLECALL_TEST_SEED:-$(date +%s)}"
	echo "fuzz: $number of $(echo "$targets" | wc -l) targets; ROLECALL_TEST_SEED=$seed repeats the choice"
	targets="$(echo "$targets" | shuf -n "$number" --random-source=<(yes "$seed") | sort)"
fi

try() { out="$(go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 10x "$1" 2>&1)"; }
timed_out() { echo "$out" | grep -q 'context deadline exceeded' && ! echo "$out" | grep -q 'Failing input'; }
while read -r package target; do
	echo "fuzz $package $target"
	try "$package" "$target" || { timed_out && try "$package" "$target"; } || { echo "$out"; exit 1; }
done <<<"$targets"
