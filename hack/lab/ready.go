// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// patience is how long a cluster may take from its start until it is ready. On a machine of two busy cores it takes 30 s.
const patience = 5 * time.Minute

// errEnded is the end of a node that gives no reason.
var errEnded = errors.New("it gave no reason")

// waitUntilReady follows the start, and does what only a running cluster can take: images and CoreDNS.
func (l lab) waitUntilReady(ctx context.Context, p progress, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	done := make(chan struct{})
	group.Go(func() error {
		select {
		case err := <-ended:
			return fmt.Errorf("the node's first process ended: %s: %w", lastLine(l.in("logs", "node.log")), cmp.Or(err, errEnded))
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	group.Go(func() error {
		defer close(done)
		images := make(chan error, 1)
		go func() { images <- l.pushOwnImages(ctx) }()
		if err := l.poll(ctx, p, "API server ready", func() (bool, error) { return l.kubectl(ctx, nil, "", "get", "--raw", "/readyz") == nil, nil }); err != nil {
			return err
		}
		if err := l.kubectl(ctx, nil, corednsManifest, "apply", "-f", "-"); err != nil {
			return err
		}
		if err := <-images; err != nil {
			return err
		}
		p.say("images in the registry")
		if err := l.poll(ctx, p, "node ready", func() (bool, error) { return l.nodeReady(ctx) }); err != nil {
			return err
		}
		return l.poll(ctx, p, "CoreDNS ready", func() (bool, error) { return l.dnsReady(ctx) })
	})
	return group.Wait()
}

// poll asks until the answer is yes.
func (l lab) poll(ctx context.Context, p progress, what string, ask func() (bool, error)) error {
	for {
		yes, err := ask()
		if yes {
			p.say("%s", what)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %q: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (l lab) nodeReady(ctx context.Context) (bool, error) {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := l.kubectl(ctx, &node, "", "get", "--raw", "/api/v1/nodes/"+nodeName); err != nil {
		return false, err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status == "True", nil
		}
	}
	return false, nil
}

func (l lab) dnsReady(ctx context.Context) (bool, error) {
	var deployment struct{ Status struct{ ReadyReplicas int } }
	err := l.kubectl(ctx, &deployment, "", "get", "--raw", "/apis/apps/v1/namespaces/kube-system/deployments/coredns")
	return deployment.Status.ReadyReplicas > 0, err
}

// kubectl runs kubectl with an input, and reads the JSON that it prints where there is somewhere to put it.
func (l lab) kubectl(ctx context.Context, answer any, input string, args ...string) error {
	cmd := exec.CommandContext(ctx, l.tool("kubectl"), append([]string{"--kubeconfig", l.kubeconfig()}, args...)...) //nolint:gosec // the arguments are written above
	cmd.Stdin = strings.NewReader(input)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(out, answer)
}

func lastLine(file string) string {
	text, err := os.ReadFile(file) //nolint:gosec // a log of the lab
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
