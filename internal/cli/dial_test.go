// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli_test

import (
	"context"
	"net"
)

func dialUnix(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
}
