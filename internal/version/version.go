// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package version says which build this is; the commands, the agent and the delivery may call it.
package version

// version is set by the linker.
var version = "v1.20.0-dev"

// String returns the version, such as "v1.20.0". Tulle's versions continue those of the App Mesh controller, which ended at v1.13.3.
func String() string { return version }
