#!/usr/bin/env bash
# Compares the API of the stable packages with that of the last tag. An incompatible change
# fails from v1.0.0 on; before, it is printed. Without a tag there is nothing to compare:
# internal/test/api has the API as a golden file.
#
# usage: apidiff.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
root="$PWD"
tag="$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null)" || { echo "apidiff: there is no tag to compare with"; exit 0; }
dir="$(mktemp -d)"
trap 'git -C "$root" worktree remove --force "$dir/old" 2>/dev/null || true; rm -rf "$dir"' EXIT
git worktree add --quiet --detach "$dir/old" "$tag"
go build -modfile="$root/internal/tools/go.mod" -o "$dir/apidiff" golang.org/x/exp/cmd/apidiff
broken=
while read -r package; do
	folder="$dir/old/${package#github.com/rolecall/rolecall}"
	compgen -G "$folder/*.go" >/dev/null || continue # the package is new
	(cd "$dir/old" && "$dir/apidiff" -w "$dir/export" "$package")
	changes="$("$dir/apidiff" -incompatible "$dir/export" "$package")"
	[ -z "$changes" ] || { broken=1; printf '%s since %s:\n%s\n' "$package" "$tag" "$changes"; }
done < <(sed -n 's/^package //p' internal/test/api/testdata/api.txt)
[ -z "$broken" ] || [[ "$tag" == v0.* ]]
