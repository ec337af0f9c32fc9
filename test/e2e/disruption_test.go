// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// stormApps are a chain: web holds the load generator and calls front, front calls api, and each of the two has several pods. Their applications linger when they are told to
// end, as Kubernetes asks of everybody who serves: those who call them hear of their end a moment later.
const stormApps = `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: front, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: front}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: front.SHOP.svc.cluster.local}}
  backends: [{virtualService: {virtualServiceRef: {name: api}}}]
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualRouter
metadata: {name: front, namespace: SHOP}
spec:
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  routes: [{name: all, httpRoute: {match: {prefix: /}, action: {weightedTargets: [{virtualNodeRef: {name: front}, weight: 1}]}}}]
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: front, namespace: SHOP}
spec:
  awsName: front.SHOP.svc.cluster.local
  provider: {virtualRouter: {virtualRouterRef: {name: front}}}
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: SHOP}
spec: {selector: {app: api}, ports: [{port: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: SHOP}
spec: {selector: {app: front}, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: SHOP}
spec:
  replicas: 3
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}, annotations: {appmesh.k8s.aws/sidecarMode: MODE}}
    spec:
      containers:
        - name: app
          image: "tulle-e2e/color:v1"
          env: [{name: COLOR, value: api}, {name: LINGER, value: "8"}]
          readinessProbe: {httpGet: {path: /ping, port: 8080}, periodSeconds: 2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, namespace: SHOP}
spec:
  replicas: 2
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}, annotations: {appmesh.k8s.aws/sidecarMode: MODE}}
    spec:
      containers:
        - name: app
          image: "tulle-e2e/front:v1"
          env: [{name: COLOR_HOST, value: "api.SHOP.svc.cluster.local:8080"}, {name: LINGER, value: "8"}]
          readinessProbe: {httpGet: {path: /ping, port: 8080}, periodSeconds: 2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: SHOP}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {appmesh.k8s.aws/sidecarMode: MODE}}
    spec: {containers: [{name: app, image: "tulle-e2e/client:v1"}]}
`

// stormMesh is the mesh that the chain lives in: web calls front as well.
var stormMesh = replace(shopMesh, "backends: [{virtualService: {virtualServiceRef: {name: api}}}]", "backends: [{virtualService: {virtualServiceRef: {name: front}}}]")

// stormTraffic is what goes through the chain all the while: half of it on connections of its own.
const stormTraffic = "-rate 200 -methods GET,POST http://front.%s.svc.cluster.local:8080/"

// A storm is traffic through a chain of services while something happens to them.
type storm struct {
	*shell
	namespace, pod string
}

// newStorm makes the chain, with sidecars of a mode (native or classic), and waits until it answers.
func newStorm(t *testing.T, namespace, mode string) *storm {
	t.Helper()
	s := &storm{shell: terminal(t, "."), namespace: namespace}
	s.run("export NS=" + namespace)
	s.applied(replace(in(namespace, strings.Join([]string{stormMesh, shopService, stormApps}, "\n---\n")), "MODE", mode))
	s.podsReady(namespace, "app=api", "2/2", 3)
	s.podsReady(namespace, "app=front", "2/2", 2)
	s.podsReady(namespace, "app=web", "2/2", 1)
	s.soon(replace(askAPI, "http://api.", "http://front."), "api 200")
	s.pod = s.run("kubectl -n " + namespace + " get pods -l app=web -o name").text
	return s
}

// through runs traffic while something happens, and fails the test if one request fails.
func (s *storm) through(t *testing.T, what string, happens func(s *shell)) {
	t.Helper()
	began := now()
	l := load(t, s.namespace, s.pod, "app", fmt.Sprintf(stormTraffic, s.namespace))
	time.Sleep(2 * time.Second) // traffic before
	happens(&shell{t: t, dir: s.dir, exports: s.exports})
	time.Sleep(3 * time.Second) // and after
	r := l.stop()
	tell(t, "%s: %d requests, %d failed, p99 %.0f ms, in %.0f s", what, r.Requests, r.Failures, r.P99, now().Sub(began).Seconds())
	r.noFailures(t, 500)
}

// now is the clock, for people and for what is measured.
func now() time.Time { return time.Now() } //nolint:forbidigo // see above

const (
	controllerPods = "kubectl -n appmesh-system get pods -l app.kubernetes.io/name=appmesh-controller"
	rolledOut      = "kubectl -n appmesh-system rollout status deployment appmesh-controller --timeout=180s"
	settled        = rolledOut + ` && until [ "$(` + controllerPods + ` -o name | wc -l)" = "$(kubectl -n appmesh-system get deployment appmesh-controller -o jsonpath='{.spec.replicas}')" ]; do sleep 1; done`
	leading        = `kubectl -n appmesh-system get lease appmesh-controller-leader -o jsonpath='{.spec.holderIdentity}'`
)

// A weight that is changed shows that the control plane is there for the proxies again: web's Envoy gets the route.
func (s *storm) obeys(sh *shell) {
	sh.t.Helper()
	sh.run(`kubectl -n $NS patch virtualrouter front --type json -p '[{"op": "replace", "path": "/spec/routes/0/httpRoute/match/prefix", "value": "/nowhere"}]'`)
	sh.soon(replace(askAPI, "http://api.", "http://front."), "404")
	sh.run(`kubectl -n $NS patch virtualrouter front --type json -p '[{"op": "replace", "path": "/spec/routes/0/httpRoute/match/prefix", "value": "/"}]'`)
	sh.soon(replace(askAPI, "http://api.", "http://front."), "api 200")
}

// TestNoRequestFailsWhateverBecomesOfTheControlPlane kills, fails over, upgrades and rolls back the control plane, and takes its certificates away.
func TestNoRequestFailsWhateverBecomesOfTheControlPlane(t *testing.T) {
	installed(t)
	touched(t)
	s := newStorm(t, "storm", "native")

	t.Run("the only replica is killed and comes back", func(t *testing.T) {
		s.through(t, "kill", func(s *shell) {
			s.run(controllerPods + " -o name | xargs kubectl -n appmesh-system delete --grace-period=0 --force 2>/dev/null")
			s.run(settled)
		})
		s.obeys(s.shell)
	})
	t.Run("it is away, and pods come and go meanwhile", func(t *testing.T) {
		s.through(t, "away", func(s *shell) {
			s.run("kubectl -n appmesh-system scale deployment appmesh-controller --replicas=0")
			s.run("kubectl -n appmesh-system wait --for=delete pod -l app.kubernetes.io/name=appmesh-controller --timeout=60s")
			time.Sleep(5 * time.Second) // while it is away
			s.run("kubectl -n appmesh-system scale deployment appmesh-controller --replicas=1")
			s.run(settled)
		})
		s.obeys(s.shell)
	})
	t.Run("the chart is upgraded to two replicas", func(t *testing.T) {
		s.through(t, "two replicas", func(s *shell) { s.run(install + "--set replicaCount=2 --wait"); s.run(settled) })
	})
	t.Run("the leader of two is killed", func(t *testing.T) {
		s.through(t, "leader", func(s *shell) {
			leader := s.run(leading).text
			s.run("kubectl -n appmesh-system delete pod --grace-period=0 --force " + leader + " 2>/dev/null")
			eventually(t, time.Minute, func() error {
				if now, err := s.try(leading); err != nil || now == leader {
					return fmt.Errorf("still led by %s: %w", now, err)
				}
				return nil
			})
			s.run(settled)
		})
		s.obeys(s.shell)
	})
	t.Run("each of the two is killed in its turn, so that every proxy changes its replica", func(t *testing.T) {
		s.through(t, "each replica", func(s *shell) {
			for _, pod := range s.run(controllerPods + " -o name").lines() {
				s.run("kubectl -n appmesh-system delete --grace-period=0 --force " + pod + " 2>/dev/null")
				s.run(settled)
			}
		})
		s.obeys(s.shell)
	})
	t.Run("the chart is upgraded to another image and log level, and rolled back", func(t *testing.T) {
		s.run("hack/lab/push dist/tulle.tar=tulle-mesh/tulle:v1.20.1 dist/tulle-agent.tar=tulle-mesh/tulle-agent:v1.20.1")
		revision := s.run("helm -n appmesh-system history appmesh-controller -o json | grep -o '\"revision\":[0-9]*' | tail -1 | cut -d: -f2").text
		s.through(t, "upgrade", func(s *shell) {
			s.run(install + "--set replicaCount=2 --set image.tag=v1.20.1 --set sidecar.image.tag=v1.20.1 --set log.level=debug")
			s.run(settled)
		})
		s.obeys(s.shell)
		s.through(t, "rollback", func(s *shell) {
			s.run("helm -n appmesh-system rollback appmesh-controller " + revision)
			s.run(settled)
		})
		s.obeys(s.shell)
	})
	t.Run("its Secret is deleted, and a new certificate is made", func(t *testing.T) {
		const certificate = `kubectl -n appmesh-system get secret appmesh-controller-certs -o jsonpath='{.data.tls\.crt}'`
		s.through(t, "certificates", func(s *shell) {
			before := s.run(certificate).text
			s.run("kubectl -n appmesh-system delete secret appmesh-controller-certs")
			s.soon(certificate, before)
			s.run(`kubectl -n appmesh-system patch secret appmesh-controller-certs --type json -p '[{"op": "remove", "path": "/data/tls.crt"}]'`)
			eventually(t, time.Minute, func() error {
				now, err := s.try(certificate)
				if err == nil && (now == "" || now == before) {
					err = errors.New("no other certificate")
				}
				return err
			})
		})
		s.obeys(s.shell)
	})
	t.Run("it has another authority, which proxies do not know before they are made again", func(t *testing.T) {
		s.through(t, "another authority", func(s *shell) {
			s.run("kubectl -n appmesh-system scale deployment appmesh-controller --replicas=0")
			s.run("kubectl -n appmesh-system wait --for=delete pod -l app.kubernetes.io/name=appmesh-controller --timeout=60s")
			s.run("kubectl -n appmesh-system delete secret appmesh-controller-certs")
			s.run("kubectl -n appmesh-system scale deployment appmesh-controller --replicas=2")
			s.run(settled)
			time.Sleep(5 * time.Second) // for proxies that try to come back
		})
		s.run("kubectl -n $NS rollout restart deployment")
		for _, name := range []string{"api", "front", "web"} {
			s.run("kubectl -n $NS rollout status --timeout=200s deployment/" + name)
		}
		s.podsReady("storm", "app=web", "2/2", 1)
		s.obeys(s.shell)
	})
}

const bothApps = "deployment/api deployment/front"

// TestNoRequestFailsWhileEveryPodIsRolled rolls the callee, the caller, and both at once, with native sidecars and with classic ones.
func TestNoRequestFailsWhileEveryPodIsRolled(t *testing.T) {
	installed(t)
	for mode, rolled := range map[string][]string{"native": {"deployment/api", "deployment/front", bothApps}, "classic": {bothApps}} {
		t.Run(mode, func(t *testing.T) {
			s := newStorm(t, "roll-"+mode, mode)
			for _, what := range rolled {
				s.through(t, what, func(s *shell) {
					s.run("kubectl -n $NS rollout restart " + what)
					for name := range strings.FieldsSeq(what) {
						s.run("kubectl -n $NS rollout status --timeout=200s " + name)
					}
					time.Sleep(12 * time.Second) // until the last of the old ones has gone, too
				})
			}
			s.through(t, "scaled down and up", func(s *shell) {
				s.run("kubectl -n $NS scale deployment/api --replicas=1")
				s.podsReady("roll-"+mode, "app=api", "2/2", 1)
				s.run("kubectl -n $NS scale deployment/api --replicas=3")
				s.podsReady("roll-"+mode, "app=api", "2/2", 3)
			})
		})
	}
}
