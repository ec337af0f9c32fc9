// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package playground

import (
	"github.com/tulle-mesh/tulle/internal/playground/sandbox"
)

// Pod is a pod of a playground that runs, as seen from outside.
type Pod = sandbox.Running

// Pods lists the pods of the playgrounds that this user has running, sorted by namespace and name.
func Pods() ([]Pod, error) { return sandbox.Find() }
