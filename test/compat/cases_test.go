// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package compat_test

import (
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// corpus is AWS's public example manifests; see its NOTICE.
const corpus = "testdata/corpus"

// example is one state that a walkthrough brings a cluster to.
type example struct {
	name  string
	files []string // in the order in which they are applied
	// namespace is what the walkthrough gives to kubectl's -n.
	namespace string
}

// step is the name of a file that a walkthrough applies after it has looked at the result of those before.
var step = regexp.MustCompile(`^\d+-step-`)

// alternatives are the folders whose files are not applied one after the other: each pattern list is an example of its own.
var alternatives = map[string][][]string{
	"history/djapp": {
		{"01-base_app_irsa.yaml", "../../djapp/02-meshed_app.yaml"},
		{"01-base_app_irsa.yaml", "../../djapp/02-meshed_app.yaml", "03-v2_app_irsa.yaml"},
		{"01-base_app_irsa.yaml", "../../djapp/02-meshed_app.yaml", "03-v2_app-pr469.yaml"},
	},
	"howto-k8s-ipv6": {{"01-cloud-manifest.yaml"}, {"02-dns-manifest.yaml"}},
	"howto-k8s-metrics-extension": {
		{"01-namespace.yaml", "02-djapp-v1.yaml"},
		{"01-namespace.yaml", "03-djapp-v2.yaml"},
		{"01-namespace.yaml", "04-djapp-v3.yaml"},
		{"01-namespace.yaml", "05-djapp-v4.yaml"},
		{"01-namespace.yaml", "06-djapp-v5.yaml"},
	},
	// Earlier commits of three of the files.
	"v1beta1/djapp/old": {{
		"../01-1_prod_ns.yaml", "1_initial_architecture_deployment-a6fff76.yaml", "1_initial_architecture_services-a6fff76.yaml", "../05b-synth-label-namespace.yaml",
		"../10-mesh.yaml", "../11-nodes_representing_virtual_services.yaml", "metal_and_jazz_placeholder_services-a6fff76.yaml",
		"../13-nodes_representing_physical_services.yaml", "../14-virtual-services.yaml",
	}},
}

// namespaces are those that walkthroughs give with -n.
var namespaces = map[string]string{"v1beta1/djapp": "prod", "v1beta1/djapp/old": "prod"}

// examples lists the states of all walkthroughs, sorted by name: of each folder all files in name order, and what is there before each step.
func examples(t *testing.T) []example {
	t.Helper()
	folders := map[string][]string{}
	err := filepath.WalkDir(corpus, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(file, ".yaml") {
			folder, name := path.Split(strings.TrimPrefix(filepath.ToSlash(file), corpus+"/"))
			folder = strings.TrimSuffix(folder, "/")
			folders[folder] = append(folders[folder], name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var list []example
	add := func(name, folder string, files ...string) {
		e := example{name: name, namespace: namespaces[folder]}
		if e.namespace == "" {
			e.namespace = "default"
		}
		for _, f := range files {
			e.files = append(e.files, path.Join(corpus, folder, f))
		}
		list = append(list, e)
	}
	for folder, files := range folders {
		slices.Sort(files)
		switch {
		case alternatives[folder] != nil:
			for _, alternative := range alternatives[folder] {
				add(folder+"/"+strings.TrimSuffix(alternative[len(alternative)-1], ".yaml"), folder, alternative...)
			}
		case strings.HasPrefix(folder, "readme/") || strings.HasSuffix(folder, "/old"):
			// Each is an earlier commit of the whole manifest, or a block of a README, which a reader applies to what the walkthrough has made.
			for _, f := range files {
				add(folder+"/"+strings.TrimSuffix(f, ".yaml"), folder, append(before(folder, folders), f)...)
			}
		default:
			for i, f := range files {
				if i > 0 && step.MatchString(f) {
					add(folder+" before "+strings.TrimSuffix(f, ".yaml"), folder, files[:i]...)
				}
			}
			add(folder, folder, files...)
		}
	}
	slices.SortFunc(list, func(a, b example) int { return strings.Compare(a.name, b.name) })
	return list
}

// before are the files, seen from the folder of a README's blocks, that its walkthrough has applied.
func before(folder string, folders map[string][]string) []string {
	walkthrough, block := strings.CutPrefix(folder, "readme/")
	if !block {
		return nil
	}
	files := folders[walkthrough]
	if a := alternatives[walkthrough]; a != nil {
		files = a[0]
	}
	var list []string
	for _, f := range files {
		if !step.MatchString(f) {
			list = append(list, path.Join("../..", walkthrough, f))
		}
	}
	return list
}
