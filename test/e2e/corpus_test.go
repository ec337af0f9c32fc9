// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// corpus is the folder of AWS's public examples.
const corpus = "test/compat/testdata/corpus/"

// visitor is a pod without a sidecar, as the walkthroughs start one to curl from.
const visitor = `
apiVersion: v1
kind: Pod
metadata: {name: curler, namespace: default, labels: {app: curler}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: curler, image: "tulle-e2e/client:v1"}]
`

// example applies the base of a walkthrough and waits for its pods, of which there are so many with a sidecar.
func example(t *testing.T, name string, pods int) *shell {
	t.Helper()
	installed(t)
	s := terminal(t, corpus+name)
	s.run("kubectl apply -f - && kubectl -n default wait --for=condition=Ready pod/curler --timeout=60s", visitor)
	s.applied(corpus + name + "/01-manifest.yaml")
	namespace := strings.TrimPrefix(name, "v1beta1/")
	s.run("export NS=" + namespace)
	s.podsReady(namespace, "", "2/2", pods)
	return s
}

// visit curls from the pod without a sidecar; the words are curl's, and $NS is the example's namespace.
func (s *shell) visit(words string) (string, error) {
	s.t.Helper()
	return s.try("kubectl -n default exec curler -- curl -s -m 60 " + words)
}

// answers waits until a visit gets the answer.
func (s *shell) answers(words, want string) {
	s.t.Helper()
	eventually(s.t, 90*time.Second, func() error {
		got, err := s.visit(words)
		if err == nil && got != want {
			err = fmt.Errorf("curl %s: want %q, got %q", words, want, got)
		}
		return err
	})
}

// visits makes many visits with one curl and counts what came back.
func (s *shell) visits(n int, url string) map[string]int {
	s.t.Helper()
	line := fmt.Sprintf(`kubectl -n default exec curler -- curl -s -m 20 -w '\n' "%s?[1-%d]" | sort | uniq -c`, url, n)
	return counted(s.t, s.run(line).text)
}

func TestHTTPHeadersDecideWhereARequestGoes(t *testing.T) { //nolint:tparallel // both versions use the same namespace
	t.Parallel()
	for _, name := range []string{"howto-k8s-http-headers", "v1beta1/howto-k8s-http-headers"} {
		t.Run(name, func(t *testing.T) {
			s := example(t, name, 6)
			const front = " front.$NS.svc.cluster.local:8080/"
			s.answers("-H 'color_header: blue'"+front, "blue")
			s.answers("-H 'color_header: red'"+front, "red")
			s.answers("-H 'color_header: requesting.green.color'"+front, "green")
			s.answers("-H 'color_header: rainbow'"+front, "yellow")
			s.answers(front, "white")
		})
	}
}

func TestEgressIsDroppedOrAllowed(t *testing.T) {
	t.Parallel()
	s := example(t, "howto-k8s-egress", 1)
	const ask = `kubectl -n $NS exec deploy/front -c app -- curl -s -m 10 -w ' %{http_code}' `
	s.soon(ask+"blue.mesh-external.svc.cluster.local:8080", "external: blue 200")
	s.run(ask + "red.mesh-external.svc.cluster.local:8080").says("404")
	s.run("kubectl apply -f 02-step-allow-all.yaml").says("configured")
	s.soon(ask+"red.mesh-external.svc.cluster.local:8080", "external: red 200")
	s.run(ask + "blue.mesh-external.svc.cluster.local:8080").is("external: blue 200")
}

func TestCloudMapDiscoveryIsServedFromThePodsThatANodeSelects(t *testing.T) {
	t.Parallel()
	s := example(t, "howto-k8s-cloudmap", 3)
	const inside = `kubectl -n $NS exec deploy/front -c front -- curl -s -m 20 -w '\n' "http://colorapp.$NS.svc.cluster.local:8080/?[1-200]" | sort | uniq -c`
	s.soon(inside, " blue", " red")
	counts := counted(t, s.run(inside).text)
	if faults := off(counts, map[string]float64{"blue": .5, "red": .5}); faults != nil {
		t.Errorf("%v", faults)
	}
	// Two nodes are in one Cloud Map service, and each has its own pod alone.
	for _, color := range []string{"blue", "red"} {
		ip := s.run("kubectl -n $NS get pod -l app=colorapp,version=" + color + " -o jsonpath='{.items[0].status.podIP}'").text
		s.run(`kubectl -n $NS exec deploy/front -c envoy -- curl -s http://localhost:9901/clusters | grep -o "cds_egress_howto-k8s-cloudmap_colorapp-` + color + `_[^:]*::[0-9.]*:[0-9]*" | sort -u | sed 's/.*:://'`).is(ip + ":8080")
	}
	// Pods come and go, and the proxies follow.
	s.run("kubectl -n $NS scale deploy colorapp-blue --replicas=0")
	s.soon(`kubectl -n $NS exec deploy/front -c envoy -- curl -s http://localhost:9901/clusters | grep -c "colorapp-blue_.*::[0-9.]*:8080::cx_active" || true`, "0")
}

func TestRetriesHideFaults(t *testing.T) {
	t.Parallel()
	s := example(t, "howto-k8s-retry-policy", 2)
	const url = "http://front.$NS.svc.cluster.local:8080/"
	s.answers("-o /dev/null -w '%{http_code}' front.$NS.svc.cluster.local:8080/ping", "200")
	count := func() map[string]int {
		return counted(t, s.run(`kubectl -n default exec curler -- curl -s -m 20 -o /dev/null -w '%{http_code}\n' "`+url+`?[1-400]" | sort | uniq -c`).text)
	}
	// Half of the answers are faults. Without a policy there are the two retries of App Mesh's default at both hops: 1/8 each way are left, at least of the first.
	before := count()
	t.Logf("by default: %v", before)
	s.run("kubectl apply -f 02-step-retries.yaml").says("virtualrouter.appmesh.k8s.aws/color configured")
	eventually(t, time.Minute, func() error {
		after := count()
		t.Logf("with four retries: %v", after)
		if after["200"]+after["503"] != 400 || after["503"] > 30 {
			return fmt.Errorf("want at most 30 of 400 to fail: %v", after)
		}
		return nil
	})
}

func TestTimeoutsAreThoseOfRoutesAndListeners(t *testing.T) {
	t.Parallel()
	s := example(t, "howto-k8s-timeout-policy", 3)
	// Cloud Map's private DNS has the name; here the request is sent to an address that nobody has, and Envoy goes by the name in it.
	const name = "colorapp.howto-k8s-timeout-policy.pvt.aws.local:8080"
	ask := func(most int) string {
		return fmt.Sprintf("kubectl -n $NS exec deploy/front -c front -- curl -s -m %d --resolve %s:10.96.250.250 -w ' %%{http_code} %%{time_total}' http://%s/color", most, name, name)
	}
	text := s.run(ask(70)).says("200").text
	if took := field(t, text, -1); took < 44 || took > 58 {
		t.Errorf("the application takes 45 s, and the answer %g s: %s", took, text)
	}
	s.run("kubectl apply -f 02-step-no-timeouts.yaml")
	eventually(t, 90*time.Second, func() error {
		text, err := s.try(ask(30))
		if err != nil {
			return err
		}
		if took := field(t, text, -1); !strings.Contains(text, " 504 ") || took < 14 || took > 20 {
			return fmt.Errorf("want 504 after 15 s: %s", text)
		}
		return nil
	})
}

// field is the number among a text's words at an index, which counts from the end where it is negative.
func field(t *testing.T, text string, at int) float64 {
	t.Helper()
	words := strings.Fields(text)
	if at < 0 {
		at += len(words)
	}
	if at < 0 || at >= len(words) {
		t.Fatalf("no word %d in %q", at, text)
	}
	var n float64
	if _, err := fmt.Sscan(words[at], &n); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}

func TestAHostThatFailsIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := example(t, "howto-k8s-outlier-detection", 5)
	const url = "http://front.$NS.svc.cluster.local:8080/color"
	s.soon(`kubectl -n $NS exec deploy/front -c envoy -- curl -s http://localhost:9901/clusters | grep -c 'colorapp.*:8080::cx_active'`, "4")
	s.answers("front.$NS.svc.cluster.local:8080/color/fault -o /dev/null -w '%{http_code}'", "200")
	count := func() map[string]int {
		return counted(t, s.run(`kubectl -n default exec curler -- curl -s -m 20 -o /dev/null -w '%{http_code}\n' "`+url+`/get?[1-200]" | sort | uniq -c`).text)
	}
	first := count()
	if first["500"] != 5 || first["200"] != 195 {
		t.Errorf("want 5 faults and 195 answers until the host is ejected: %v", first)
	}
	if then := count(); then["200"] != 200 {
		t.Errorf("want no fault while the host is ejected: %v", then)
	}
	s.run(`kubectl -n $NS exec deploy/front -c envoy -- curl -s http://localhost:9901/stats | grep 'colorapp.*outlier_detection.ejections_total'`).says(": 1")
}

func TestGRPCRoutesGoByServiceAndMethod(t *testing.T) {
	t.Parallel()
	s := example(t, "howto-k8s-grpc", 2)
	const client = " client.$NS.svc.cluster.local:8080"
	s.answers(client+"/getColor", "no color!")
	refused := s.run("kubectl -n default exec curler -- curl -s -w ' %{http_code}' -X POST -d blue" + client + "/setColor")
	refused.says("code = Unimplemented", "404")
	s.run("kubectl apply -f 02-step-all-methods.yaml").says("configured")
	s.answers("-X POST -d blue -o /dev/null -w '%{http_code}'"+client+"/setColor", "200")
	s.answers(client+"/getColor", "blue")
}

func TestHTTP2IsSpokenToTheEnd(t *testing.T) {
	t.Parallel()
	s := example(t, "howto-k8s-http2", 4)
	const url = "http://client.$NS.svc.cluster.local:8080/color"
	s.answers("-D - -o /dev/null "+url+" | grep -o -i 'answered-protocol: HTTP/2.0' | cut -d' ' -f2", "HTTP/2.0")
	eventually(t, time.Minute, func() error {
		if got := s.visits(60, url); len(got) != 3 {
			return fmt.Errorf("want red, green and blue: %v", got)
		}
		return nil
	})
	s.run(`kubectl -n $NS patch virtualrouter color --type=json -p '[{"op": "remove", "path": "/spec/routes/0/http2Route/action/weightedTargets/0"}]'`)
	eventually(t, time.Minute, func() error {
		if got := s.visits(60, url); got["red"] != 0 || len(got) != 2 {
			return fmt.Errorf("want green and blue alone: %v", got)
		}
		return nil
	})
}

func TestAccessLogsHaveTheFormatThatIsAskedFor(t *testing.T) {
	t.Parallel()
	// Here the Deployments come before their virtual nodes: their pods are refused, and made once there is a node.
	s := example(t, "howto-k8s-envoy-logging-custom-format", 2)
	s.soon("kubectl -n $NS exec deploy/front -c app -- curl -s -m 10 color.$NS.svc.cluster.local:8080/", "blue")
	s.soon(`kubectl -n $NS logs deploy/front -c envoy | grep texttestingtesting`, "texttestingtesting HTTP/1.1:")
	s.soon(`kubectl -n $NS logs deploy/blue -c envoy | grep jsontestingtesting`, `"protocol":"jsontestingtesting HTTP/1.1"`)
}

func TestEnvoysListenersAndClustersBearTheNamesThatScriptsLookFor(t *testing.T) {
	t.Parallel()
	// The ServiceAccount was made by a tool that gave it permissions of AWS.
	terminal(t, ".").run("kubectl create ns howto-k8s-fargate && kubectl -n howto-k8s-fargate create serviceaccount appmesh-pod")
	s := example(t, "howto-k8s-fargate", 3)
	const url = "http://front.$NS.svc.cluster.local:8080/color"
	s.run("kubectl -n $NS exec deploy/front -c envoy -- curl -s http://localhost:9901/listeners").says("lds_ingress_0.0.0.0_15000", "lds_egress_0.0.0.0_15001")
	s.soon("kubectl -n $NS exec deploy/front -c envoy -- curl -s http://localhost:9901/clusters",
		"cds_ingress_howto-k8s-fargate_front_howto-k8s-fargate_http_8080::added_via_api::true",
		"cds_egress_howto-k8s-fargate_green_howto-k8s-fargate_http_8080::added_via_api::true",
		"cds_egress_howto-k8s-fargate_blue_howto-k8s-fargate_http_8080::added_via_api::true")
	s.answers("-o /dev/null -w '%{http_code}' "+url, "200")
	if counts := s.visits(300, url); off(counts, map[string]float64{"green": .5, "blue": .5}) != nil {
		if counts = s.visits(300, url); off(counts, map[string]float64{"green": .5, "blue": .5}) != nil {
			t.Errorf("want half of each: %v", counts)
		}
	}
}

func TestTheDJAppOfTheMetricsExampleDivides60To40(t *testing.T) {
	t.Parallel()
	const name = "howto-k8s-metrics-extension"
	installed(t)
	s := terminal(t, corpus+name)
	s.run("export NS=howto-metrics-extension")
	s.applied(corpus+name+"/01-namespace.yaml", corpus+name+"/02-djapp-v1.yaml")
	s.run("kubectl -n $NS scale deploy djapp jazz metal-v1 metal-v2 --replicas=1 && kubectl -n $NS create serviceaccount service-pod --dry-run=client -o yaml | kubectl apply -f -")
	s.podsReady("howto-metrics-extension", "app in (djapp,jazz,metal)", "2/2", 4)
	const v1, v2 = `["Astrud Gilberto","Miles Davis","Megadeth","Judas Priest"]`, `["Astrud Gilberto","Miles Davis","Megadeth (Los Angeles, California)","Judas Priest (West Bromwich, England)"]`
	const ask = `kubectl -n $NS exec deploy/djapp -c app -- curl -s -m 20 "http://localhost:8080/?[1-300]" | sort | uniq -c`
	s.soon(ask, "Megadeth\"", "(Los Angeles, California)")
	shares := map[string]float64{v1: .6, v2: .4}
	if counts := counted(t, s.run(ask).text); off(counts, shares) != nil {
		if counts = counted(t, s.run(ask).text); off(counts, shares) != nil {
			t.Errorf("want 60 to 40: %v", counts)
		}
	}
}
