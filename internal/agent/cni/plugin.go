// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package cni is the redirect of a pod's connections as a chained CNI plugin, for pods that may not change their own network, and the plugin's installation on a
// node. The agent's cni command calls it.
//
// The plugin runs after those that make the pod's interface and before any of its containers. It reads the pod's annotations, which the container runtime hands
// over, and leaves alone every pod whose annotations do not ask for it.
package cni

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/tulle-mesh/tulle/internal/agent/redirect"
)

// Program is the plugin's type in a network's configuration, which is the name of its program.
const Program = "tulle-cni"

// annotationsCapability is by which containerd hands over a pod's annotations.
const annotationsCapability = "io.kubernetes.cri.pod-annotations"

// The plugin's own error codes; those below 100 are the specification's.
const (
	codeAnnotation = 100
	codeNamespace  = 101
	codeRedirect   = 102
	codeRuntime    = 103
)

// Main does what the environment asks of a plugin, with the configuration on standard input and the answer on standard output, as the specification says. about is
// what a person is told who starts it by hand. An error is for the caller to print.
func Main(ctx context.Context, log *slog.Logger, about string) *types.Error {
	p := plugin{ctx: ctx, log: log}
	return skel.PluginMainFuncsWithError(skel.CNIFuncs{
		Add: p.add, Check: p.check,
		// The rules go with the pod's network namespace.
		Del: func(*skel.CmdArgs) error { return nil }, GC: func(*skel.CmdArgs) error { return nil },
		// Nothing has to be ready for pods that are not captured; where a captured one meets an obstacle, its ADD says so.
		Status: func(*skel.CmdArgs) error { return nil },
	}, version.VersionsStartingFrom("0.3.1"), about)
}

// plugin answers one command.
type plugin struct {
	ctx context.Context //nolint:containedctx // the process's: the functions that skel takes have none
	log *slog.Logger
}

// network is the part of the configuration that this plugin reads.
type network struct {
	types.PluginConf

	RuntimeConfig map[string]json.RawMessage `json:"runtimeConfig"`
}

func (p plugin) add(args *skel.CmdArgs) error {
	conf, config, err := read(args)
	if err != nil {
		return err
	}
	if conf.PrevResult == nil {
		return types.NewError(types.ErrInvalidNetworkConfig, Program+" is the first plugin of the network", "put it after the plugin that makes the pod's interface")
	}
	if config != nil {
		err := p.inside(args, func() error { return redirect.Apply(p.ctx, *config, p.log) })
		if err != nil {
			return err
		}
	}
	return types.PrintResult(conf.PrevResult, conf.CNIVersion)
}

func (p plugin) check(args *skel.CmdArgs) error {
	_, config, err := read(args)
	if err != nil || config == nil {
		return err
	}
	return p.inside(args, func() error { return redirect.Check(p.ctx, *config) })
}

// inside runs what changes the pod's rules, or reads them, in its network namespace.
func (p plugin) inside(args *skel.CmdArgs, do func() error) error {
	err := within(args.Netns, do)
	if _, ok := errors.AsType[*namespaceError](err); ok {
		return types.NewError(codeNamespace, fmt.Sprintf("the connections of pod %s cannot be captured", podOf(args.Args)), err.Error())
	}
	if err != nil {
		return types.NewError(codeRedirect, fmt.Sprintf("the connections of pod %s are not captured", podOf(args.Args)), err.Error())
	}
	return nil
}

// read returns the network's configuration and what is to be captured, nil for nothing.
func read(args *skel.CmdArgs) (*network, *redirect.Config, error) {
	var conf network
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return nil, nil, types.NewError(types.ErrDecodingFailure, "cannot read the network's configuration", err.Error())
	}
	if err := version.ParsePrevResult(&conf.PluginConf); err != nil {
		return nil, nil, types.NewError(types.ErrDecodingFailure, "cannot read the result of the plugins before this one", err.Error())
	}
	pod := podOf(args.Args)
	raw, told := conf.RuntimeConfig[annotationsCapability]
	if !told {
		if pod == "" {
			return &conf, nil, nil // not a pod of Kubernetes
		}
		return nil, nil, types.NewError(codeRuntime, fmt.Sprintf("the container runtime does not say what annotations pod %s has", pod), fmt.Sprintf(
			"the plugin's entry needs \"capabilities\": {%q: true}, and the runtime must know it, as containerd has since 1.6; otherwise uninstall %s and leave the redirect to the init container", annotationsCapability, Program))
	}
	var annotations map[string]string
	if err := json.Unmarshal(raw, &annotations); err != nil {
		return nil, nil, types.NewError(types.ErrDecodingFailure, fmt.Sprintf("cannot read the annotations of pod %s", pod), err.Error())
	}
	config, err := captured(annotations)
	if err != nil {
		return nil, nil, types.NewError(codeAnnotation, fmt.Sprintf("pod %s cannot be captured", pod), strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return &conf, config, nil
}

// podOf returns the pod's namespace and name, or nothing where a container is no pod of Kubernetes.
func podOf(args string) string {
	var namespace, name string
	for pair := range strings.SplitSeq(args, ";") {
		key, value, _ := strings.Cut(pair, "=")
		switch key {
		case "K8S_POD_NAMESPACE":
			namespace = value
		case "K8S_POD_NAME":
			name = value
		}
	}
	if name == "" {
		return ""
	}
	return namespace + "/" + name
}

// namespaceError says why a network namespace cannot be worked in.
type namespaceError struct{ error }

func (e *namespaceError) Unwrap() error { return e.error }

func namespacef(format string, args ...any) error {
	return &namespaceError{fmt.Errorf(format, args...)}
}

// gone says whether an error means that a file is not there.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
