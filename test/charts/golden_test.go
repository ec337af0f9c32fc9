// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package charts_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestValuesMakeManifests renders each testdata/CHART/NAME.values.yaml and compares it with NAME.golden.yaml.
func TestValuesMakeManifests(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*/*.values.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	if *update {
		prune(t, inputs)
	}
	for _, input := range inputs {
		chart := filepath.Base(filepath.Dir(input))
		t.Run(chart+": "+strings.TrimSuffix(filepath.Base(input), ".values.yaml"), func(t *testing.T) {
			t.Parallel()
			golden := golden(input)
			got := newHelm(t).run("template", chart, chartPath(chart), "-n", "appmesh-system", "--kube-version", kubeVersion, "-f", input)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s differs (-want +got), write it anew with -update:\n%s", golden, diff)
			}
		})
	}
}

func golden(input string) string { return strings.TrimSuffix(input, ".values.yaml") + ".golden.yaml" }

// prune removes golden files whose input is gone.
func prune(t *testing.T, inputs []string) {
	t.Helper()
	var wanted []string
	for _, input := range inputs {
		wanted = append(wanted, golden(input))
	}
	have, err := filepath.Glob("testdata/*/*.golden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range have {
		if !slices.Contains(wanted, file) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestWrongValuesAreRefusedWithTheirName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chart, set, want string
	}{
		"replicas in words":                   {controllerChart, "replicaCount=two", "/replicaCount"},
		"a sidecar mode that does not exist":  {controllerChart, "sidecar.mode=nativ", "/sidecar/mode"},
		"a region that is a number":           {controllerChart, "region=5", "/region"},
		"an account that is too short":        {controllerChart, "accountId=x12", "/accountId"},
		"an unknown tracer":                   {controllerChart, "tracing.provider=zipkin", "/tracing/provider"},
		"a port out of range":                 {controllerChart, "stats.statsdPort=70000", "/stats/statsdPort"},
		"a switch that is neither on nor off": {controllerChart, "sds.enabled=maybe", "/sds/enabled"},
		"an SDS socket that is not a path":    {controllerChart, "sds.udsPath=socket", "/sds/udsPath"},
		"memory without a unit that exists":   {controllerChart, "sidecar.resources.requests.memory=32megs", "/sidecar/resources/requests/memory"},
		"an image with its tag":               {controllerChart, "image.repository=example.org/tulle:v1", "/image/repository"},
		"a log level":                         {controllerChart, "log.level=loud", "/log/level"},
		"placeholder Services in a word":      {controllerChart, "placeholderServices=always", "/placeholderServices"},
		"an egress filter":                    {injectChart, "mesh.egressFilter=DROP", "/mesh/egressFilter"},
		"the injector's replicas":             {injectChart, "replicaCount=two", "/replicaCount"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := newHelm(t).try("template", c.chart, chartPath(c.chart), "--kube-version", kubeVersion, "--set", c.set)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("--set %s: want a refusal that names %s, got %v\n%.200s", c.set, c.want, err, out)
			}
		})
	}
}

// What the original's charts took is taken, whatever it means here.
func TestValuesOfTheOriginalAreTaken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chart string
		args  []string
	}{
		"every value of appmesh-controller": {controllerChart, []string{"-f", "testdata/original-controller.yaml"}},
		"every value of appmesh-inject":     {injectChart, []string{"-f", "testdata/original-inject.yaml"}},
		"the image of the first generation": {controllerChart, []string{
			"--set", "image.repository=602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon/app-mesh-controller,image.tag=v0.5.0",
		}},
		"values nobody knows": {controllerChart, []string{"--set", "future.setting=1,sidecar.other=x"}},
		"empty sections, as --reuse-values leaves them": {controllerChart, []string{
			"--set", "sidecar=null,init=null,xray=null,crds=null,wait=null,log=null,tracing=null,stats=null,sds=null,cni=null,image=null,networkPolicy=null,serviceMonitor=null,livenessProbe=null,rbac=null,serviceAccount=null",
		}},
		"empty sections of appmesh-inject": {injectChart, []string{"--set", "sidecar=null,init=null,log=null,tracing=null,stats=null,image=null,rbac=null,serviceAccount=null"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newHelm(t).template(c.chart, c.args...)
			pick(t, made, "ClusterRole", c.chart)
			pick(t, made, "ServiceAccount", c.chart)
			text, err := pick(t, made, "Deployment", c.chart).MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "%!") || strings.Contains(string(text), "<nil>") || strings.Contains(string(text), "amazonaws.com/") {
				t.Errorf("the Deployment holds what no one should: %s", text)
			}
		})
	}
}
