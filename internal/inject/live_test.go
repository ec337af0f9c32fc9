// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tulle-mesh/tulle/test/apiserver"
)

var server apiserver.Shared

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// TestARealAPIServerTakesTheMutatedPods has an API server check each pod of the golden cases, as it does after the webhook has answered.
func TestARealAPIServerTakesTheMutatedPods(t *testing.T) {
	t.Parallel()
	clients, err := kubernetes.NewForConfig(server.Get(t).Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, input := range inputs {
		in, w := load(t, input)
		got := w.create(t, in.Pod)
		if got.refused != "" {
			continue
		}
		checked++
		// The plugin that names the ServiceAccount of pods, before webhooks are asked, is off in this API server.
		body, err := jsonpatch.MergePatch(got.pod, []byte(`{"spec":{"serviceAccountName":"default"}}`))
		if err != nil {
			t.Fatal(err)
		}
		var stored corev1.Pod
		err = clients.CoreV1().RESTClient().Post().Namespace("shop").Resource("pods").Param("dryRun", "All").
			SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Into(&stored)
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(input), err)
			continue
		}
		var want corev1.Pod
		if err := json.Unmarshal(got.pod, &want); err != nil {
			t.Fatal(err)
		}
		if a, b := len(want.Spec.InitContainers)+len(want.Spec.Containers), len(stored.Spec.InitContainers)+len(stored.Spec.Containers); a != b {
			t.Errorf("%s: %d containers of %d were kept", filepath.Base(input), b, a)
		}
	}
	if checked < 20 {
		t.Errorf("%d pods were looked at; there were to be more", checked)
	}
}
