#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright The Tulle Authors
#
# Packages the charts of deploy/charts into dist/charts, which is then a Helm repository: any web server will do for it, or a path to the archives.
# HELM names the helm to use; the one in the PATH otherwise, else the lab's.
set -eu
cd "$(dirname "$0")/.."

helm=${HELM:-$(command -v helm || true)}
if [ -z "$helm" ]; then
	for built in "${XDG_CACHE_HOME:-$HOME/.cache}"/tulle/lab/tools/helm/*/helm; do
		[ -x "$built" ] && helm=$built
	done
fi
if [ -z "$helm" ]; then
	echo "missing: helm: see https://helm.sh/docs/intro/install/, or build the lab's with 'make lab'" >&2
	exit 1
fi

out=dist/charts
mkdir -p "$out"
rm -f "$out"/*.tgz "$out"/index.yaml
for chart in deploy/charts/*/; do
	"$helm" lint --quiet "$chart"
	"$helm" package --destination "$out" "$chart"
done
"$helm" repo index "$out"
echo "a Helm repository: $out (for instance: python3 -m http.server -d $out 8879, then helm repo add eks http://127.0.0.1:8879)"
