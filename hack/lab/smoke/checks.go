// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	web    = "deploy/web"
	client = "deploy/client"
)

// checks are in the order of a cluster's life: later ones lean on earlier ones.
func checks() []check {
	return []check{
		{"the node is ready", says("True", get("get node lab -o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`))},
		{"Deployments come up, their images named after a registry that is far away", comeUp},
		{"a Service answers by its name", says("hello from web", in(client, "app", "curl -sS web:9080"))},
		{"a Service answers by its full name", says("hello from web", in(client, "app", "curl -sS web.smoke.svc.cluster.local:9080"))},
		{"a Service answers by its address", says("hello from web", in(client, "app", `curl -sS "$WEB_SERVICE_HOST:9080"`))},
		{"a Service has an IPv6 address that answers", says("hello from web", in(client, "app", `curl -sS -6 web:9080`))},
		{"a pod reaches itself through its Service", soon(hairpin)},
		{"a headless Service's name means its pods", says("2", in(client, "app", `nslookup web-headless.smoke.svc.cluster.local | grep -c "Address: 10.244"`))},
		{"a name outside the cluster does not exist, and that is said at once", says("6", in(client, "app", "curl -s -m 3 http://example.com; echo $?"))},
		{"the walkthrough's tools are there and print as printed there", walkthrough},
		{"logs can be read", says("hello", get("logs web-logs"))},
		{"a port can be forwarded", portForward},
		{"a NodePort answers on the node", says("hello from web", enter("curl -sS 10.89.0.1:30080"))},
		{"a pod's token is known to the API server, which grants what its Role says", says("200 403", in(client, "app", apiCalls))},
		{"a pod that is not ready gets no traffic", notReady},
		{"a container beyond its memory limit is killed", soon(says("OOMKilled", get("get pod greedy -o", "jsonpath={.status.containerStatuses[0].state.terminated.reason}")))},
		{"a pod with no rights at all runs", says("CapEff:\t0000000000000000", in("strict", "app", "grep CapEff /proc/self/status"))},
		{"a Job with a native sidecar ends", says("condition met", get("wait --for=condition=Complete job/sidecar --timeout=60s"))},
		{"a native sidecar takes the application's traffic (nft)", says("intercepted on the way to dj:9080", in("redirected", "app", "wget -qO- http://dj:9080"))},
		{"a native sidecar takes the application's traffic (legacy)", says("intercepted on the way to dj:9080", in("redirected-legacy", "app", "wget -qO- http://dj:9080"))},
		{"the proxy's own traffic passes", says("Miles Davis", in("redirected", "proxy", "wget -qO- http://dj:9080"))},
		{"a webhook that runs in a pod changes pods", webhook},
		{"an image that nobody pushed is refused with its name", soon(says("nowhere", get("get pod imageless -o", "jsonpath={.status.containerStatuses[0].state.waiting.message}")))},
		{"what a pod writes to the node stays there", stays},
		{"Helm installs and uninstalls", helm},
		{"the API server comes back after a kill", apiServerReturns},
		{"a namespace goes away with all that is in it", says("deleted", get("delete namespace smoke --timeout=90s"))},
	}
}

// apiCalls prints the answer's code for what the pod may do and for what it may not.
const apiCalls = `d=/var/run/secrets/kubernetes.io/serviceaccount
for what in pods secrets; do
  curl -s -o /dev/null -w '%{http_code} ' --cacert $d/ca.crt -H "Authorization: Bearer $(cat $d/token)" https://kubernetes.default.svc/api/v1/namespaces/smoke/$what
done`

func comeUp(ctx context.Context) error {
	if _, err := output(ctx, "", "kubectl", "delete", "namespace", "smoke", "--ignore-not-found"); err != nil {
		return err
	}
	if _, err := output(ctx, manifest, "kubectl", "apply", "-f", "-"); err != nil {
		return err
	}
	if _, err := kubectl(ctx, "wait --for=condition=Available --timeout=90s deploy --all"); err != nil {
		return err
	}
	_, err := kubectl(ctx, "wait --for=condition=Ready --timeout=90s pod/strict pod/redirected pod/redirected-legacy pod/web-logs pod/writer")
	return err
}

func hairpin(ctx context.Context) error {
	pod, err := kubectl(ctx, "get pod -l app=web -o jsonpath={.items[0].metadata.name}")
	if err != nil {
		return err
	}
	return says("hello from web", in(pod, "app", "for i in 1 2 3 4 5 6 7 8 9 10; do curl -sS -m 2 web:9080 || exit 1; done"))(ctx)
}

func walkthrough(ctx context.Context) error {
	got, err := kubectl(ctx, "exec "+client+" -- bash -c", "curl -s dj:9080 | json_pp; curl -s dj:9080/ping")
	const want = "[\n   \"Miles Davis\",\n   \"Astrud Gilberto\"\n]\npong"
	if err == nil && got != want {
		err = fmt.Errorf("want %q, got %q", want, got)
	}
	return err
}

func portForward(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kubectl", "-n", "smoke", "port-forward", "svc/web", ":9080")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return errors.Join(err, cmd.Wait())
	}
	address, _, found := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " -> ")
	if !found {
		return fmt.Errorf("kubectl port-forward says %q", line)
	}
	err = says("hello from web", func(ctx context.Context) (string, error) { return output(ctx, "", "curl", "-sS", address) })(ctx)
	cancel()
	_ = cmd.Wait() // it was killed
	return err
}

// enter runs a command on the node.
func enter(command string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		return output(ctx, "", "lab/enter", strings.Fields(command)...)
	}
}

func notReady(ctx context.Context) error {
	pod, err := kubectl(ctx, "get pod -l app=web -o jsonpath={.items[0].metadata.name}")
	if err != nil {
		return err
	}
	if _, err := inPod(ctx, pod, "app", "touch /tmp/unready"); err != nil {
		return err
	}
	err = soon(func(ctx context.Context) error {
		got, err := kubectl(ctx, "get endpointslice -l kubernetes.io/service-name=web -o", `jsonpath={.items[?(@.addressType=="IPv4")].endpoints[*].conditions.ready}`)
		if err == nil && (!strings.Contains(got, "false") || !strings.Contains(got, "true")) {
			err = fmt.Errorf("want one of two pods ready, got %q", got)
		}
		return err
	})(ctx)
	if err != nil {
		return err
	}
	_, err = inPod(ctx, pod, "app", "rm /tmp/unready")
	return err
}

// webhookConfiguration wants the certificate to trust.
const webhookConfiguration = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: smoke}
webhooks:
- name: webhook.smoke.svc
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 5
  objectSelector: {matchLabels: {review: wanted}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  clientConfig: {caBundle: %s, service: {name: webhook, namespace: smoke}}
`

func webhook(ctx context.Context) error {
	certificate, err := kubectl(ctx, "logs deploy/webhook")
	if err != nil {
		return err
	}
	configuration := fmt.Sprintf(webhookConfiguration, base64.StdEncoding.EncodeToString([]byte(certificate+"\n")))
	if _, err := output(ctx, configuration, "kubectl", "apply", "-f", "-"); err != nil {
		return err
	}
	// The API server learns of the webhook in its own time, so pods are made until one was reviewed.
	err = soon(func(ctx context.Context) error {
		return says("reviewed", get("run reviewed --rm=false --restart=Never --labels=review=wanted --image=lab/smoke:1 --dry-run=server -o", "jsonpath={.metadata.annotations.smoke}"))(ctx)
	})(ctx)
	_, gone := output(ctx, "", "kubectl", "delete", "mutatingwebhookconfiguration", "smoke")
	return errors.Join(err, gone)
}

// stays looks at a file that the pod "writer" put where CNI plugins put theirs.
func stays(ctx context.Context) error {
	const file = "/etc/cni/net.d/zz-smoke.txt"
	if err := says("from a pod", enter("cat "+file))(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(file); err == nil {
		return fmt.Errorf("%s is on the machine itself", file)
	}
	return nil
}

func helm(ctx context.Context) error {
	chart, err := os.MkdirTemp("", "smoke-chart-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(chart) }()
	files := map[string]string{
		"Chart.yaml":              "{apiVersion: v2, name: smoke, version: 1.0.0}",
		"templates/settings.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: from-helm}, data: {color: {{ .Values.color | quote }}}}",
	}
	for name, text := range files {
		path := filepath.Join(chart, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	if _, err := output(ctx, "", "helm", "upgrade", "-i", "smoke", chart, "-n", "smoke", "--set", "color=blue", "--wait"); err != nil {
		return err
	}
	if err := says("blue", get("get configmap from-helm -o jsonpath={.data.color}"))(ctx); err != nil {
		return err
	}
	_, err = output(ctx, "", "helm", "uninstall", "smoke", "-n", "smoke")
	return err
}

func apiServerReturns(ctx context.Context) error {
	if _, err := enter("pkill -KILL kube-apiserver")(ctx); err != nil {
		return err
	}
	return soon(says("ok", get("get --raw /readyz")))(ctx)
}
