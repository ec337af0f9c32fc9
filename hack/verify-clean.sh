#!/bin/sh
# Fails when the working tree holds a change or a file that git does not know: what was generated or formatted must be committed.
set -eu
changed=$(git status --porcelain)
[ -z "$changed" ] && exit 0
echo "these files differ from what is committed; run 'make verify' and commit the result:" >&2
echo "$changed" >&2
git --no-pager diff >&2
exit 1
