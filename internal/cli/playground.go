// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tulle-mesh/tulle/examples"
	"github.com/tulle-mesh/tulle/internal/playground"
)

// insideCommand leads to the parts that this program plays inside a playground.
const insideCommand = "inside"

// playgroundOptions are the flags of playground.
type playgroundOptions struct {
	out   *format
	keep  bool
	agent string
	envoy string
}

func newPlayground(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "playground SCENARIO",
		Short: "Run a scenario with real Envoys on this machine: no Kubernetes, no containers, no root needed",
		Long: `Playground runs a scenario - manifests, steps, expectations - with real Envoys: every workload gets a network
namespace of its own, an Envoy started by tulle-agent, and the iptables redirect. Nothing on the machine changes, and
nothing stays behind, whichever way it ends.

SCENARIO is a name (` + strings.Join(examples.Names(), ", ") + `) or a directory with a scenario.yaml.
The exit code is 0 only if all that the scenario expects came true.`,
		Example: `  # App Mesh's DJ app, from its own manifests, with a measured canary
  tulle playground djapp

  # Leave it running, and look around from inside
  tulle playground djapp --keep
  tulle playground exec dj -- curl -s http://jazz.prod.svc.cluster.local:9080/`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(examples.Names(), cobra.ShellCompDirectiveFilterDirs),
	}
	o := &playgroundOptions{out: addFormat(c, "table", "json", "yaml")}
	c.Flags().BoolVar(&o.keep, "keep", false, "leave everything running after the last step, until Ctrl-C")
	c.Flags().StringVar(&o.agent, "agent", "", "path of tulle-agent; by default the one beside this program, then PATH")
	c.Flags().StringVar(&o.envoy, "envoy", "", "path of Envoy; by default TULLE_ENVOY, then ENVOY, then the cache that hack/envoy.sh fills, then PATH")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := untilSignal(cmd.Context())
		defer stop()
		return runPlayground(ctx, env, o, args[0])
	}
	c.AddCommand(newPlaygroundExec(), newPlaygroundList(env), newInside(env))
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
	return c
}

func runPlayground(ctx context.Context, env Env, o *playgroundOptions, scenario string) error {
	if err := o.out.check(); err != nil {
		return err
	}
	dir, err := scenarioDir(scenario)
	if err != nil {
		return usageError{err}
	}
	agent, err := findProgram("agent", o.agent, filepath.Join(filepath.Dir(env.Executable), "tulle-agent"), "tulle-agent")
	if err != nil {
		return err
	}
	envoy, err := findProgram("envoy", o.envoy, env.Getenv("TULLE_ENVOY"), env.Getenv("ENVOY"), cachedEnvoy(env), "envoy")
	if err != nil {
		return err
	}
	finished := func(r playground.Report, pods []playground.Pod) error {
		if err := printReport(env.Stdout, o.out, r); err != nil || !o.keep {
			return err
		}
		return printPods(env.Stderr, pods)
	}
	report, err := playground.Run(ctx, playground.Options{
		Scenario: dir, Self: []string{env.Executable, "playground", insideCommand},
		Tulle: env.Executable, Agent: agent, Envoy: envoy, Path: env.Getenv("PATH"),
		Keep: o.keep, Progress: env.Stderr, Stderr: env.Stderr, Finished: finished,
	})
	if err != nil {
		return err
	}
	if !report.OK {
		return exitError(codeError)
	}
	return nil
}

func scenarioDir(name string) (fs.FS, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() && strings.ContainsRune(name, filepath.Separator) {
		return os.DirFS(name), nil
	}
	known, err := examples.Scenario(name)
	if err == nil {
		return known, nil
	}
	if info, statErr := os.Stat(name); statErr == nil && info.IsDir() {
		return os.DirFS(name), nil
	}
	return nil, err
}

// cachedEnvoy is where hack/envoy.sh puts the Envoy that this version is made with.
func cachedEnvoy(env Env) string {
	cache := env.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(env.Getenv("HOME"), ".cache")
	}
	return filepath.Join(cache, "tulle", "envoy", "1.40.0", "envoy")
}

// findProgram returns the first candidate that is there, as an absolute path. The first candidate is the flag's value, which must be right if it is given.
func findProgram(flag string, candidates ...string) (string, error) {
	for i, c := range candidates {
		if c == "" {
			continue
		}
		path, err := exec.LookPath(c)
		if err == nil {
			return filepath.Abs(path)
		}
		if i == 0 {
			return "", usagef("--%s %s: %w", flag, c, err)
		}
	}
	name := candidates[len(candidates)-1]
	return "", fmt.Errorf("%s is not here: give its path with --%s, or run 'make demo', which builds and fetches what it needs", name, flag)
}

func printReport(w io.Writer, out *format, r playground.Report) error {
	if out.value == "table" {
		return r.Table(w)
	}
	return out.write(w, r)
}

func printPods(w io.Writer, pods []playground.Pod) error {
	lines := []string{"", "Everything is still running; Ctrl-C ends it. Look around from inside, in another terminal:"}
	for _, p := range pods {
		lines = append(lines, fmt.Sprintf("  tulle playground exec %s -- curl -s localhost:9901/clusters", p.Name))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func newPlaygroundList(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the pods of playgrounds that run with --keep",
		Example: `  tulle playground list
  tulle playground list -o json`,
	}
	out := addFormat(c, "table", "json", "yaml")
	c.RunE = func(*cobra.Command, []string) error {
		if err := out.check(); err != nil {
			return err
		}
		pods, err := playground.Pods()
		if err != nil {
			return err
		}
		if out.value != "table" {
			return out.write(env.Stdout, podRows(pods))
		}
		list := make([][]string, 0, len(pods))
		for _, p := range pods {
			list = append(list, []string{p.Namespace, p.Name, fmt.Sprint(p.PID)})
		}
		return table(env.Stdout, []string{"NAMESPACE", "POD", "PID"}, list)
	}
	return c
}

// podRow is a pod as machines read it.
type podRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	PID       int    `json:"pid"`
}

func podRows(pods []playground.Pod) []podRow {
	list := make([]podRow, 0, len(pods))
	for _, p := range pods {
		list = append(list, podRow{Namespace: p.Namespace, Name: p.Name, PID: p.PID})
	}
	return list
}

func newPlaygroundExec() *cobra.Command {
	return &cobra.Command{
		Use:   "exec POD -- COMMAND",
		Short: "Run a command inside a pod of a playground that runs with --keep",
		Long:  "Exec runs a command in the namespaces of a pod. POD may be the pod's name or the first part of it.",
		Example: `  tulle playground exec dj -- curl -s http://jazz.prod.svc.cluster.local:9080/
  tulle playground exec dj -- curl -s localhost:9901/clusters`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			pods, err := playground.Pods()
			if err != nil {
				return err
			}
			pod, err := pickPod(pods, args[0])
			if err != nil {
				return usageError{err}
			}
			argv := pod.NSEnter(args[1:]...)
			program, err := exec.LookPath(argv[0])
			if err != nil {
				return fmt.Errorf("%s is missing: apt-get install util-linux", argv[0])
			}
			// The command takes this program's place, so that signals and the terminal are its own.
			return syscall.Exec(program, argv, os.Environ()) //nolint:gosec // running what the user names is what exec is for
		},
	}
}

func pickPod(pods []playground.Pod, name string) (playground.Pod, error) {
	var found []playground.Pod
	for _, p := range pods {
		if p.Name == name {
			return p, nil
		}
		if strings.HasPrefix(p.Name, name+"-") {
			found = append(found, p)
		}
	}
	switch {
	case len(pods) == 0:
		return playground.Pod{}, errors.New("no playground is running: start one with 'tulle playground djapp --keep'")
	case len(found) == 0:
		return playground.Pod{}, fmt.Errorf("there is no pod %s: 'tulle playground list' shows those there are", name)
	case len(found) > 1:
		names := make([]string, 0, len(found))
		for _, p := range found {
			names = append(names, p.Name)
		}
		return playground.Pod{}, fmt.Errorf("%s may be any of %s: give the whole name", name, strings.Join(names, ", "))
	}
	return found[0], nil
}

func newInside(env Env) *cobra.Command {
	return &cobra.Command{
		Use:                insideCommand,
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return playground.Inside(ctx, []string{env.Executable, "playground", insideCommand}, args)
		},
	}
}
