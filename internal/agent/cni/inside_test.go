// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cni

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// What follows runs in namespaces of its own: a node, with a pod beside it.

// podCall is a call about a pod with these annotations, as containerd makes it.
func podCall(command, namespace string, annotations map[string]string) (call, error) {
	configuration, err := json.Marshal(map[string]any{
		"cniVersion": "1.0.0", "name": "lab", "type": Program,
		"capabilities":  map[string]bool{annotationsCapability: true},
		"runtimeConfig": map[string]any{annotationsCapability: annotations},
		"prevResult":    map[string]any{"cniVersion": "1.0.0", "ips": []map[string]string{{"address": "10.9.0.1/24"}}},
	})
	return call{Configuration: configuration, Env: map[string]string{
		"CNI_COMMAND": command, "CNI_CONTAINERID": "c1", "CNI_NETNS": namespace, "CNI_IFNAME": "eth0", "CNI_PATH": "/opt/cni/bin",
		"CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-1;K8S_POD_UID=u",
	}}, err
}

// pod is a network namespace, and the thread that is in it.
type pod struct {
	path string
	do   chan func()
}

func newPod() (*pod, error) {
	p := &pod{do: make(chan func())}
	made := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with this program
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- err
			return
		}
		p.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", syscall.Getpid(), syscall.Gettid())
		made <- nil
		for f := range p.do {
			f()
		}
	}()
	return p, <-made
}

// rules are those of the pod.
func (p *pod) rules() (text string, err error) {
	done := make(chan struct{})
	p.do <- func() {
		defer close(done)
		text, err = natRules()
	}
	<-done
	return text, err
}

// run runs a program in the pod.
func (p *pod) run(name string, args ...string) (err error) {
	done := make(chan struct{})
	p.do <- func() {
		defer close(done)
		err = exec.Command(name, args...).Run() //nolint:noctx // it ends by itself
	}
	<-done
	return err
}

func natRules() (string, error) {
	var all strings.Builder
	for _, name := range []string{"iptables-save", "ip6tables-save"} {
		out, err := exec.Command(name, "-t", "nat").CombinedOutput() //nolint:noctx // it ends by itself
		if err != nil {
			return "", fmt.Errorf("%s: %w: %s", name, err, out)
		}
		all.Write(out)
	}
	return all.String(), nil
}

// expect makes a call and looks for words in its answer; without any the answer must be no error.
func expect(p *pod, command string, annotations map[string]string, words string) error {
	c, err := podCall(command, p.path, annotations)
	if err != nil {
		return err
	}
	answer, err := c.start()
	if err != nil {
		return err
	}
	if words == "" && strings.Contains(answer, `"code":`) || !strings.Contains(answer, words) {
		return fmt.Errorf("%s: want %q in the answer %s", command, words, answer)
	}
	return nil
}

func checkPod() error {
	p, err := newPod()
	if err != nil {
		return err
	}
	none, err := p.rules()
	if err != nil {
		return err
	}
	if err := errors.Join(expect(p, "ADD", map[string]string{"a": "b"}, "10.9.0.1/24"), expect(p, "CHECK", nil, "")); err != nil {
		return err
	}
	if still, err := p.rules(); err != nil || strings.Contains(still, "APPMESH") || strings.Contains(none, "APPMESH") {
		return errors.Join(err, fmt.Errorf("a pod without annotations was touched:\n%s", still))
	}
	asks := injected(nil)
	if err := errors.Join(expect(p, "CHECK", asks, "the rules are not those that were made"), expect(p, "ADD", asks, "10.9.0.1/24"), expect(p, "ADD", asks, "10.9.0.1/24"), expect(p, "CHECK", asks, "")); err != nil {
		return err
	}
	made, err := p.rules()
	if err != nil {
		return err
	}
	for _, want := range []string{"-A APPMESH_INGRESS -p tcp -m multiport --dports 8080,9090 -j REDIRECT --to-ports 15000", "--uid-owner 1337 -j RETURN", "-d 169.254.169.254/32", "-d fd00::/8"} {
		if !strings.Contains(made, want) {
			return fmt.Errorf("the rules miss %q:\n%s", want, made)
		}
	}
	if node, err := natRules(); err != nil || strings.Contains(node, "APPMESH") {
		return errors.Join(err, fmt.Errorf("the node's own rules were touched:\n%s", node))
	}
	if err := expect(p, "CHECK", injected(map[string]string{"ports": "8080", "proxyIngressPort": "15006"}), "pod shop/web-1"); err != nil {
		return err
	}
	if err := p.run("iptables", "-t", "nat", "-D", "APPMESH_EGRESS", "1"); err != nil {
		return err
	}
	if err := expect(p, "CHECK", asks, "IPv4: the rules are not those that were made"); err != nil {
		return err
	}
	// The namespace goes, and the rules with it: DEL has nothing to do, with or without a namespace.
	return errors.Join(expect(p, "DEL", asks, ""), expect(&pod{path: "/proc/1/ns/missing"}, "DEL", asks, ""), expect(&pod{path: "/proc/1/ns/missing"}, "ADD", asks, "code"))
}
