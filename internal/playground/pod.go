// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package playground

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/internal/playground/cluster"
	"github.com/tulle-mesh/tulle/internal/playground/sandbox"
	"github.com/tulle-mesh/tulle/internal/playground/traffic"
)

// How long the parts of a pod may take.
const (
	startTimeout = 60 * time.Second
	stopGrace    = 30 * time.Second
)

// pod is a running pod.
type pod struct {
	object *corev1.Pod
	hosts  string
	box    *sandbox.Pod
	agent  *process // nil without a sidecar
	apps   []*process
}

func (p *pod) processes() []*process {
	if p.agent == nil {
		return p.apps
	}
	return append([]*process{p.agent}, p.apps...)
}

// reconcile starts the pods that the workload should have and ends those that it should not, in that order.
func (w *world) reconcile(ctx context.Context, workload cluster.Key) error {
	desired, err := w.cluster.Desired(workload)
	if err != nil {
		return err
	}
	old := w.cluster.PodsOf(workload)
	same := func(a *corev1.Pod) func(*corev1.Pod) bool {
		return func(b *corev1.Pod) bool { return a.Name == b.Name }
	}
	for _, object := range desired {
		if slices.ContainsFunc(old, same(object)) {
			continue
		}
		if err := w.startPod(ctx, workload, object); err != nil {
			return fmt.Errorf("pod %s: %w", object.Name, err)
		}
	}
	for _, object := range old {
		if slices.ContainsFunc(desired, same(object)) {
			continue
		}
		if err := w.stopPod(ctx, object); err != nil {
			return fmt.Errorf("pod %s: %w", object.Name, err)
		}
	}
	return nil
}

func (w *world) startPod(ctx context.Context, workload cluster.Key, object *corev1.Pod) error {
	w.numbers++
	addresses, err := w.node.PodAddresses(w.numbers)
	if err != nil {
		return err
	}
	sidecar, err := w.cluster.Sidecar(object)
	if err != nil {
		return err
	}
	w.cluster.AddPod(object, addresses)
	p := &pod{object: object, hosts: filepath.Join(w.dir, "pods", object.Name+".hosts")}
	if err := w.makeNamespaces(ctx, p, workload); err != nil {
		return err
	}
	w.pods = append(w.pods, p)
	if sidecar != nil {
		if err := w.startSidecar(ctx, p, sidecar); err != nil {
			return err
		}
	}
	for _, c := range object.Spec.Containers {
		app, err := w.startApp(ctx, p, c)
		if err != nil {
			return fmt.Errorf("container %s: %w", c.Name, err)
		}
		p.apps = append(p.apps, app)
	}
	w.cluster.Ready(object)
	w.progress(fmt.Sprintf("  pod %s is ready (%d/%d), %s", object.Name, len(p.processes()), len(p.processes()), object.Status.PodIP))
	return w.publish(ctx)
}

func (w *world) makeNamespaces(ctx context.Context, p *pod, workload cluster.Key) error {
	resolv := filepath.Join(w.dir, "pods", p.object.Name+".resolv")
	if err := rewrite(p.hosts, w.cluster.Hosts(p.object)); err != nil {
		return err
	}
	// Names are in the hosts file; to ask for others ends at once instead of leading out of the playground.
	if err := rewrite(resolv, []byte("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")); err != nil {
		return err
	}
	var err error
	p.box, err = sandbox.StartPod(ctx, w.argv, sandbox.PodConfig{
		Name: p.object.Name, Workload: workload.Name, Namespace: workload.Namespace, Hosts: p.hosts, Resolv: resolv,
	})
	if err != nil {
		return err
	}
	return w.node.Attach(p.box.PID(), w.numbers)
}

// startSidecar does what the injected containers do: the redirect first, then the proxy, until it serves.
func (w *world) startSidecar(ctx context.Context, p *pod, s *cluster.Sidecar) error {
	var ports []string
	for _, port := range s.Ports {
		ports = append(ports, strconv.Itoa(port))
	}
	redirect := p.box.Command(ctx, w.argv, w.program("tulle-agent"), "redirect", "--app-ports", strings.Join(ports, ","),
		"--ipv6="+strconv.FormatBool(w.node.IPv6()))
	if out, err := redirect.CombinedOutput(); err != nil {
		return fmt.Errorf("tulle-agent redirect: %w: %s", err, strings.TrimSpace(string(out)))
	}
	var err error
	p.agent, err = w.start("agent-"+p.object.Name, p.box.Command(ctx, w.argv, w.program("tulle-agent"), "run",
		"--node", s.Node, "--xds", w.xdsAddress(), "--envoy", w.program("envoy"), "--concurrency", "1",
		"--run-dir", "/tmp/tulle-agent"))
	if err != nil {
		return err
	}
	if err := w.publish(ctx); err != nil {
		return err
	}
	return w.awaitSidecar(ctx, p)
}

// awaitSidecar waits until the proxy serves with its first configuration. An agent that ends is not waited for.
func (w *world) awaitSidecar(ctx context.Context, p *pod) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.agent.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	ready := p.box.Command(ctx, w.argv, w.program("tulle-agent"), "ready", "--wait", strconv.Itoa(int(startTimeout.Seconds())))
	out, err := ready.CombinedOutput()
	if err == nil {
		return nil
	}
	if ended := p.agent.alive(); ended != nil {
		return ended
	}
	return fmt.Errorf("the sidecar does not get ready: %s%s", strings.TrimSpace(string(out)), p.agent.lastWords())
}

// startApp starts the stand-in for a container, and waits until it listens.
func (w *world) startApp(ctx context.Context, p *pod, c corev1.Container) (*process, error) {
	image, _, _ := strings.Cut(path.Base(c.Image), ":")
	if _, known := w.scenario.Apps[image]; !known {
		return nil, fmt.Errorf("image %s: the scenario says nothing about %q: name a stand-in under apps", c.Image, image)
	}
	response := "hell no world" // what the original says without the variable
	for _, e := range c.Env {
		if e.Name == "HW_RESPONSE" {
			response = e.Value
		}
	}
	port := int32(9080)
	if len(c.Ports) > 0 {
		port = c.Ports[0].ContainerPort
	}
	cmd := w.inPod(ctx, p, roleApp, ":"+strconv.Itoa(int(port)), response)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("stand-in: %w", err)
	}
	app, err := w.start("app-"+p.object.Name+"-"+c.Name, cmd)
	if err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != traffic.Ready {
		return nil, errors.Join(fmt.Errorf("the stand-in does not start: %w", err), app.alive())
	}
	return app, nil
}

// inPod is a command that plays one of the roles of this executable in a pod.
func (w *world) inPod(ctx context.Context, p *pod, args ...string) *exec.Cmd {
	return p.box.Command(ctx, w.argv, slices.Concat([]string{w.program("playground")}, w.argv[1:], args)...)
}

// stopPod ends a pod as a kubelet does: it leaves the endpoints, then its processes are asked to end, then it is gone.
func (w *world) stopPod(ctx context.Context, object *corev1.Pod) error {
	i := slices.IndexFunc(w.pods, func(p *pod) bool { return p.object == object })
	p := w.pods[i]
	w.cluster.Terminating(object, metav1.NewTime(w.clock.Now()))
	if err := w.publish(ctx); err != nil {
		return err
	}
	for _, process := range p.processes() {
		if err := process.stop(ctx, w, stopGrace); err != nil {
			return err
		}
	}
	if err := p.box.End(); err != nil {
		return err
	}
	w.pods = slices.Delete(w.pods, i, i+1)
	w.cluster.RemovePod(object)
	w.progress("  pod " + object.Name + " has ended")
	return w.publish(ctx)
}

// firstPod is the oldest pod of the workload that is not on its way out.
func (w *world) firstPod(workload string) (*pod, error) {
	for _, p := range w.pods {
		if p.object.Namespace == w.scenario.Namespace && cluster.WorkloadOf(p.object) == workload && p.object.DeletionTimestamp == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("workload %s has no pod", workload)
}
