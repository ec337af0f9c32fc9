// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e && measure

package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The measurements say how long things take and how much they need; nothing fails for being slow. "make e2e-measure" prints a table of them.

// An api is the API server as "kubectl proxy" offers it: without a client to start for each request.
type api struct {
	t      *testing.T
	base   string
	client *http.Client
}

// apiServer starts a proxy to the API server that ends with the test.
func apiServer(t *testing.T) *api {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl", "proxy", "--port=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &api{t: t, client: new(http.Client), base: "http://" + line[strings.LastIndex(line, " ")+1:len(line)-1]}
}

// do makes a request that must be answered with success.
func (a *api) do(method, path, content, body string) *http.Response {
	a.t.Helper()
	request, err := http.NewRequestWithContext(a.t.Context(), method, a.base+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	request.Header.Set("Content-Type", content)
	answer, err := a.client.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	if answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(answer.Body)
		a.t.Fatalf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	return answer
}

// text is what a path gives.
func (a *api) text(path string) string {
	a.t.Helper()
	answer := a.do(http.MethodGet, path, "", "")
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(body)
}

// number is a value on a page of metrics, whose name and labels the expression matches.
func (a *api) number(path, name string) float64 {
	a.t.Helper()
	match := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(a.text(path))
	if match == nil {
		a.t.Fatalf("%s has no %s", path, name)
	}
	n, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

// spread says the middle and the ends of a list of times.
func spread(times []time.Duration) string {
	slices.Sort(times)
	at := func(share float64) time.Duration {
		return times[min(len(times)-1, int(share*float64(len(times))))].Round(time.Millisecond)
	}
	return fmt.Sprintf("p50 %s, p99 %s (of %d, from %s to %s)", at(0.5), at(0.99), len(times), at(0), at(1))
}

// row prints a line of the table.
func row(t *testing.T, what, format string, args ...any) {
	t.Helper()
	tell(t, "| %s | %s |", what, fmt.Sprintf(format, args...))
}

// changesMeasured is how often a weight is changed.
const changesMeasured = 100

// TestMeasureFromApplyToAck changes a weight with kubectl, and over a connection that is kept, and reads from Envoy when it took the new route.
func TestMeasureFromApplyToAck(t *testing.T) {
	s := shop(t, "swift", replace(shopMesh, "{virtualServiceRef: {name: api}}", "{virtualServiceRef: {name: split}}"), shopService, shopApps, replace(swiftRouter, "WEIGHT", "99"))
	s.podsReady("swift", "app=web", "2/2", 1)
	s.soon(`kubectl -n $NS exec deploy/web -c app -- curl -s -m 10 -w ' %{http_code}' http://split.$NS.svc.cluster.local:8080/`, "api 200")
	a := apiServer(t)
	pod := s.run("kubectl -n swift get pods -l app=web -o jsonpath='{.items[0].metadata.name}'").text
	stats := "/api/v1/namespaces/swift/pods/" + pod + ":9901/proxy/stats/prometheus"
	const labels = `\{[^}]*rds_egress[^}]*\}`
	// taken is when Envoy took the last route, by the clock that this machine and its pods share.
	taken := func(before float64) time.Time {
		for a.number(stats, "envoy_http_rds_update_success"+labels) == before {
			time.Sleep(2 * time.Millisecond) // what is looked for happens any moment
		}
		return time.UnixMilli(int64(a.number(stats, "envoy_http_rds_update_time"+labels)))
	}
	var fromApply, kubectl, fromWrite []time.Duration
	for n := range changesMeasured {
		before := a.number(stats, "envoy_http_rds_update_success"+labels)
		began := now()
		s.run("kubectl apply -f -", in("swift", replace(swiftRouter, "WEIGHT", fmt.Sprint(1+n%98))))
		kubectl = append(kubectl, now().Sub(began))
		fromApply = append(fromApply, taken(before).Sub(began))

		before = a.number(stats, "envoy_http_rds_update_success"+labels)
		began = now()
		answer := a.do(http.MethodPatch, "/apis/appmesh.k8s.aws/v1beta2/namespaces/swift/virtualrouters/split", "application/json-patch+json",
			`[{"op": "replace", "path": "/spec/routes/0/httpRoute/action/weightedTargets/0/weight", "value": 99}]`)
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		fromWrite = append(fromWrite, taken(before).Sub(began))
	}
	row(t, "from `kubectl apply` of a weight, typed, to Envoy's ack", "%s", spread(fromApply))
	row(t, "of which `kubectl apply` itself", "%s", spread(kubectl))
	row(t, "from a write of a weight over a kept connection to Envoy's ack", "%s", spread(fromWrite))
}

// swiftRouter is a service whose weights are changed: api twice, by two nodes.
const swiftRouter = `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: other, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: api}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: api.SHOP.svc.cluster.local}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualRouter
metadata: {name: split, namespace: SHOP}
spec:
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  routes:
    - name: all
      httpRoute:
        match: {prefix: /}
        action: {weightedTargets: [{virtualNodeRef: {name: api}, weight: WEIGHT}, {virtualNodeRef: {name: other}, weight: 1}]}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: split, namespace: SHOP}
spec:
  awsName: split.SHOP.svc.cluster.local
  provider: {virtualRouter: {virtualRouterRef: {name: split}}}
---
apiVersion: v1
kind: Service
metadata: {name: split, namespace: SHOP}
spec: {selector: {app: api}, ports: [{port: 8080}]}
`

// podsMeasured is how many pods of each sort are started.
const podsMeasured = 10

// TestMeasureWhatInjectionAddsToAPodsStart starts pods without a proxy, with a native sidecar and with a classic one, in turn, until they are ready.
func TestMeasureWhatInjectionAddsToAPodsStart(t *testing.T) {
	s := shop(t, "start", shopMesh, shopService)
	s.condition("virtualnode/api", "start", "Programmed", "True", "")
	a := apiServer(t)
	times := map[string][]time.Duration{}
	sorts := []struct{ name, annotation string }{
		{"plain", "appmesh.k8s.aws/sidecarInjectorWebhook: disabled"}, {"native", "appmesh.k8s.aws/sidecarMode: native"}, {"classic", "appmesh.k8s.aws/sidecarMode: classic"},
	}
	for n := range podsMeasured + 1 {
		for _, sort := range sorts {
			took := a.started("start", fmt.Sprintf("%s-%d", sort.name, n), sort.annotation)
			if n > 0 { // the first of each warms up the node
				times[sort.name] = append(times[sort.name], took)
			}
		}
	}
	for _, sort := range sorts {
		row(t, "from the creation of a pod to its readiness: "+sort.name, "%s", spread(times[sort.name]))
	}
}

// started makes a pod, and says how long it took to be ready.
func (a *api) started(namespace, name, annotation string) time.Duration {
	a.t.Helper()
	path := "/api/v1/namespaces/" + namespace + "/pods"
	began := now()
	_ = a.do(http.MethodPost, path, "application/yaml", fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: api}, annotations: {%s}}
spec: {terminationGracePeriodSeconds: 1, containers: [{name: app, image: "tulle-e2e/color:v1"}]}
`, name, annotation)).Body.Close()
	watch := a.do(http.MethodGet, path+"?watch=1&timeoutSeconds=180&fieldSelector=metadata.name="+name, "", "")
	defer func() { _ = watch.Body.Close() }()
	for decoder := json.NewDecoder(watch.Body); ; {
		var event struct {
			Object struct {
				Status struct {
					Conditions []struct{ Type, Status string }
				}
			}
		}
		if err := decoder.Decode(&event); err != nil {
			a.t.Fatalf("pod %s is not ready: %v", name, err)
		}
		for _, c := range event.Object.Status.Conditions {
			if c.Type == "Ready" && c.Status == "True" {
				took := now().Sub(began)
				_ = a.do(http.MethodDelete, path+"/"+name, "application/json", "").Body.Close()
				return took
			}
		}
	}
}
