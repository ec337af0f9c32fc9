// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// state is what of the charts is in the cluster.
type state struct {
	mu sync.Mutex
	// values are those that the controller's chart was installed with; nil where it is not.
	values []string
}

// cluster is the one that all tests share.
var cluster state

// install is the walkthroughs' way to install the controller; further words are for Helm's command line.
const install = `helm upgrade -i appmesh-controller eks/appmesh-controller --namespace appmesh-system --set region=us-west-2 --set accountId=111122223333 `

// installed returns when the controller is there with these words for Helm ("--set log.level=debug"), whatever was there before. Parallel tests must all ask for the same.
func installed(t *testing.T, values ...string) {
	t.Helper()
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	if cluster.values != nil && slices.Equal(cluster.values, append([]string{""}, values...)) {
		return
	}
	s := terminal(t, ".")
	s.run("helm repo add eks " + here.charts + " --force-update")
	s.run("kubectl create ns appmesh-system --dry-run=client -o yaml | kubectl apply -f -")
	cluster.values = nil
	s.run(install + strings.Join(values, " "))
	s.run("kubectl -n appmesh-system rollout status deployment appmesh-controller --timeout=120s")
	cluster.values = append([]string{""}, values...)
}

// absent returns when nothing of the charts is there, and none of the definitions.
func absent(t *testing.T) {
	t.Helper()
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	cluster.values = nil
	s := terminal(t, ".")
	s.run("kubectl delete ns prod --ignore-not-found --timeout=120s")
	s.run("for r in $(helm -n appmesh-system list -q); do helm -n appmesh-system uninstall $r --wait; done")
	s.run("kubectl get crd -o name | { grep appmesh.k8s.aws || true; } | xargs -r kubectl delete --timeout=60s")
	s.run("kubectl delete ns appmesh-system --ignore-not-found --timeout=120s")
}

// touched says that the test itself installs or uninstalls the charts: whoever comes next cannot rely on what was there. The cluster's whole state is kept where the test fails.
func touched(t *testing.T) {
	t.Helper()
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	cluster.values = nil
	t.Cleanup(func() { dump(t) })
}

// applied applies manifests, which are paths in the repository or text, and takes away what they made when the test is over, waiting until namespaces are gone.
func (s *shell) applied(manifests ...string) {
	s.t.Helper()
	var all []string
	for _, m := range manifests {
		text := m
		if !strings.Contains(m, "\n") {
			content, err := os.ReadFile(filepath.Join(here.root, m))
			if err != nil {
				s.t.Fatal(err)
			}
			text = string(content)
		}
		all = append(all, text)
	}
	text := strings.Join(all, "\n---\n")
	s.t.Cleanup(func() {
		dump(s.t, namespacesIn(text)...)
		after := &shell{t: s.t, dir: s.dir, exports: s.exports}
		after.cleanUp(text)
	})
	s.run("kubectl apply -f -", text)
}

// cleanUp deletes what a manifest made. The context of a test is over by then.
func (s *shell) cleanUp(text string) {
	s.t.Helper()
	if out, err := afterwards(s.dir, "kubectl delete --ignore-not-found --timeout=120s -f -", text); err != nil {
		s.t.Errorf("cleaning up: %v: %s", err, out)
	}
}

// namespacesIn are the namespaces that a manifest speaks of.
func namespacesIn(text string) []string {
	var names []string
	for _, match := range regexp.MustCompile(`namespace: *"?([a-z0-9-]+)`).FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// podsReady waits until a namespace has exactly these pods and all are ready with so many containers ("2/2"). Pods that are on their way out do not count.
func (s *shell) podsReady(namespace, selector, ready string, count int) {
	s.t.Helper()
	eventually(s.t, 2*time.Minute, func() error {
		text, err := s.try("kubectl -n " + namespace + " get pods -l '" + selector + "' --no-headers")
		if err != nil {
			return err
		}
		fine := 0
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			if len(words) > 2 && words[1] == ready && words[2] == "Running" {
				fine++
			}
		}
		if lines := strings.Count(text+"\n", "\n"); fine != count || lines != count {
			return fmt.Errorf("want %d pods at %s:\n%s", count, ready, text)
		}
		return nil
	})
}

// condition waits until an object's condition has the status and, where one is given, the reason. It returns the condition's message.
func (s *shell) condition(object, namespace, condition, status, reason string) string {
	s.t.Helper()
	var message string
	eventually(s.t, time.Minute, func() error {
		text, err := s.try("kubectl -n " + namespace + " get " + object + " -o json")
		if err != nil {
			return err
		}
		var held struct {
			Metadata struct{ Generation int64 }
			Status   struct {
				Conditions []struct {
					Type, Status, Reason, Message string
					ObservedGeneration            int64
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &held); err != nil {
			return err
		}
		for _, c := range held.Status.Conditions {
			if c.Type == condition && c.Status == status && (reason == "" || c.Reason == reason) && c.ObservedGeneration == held.Metadata.Generation {
				message = c.Message
				return nil
			}
		}
		return fmt.Errorf("%s in %s: want %s=%s (%s) at generation %d: %+v", object, namespace, condition, status, reason, held.Metadata.Generation, held.Status.Conditions)
	})
	return message
}
