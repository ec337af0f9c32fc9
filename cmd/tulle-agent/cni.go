// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tulle-mesh/tulle/internal/agent/cni"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/version"
)

// asPlugin says whether a container runtime has started this program as a CNI plugin, which has no arguments.
func asPlugin(args []string) bool {
	return len(args) == 1 && filepath.Base(args[0]) == cni.Program
}

// pluginPath is where iptables is looked for after what the container runtime's own PATH names.
const pluginPath = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"

// plugin answers a container runtime, and returns the exit code.
func plugin(ctx context.Context) int {
	path, _ := os.LookupEnv("PATH")
	if err := os.Setenv("PATH", path+":"+pluginPath); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	about := fmt.Sprintf("%s %s: the redirect of tulle-agent as a CNI plugin; a container runtime starts it, and 'tulle-agent cni install' installs it", cni.Program, version.String())
	if err := cni.Main(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)), about); err != nil {
		if err := err.Print(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return 1
	}
	return 0
}

func newCNICommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cni",
		Short: "Be the CNI plugin that captures pods' connections, or install it on a node",
		Long: `cni is 'redirect' as a chained CNI plugin, for pods that may not have the
capability NET_ADMIN: the rules are made while the pod's network is, before any
of its containers starts. It takes what to do from the pod annotations that the
injector writes (annotation appmesh.k8s.aws/appmeshCNI: enabled), which the
container runtime hands over, and leaves every other pod alone.

Without a subcommand it reads a network's configuration from standard input and
the rest from the variables CNI_*, as a container runtime gives them (CNI 0.3.1
to 1.1). The node needs iptables. Pods with users of their own (hostUsers: false)
are refused.`,
		Example: `  tulle-agent cni install --conf-dir /host/etc/cni/net.d --bin-dir /host/opt/cni/bin
  tulle-agent cni check --conf-dir /etc/cni/net.d --bin-dir /opt/cni/bin`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if value, ok := os.LookupEnv("CNI_COMMAND"); !ok || value == "" {
				return &usageError{errors.New("no CNI_COMMAND: a container runtime sets it; to install the plugin use 'tulle-agent cni install'")}
			}
			if code := plugin(cmd.Context()); code != 0 {
				os.Exit(code) // what is wrong has been said, as the specification wants it
			}
			return nil
		},
	}
	cmd.AddCommand(newCNIInstallCommand(), newCNIUninstallCommand(), newCNICheckCommand())
	return cmd
}

// cniFolders adds the flags that name a node's folders.
func cniFolders(cmd *cobra.Command, i *cni.Installer) {
	flags := cmd.Flags()
	flags.StringVar(&i.ConfDir, "conf-dir", "/etc/cni/net.d", "folder of the node's networks, as this program sees it")
	flags.StringVar(&i.BinDir, "bin-dir", "/opt/cni/bin", "folder of the node's CNI plugins, as this program sees it")
	cmd.Args = cobra.NoArgs
}

func newCNIInstallCommand() *cobra.Command {
	i := cni.Installer{Clock: clock.Real{}}
	var daemonSet string
	var once bool
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the plugin on a node, and keep it there",
		Long: `install copies this program into the folder of plugins and adds itself to the end
of the node's first network. It stays and mends what other installers change; at
SIGTERM it takes everything out again. With --daemonset it first asks the API
server whether that DaemonSet goes on, and leaves the plugin for the next pod.

A network that is not a list (.conflist), cannot be read or is older than CNI
0.3.1 is not touched, and is an error.`,
		Example: `  tulle-agent cni install --conf-dir /host/etc/cni/net.d --bin-dir /host/opt/cni/bin
  tulle-agent cni install --once`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			i.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
			var err error
			if i.Program, err = os.Executable(); err != nil {
				return err
			}
			if once {
				_, err := i.Install()
				return err
			}
			if daemonSet != "" {
				if i.Wanted, err = wantedBy(daemonSet, i.Logger); err != nil {
					return err
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
			defer stop()
			return i.Run(ctx)
		},
	}
	cniFolders(cmd, &i)
	cmd.Flags().StringVar(&daemonSet, "daemonset", "", "name of the DaemonSet that this pod belongs to, in the namespace of $POD_NAMESPACE; needs the right to get it")
	cmd.Flags().BoolVar(&once, "once", false, "install it and end")
	return cmd
}

// serviceAccount is where a pod finds its own.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// wantedBy asks the API server of the cluster that this pod runs in.
func wantedBy(daemonSet string, log *slog.Logger) (func(context.Context) bool, error) {
	var missing []error
	get := func(name string) string {
		value, ok := os.LookupEnv(name)
		if !ok || value == "" {
			missing = append(missing, fmt.Errorf("--daemonset: the variable %s is missing", name))
		}
		return value
	}
	d := cni.DaemonSet{
		Name: daemonSet, Namespace: get("POD_NAMESPACE"), Server: net.JoinHostPort(get("KUBERNETES_SERVICE_HOST"), get("KUBERNETES_SERVICE_PORT")),
		Credentials: serviceAccount, Logger: log,
	}
	if err := errors.Join(missing...); err != nil {
		return nil, &usageError{err}
	}
	return d.Wanted, nil
}

func newCNIUninstallCommand() *cobra.Command {
	var i cni.Installer
	cmd := &cobra.Command{
		Use:     "uninstall",
		Short:   "Take the plugin out of a node",
		Example: "  tulle-agent cni uninstall",
		RunE:    func(*cobra.Command, []string) error { return i.Uninstall() },
	}
	cniFolders(cmd, &i)
	return cmd
}

func newCNICheckCommand() *cobra.Command {
	var i cni.Installer
	cmd := &cobra.Command{
		Use:     "check",
		Short:   "Say whether the plugin is in place on a node; the exit code says it too",
		Example: "  tulle-agent cni check",
		RunE:    func(*cobra.Command, []string) error { return i.Check() },
	}
	cniFolders(cmd, &i)
	return cmd
}
