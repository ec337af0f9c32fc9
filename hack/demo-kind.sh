#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright The Tulle Authors
#
# Runs App Mesh's DJ app on a Kubernetes of its own, with Docker and kind: images, charts, the app, then the answers through the mesh.
# KEEP=1 leaves the cluster when it is done. CLUSTER names it.
set -eu
cd "$(dirname "$0")/.."

cluster=${CLUSTER:-tulle-demo}
version=v1.20.0
missing=0
need() { # command, where it comes from
	command -v "$1" >/dev/null 2>&1 && return
	echo "missing: $1: see $2" >&2
	missing=1
}
need docker https://docs.docker.com/engine/install/
need kind https://kind.sigs.k8s.io/docs/user/quick-start/#installation
need kubectl https://kubernetes.io/docs/tasks/tools/
need helm https://helm.sh/docs/intro/install/
[ "$missing" = 0 ] || exit 1
docker info >/dev/null 2>&1 || {
	echo "docker is installed and does not answer: start its daemon, or join the group docker" >&2
	exit 1
}
if kind get clusters 2>/dev/null | grep -qx "$cluster"; then
	echo "a kind cluster named $cluster exists already: 'kind delete cluster --name $cluster', or name another with CLUSTER" >&2
	exit 1
fi

say() { echo "=== $*"; }

# The cluster's credentials stay in a file of this run's own: nobody's current context changes.
work=$(mktemp -d)
export KUBECONFIG="$work/kubeconfig"
finish() {
	if [ "${KEEP:-0}" = 1 ]; then
		echo "the cluster stays: export KUBECONFIG=$KUBECONFIG; take it down with 'kind delete cluster --name $cluster'"
	else
		kind delete cluster --name "$cluster" >/dev/null 2>&1 || true
		rm -rf "$work"
	fi
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

say "images"
docker build -q --build-arg VERSION=$version -t ghcr.io/tulle-mesh/tulle:$version .
docker build -q -f Dockerfile.agent --build-arg VERSION=$version -t ghcr.io/tulle-mesh/tulle-agent:$version .
# The DJ app's own image is no longer to be had; this one answers as it did.
app=672518094988.dkr.ecr.us-west-2.amazonaws.com/hello-world:v1.0
docker build -q -f hack/lab/hello/Dockerfile -t $app .

say "cluster"
kind create cluster --name "$cluster" --wait 120s
kind load docker-image --name "$cluster" ghcr.io/tulle-mesh/tulle:$version ghcr.io/tulle-mesh/tulle-agent:$version $app

say "charts"
kubectl create namespace appmesh-system
helm upgrade -i appmesh-controller deploy/charts/appmesh-controller --namespace appmesh-system
kubectl -n appmesh-system get deploy,pods,service

say "the DJ app"
# Its files pull always, which would ask a registry that does not have the image.
for file in examples/djapp-v1beta2/01-base_app.yaml examples/djapp-v1beta2/02-meshed_app.yaml; do
	sed 's/imagePullPolicy: Always/imagePullPolicy: IfNotPresent/' "$file" | kubectl apply -f -
done
kubectl -n prod rollout restart deployment dj jazz-v1 metal-v1
for deployment in dj jazz-v1 metal-v1; do
	kubectl -n prod rollout status "deployment/$deployment" --timeout 180s
done
kubectl -n prod get pods

say "answers through the mesh"
for name in jazz metal; do
	kubectl -n prod exec deploy/dj -c dj -- curl -s --max-time 10 --retry 10 --retry-all-errors "http://$name.prod.svc.cluster.local:9080/"
	echo
done
