// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package identity

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tulle-mesh/tulle/internal/clock"
)

// refresh is how often the published roots are read. A root is published long before anything is signed with it.
const refresh = 30 * time.Second

// Roots are those that a control plane has published. It is safe for concurrent use.
type Roots struct {
	clients   kubernetes.Interface
	namespace string
	clock     clock.Clock
	logger    *slog.Logger
	pem       atomic.Pointer[[]byte]
}

// NewRoots makes the roots of the control plane of a namespace, which are not known before they run.
func NewRoots(clients kubernetes.Interface, namespace string, clock clock.Clock, logger *slog.Logger) *Roots {
	return &Roots{clients: clients, namespace: namespace, clock: clock, logger: logger}
}

// PEM is what was read last; nil before the first time.
func (r *Roots) PEM() []byte {
	if p := r.pem.Load(); p != nil {
		return *p
	}
	return nil
}

// Run reads the roots until ctx ends. What was read stays when it cannot be read again.
func (r *Roots) Run(ctx context.Context) {
	fault := ""
	for ctx.Err() == nil {
		err := r.read(ctx)
		wait := refresh
		if err != nil {
			wait = retry
			if err.Error() != fault && ctx.Err() == nil {
				r.logger.WarnContext(ctx, "the control plane's roots cannot be read; pods get no proxy before they can", "error", err,
					"known", r.PEM() != nil, "mend", "install the chart appmesh-controller in the namespace "+r.namespace)
			}
			fault = err.Error()
		} else {
			fault = ""
		}
		select {
		case <-ctx.Done():
		case <-r.clock.After(wait):
		}
	}
}

func (r *Roots) read(ctx context.Context) error {
	found, err := r.clients.CoreV1().ConfigMaps(r.namespace).Get(ctx, Bundle, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if found.Data[BundleKey] == "" {
		return fmt.Errorf("the ConfigMap %s/%s has no %s", r.namespace, Bundle, BundleKey)
	}
	pem := []byte(found.Data[BundleKey])
	r.pem.Store(&pem)
	return nil
}
