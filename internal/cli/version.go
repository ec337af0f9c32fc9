// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tulle-mesh/tulle/internal/version"
)

func newVersion(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  tulle version
  tulle version -o json`,
	}
	out := addFormat(c, "text", "json", "yaml")
	c.RunE = func(*cobra.Command, []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if out.value != "text" {
			return out.write(env.Stdout, map[string]string{"version": version.String(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
		}
		_, err := fmt.Fprintf(env.Stdout, "tulle %s (%s, %s/%s)\n", version.String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	}
	return c
}
