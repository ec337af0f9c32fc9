// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// afterwards runs a line when the test's own context is over.
func afterwards(dir, line, input string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// dump keeps, if the test failed, what the cluster holds: pods, events, objects, the controller's log, and the logs and configuration of Envoys in the namespaces.
func dump(t *testing.T, namespaces ...string) {
	t.Helper()
	if !t.Failed() {
		return
	}
	folder := filepath.Join(here.out, strings.ReplaceAll(t.Name(), "/", "_"))
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Log(err)
		return
	}
	if len(namespaces) == 0 {
		namespaces = []string{"prod"}
	}
	for name, line := range map[string]string{
		"pods.txt":       "kubectl get pods -A -o wide",
		"pods.yaml":      "for n in " + strings.Join(namespaces, " ") + "; do kubectl -n $n get pods -o yaml; done",
		"events.txt":     "kubectl get events -A --sort-by=.lastTimestamp | tail -400",
		"objects.yaml":   "kubectl get meshes,virtualnodes,virtualservices,virtualrouters,virtualgateways,gatewayroutes -A -o yaml",
		"controller.log": "kubectl -n appmesh-system logs -l app.kubernetes.io/name=appmesh-controller --tail=-1 --prefix",
		"previous.log":   "kubectl -n appmesh-system logs -l app.kubernetes.io/name=appmesh-controller --tail=-1 --prefix --previous",
		"injector.log":   "kubectl -n appmesh-system logs -l app.kubernetes.io/name=appmesh-inject --tail=-1 --prefix",
		"envoys.log":     "for n in " + strings.Join(namespaces, " ") + `; do for p in $(kubectl -n $n get pods -o name); do echo "=== $n $p"; kubectl -n $n logs $p -c envoy --tail=300; done; done`,
		"config.json":    "for n in " + strings.Join(namespaces, " ") + `; do for p in $(kubectl -n $n get pods -o name); do echo "=== $n $p"; timeout 10 kubectl -n $n exec $p -c envoy -- curl -s localhost:9901/config_dump?include_eds; done; done`,
	} {
		out, err := afterwards(here.root, line, "")
		if err != nil {
			out += "\n" + err.Error() + "\n"
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(out), 0o600); err != nil {
			t.Log(err)
		}
	}
	t.Logf("what the cluster held is in %s (%s)", folder, time.Now().UTC().Format(time.TimeOnly)) //nolint:forbidigo // to find it in logs
}
