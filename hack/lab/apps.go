// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tulle-mesh/tulle/hack/image/pack"
)

// shellRole is an image without a program of its own: its shell starts.
const shellRole = "shell"

// app is where the program of an image of pushApps lies.
const app = "/usr/bin/app"

// pushApps makes images of one program that plays many, and puts them into the registry. Each line of the list is ROLE NAME:TAG: the image's command is the
// program with the role as its argument.
func (l lab) pushApps(ctx context.Context, out io.Writer, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: lab apps PROGRAM LIST")
	}
	if _, err := l.running(); err != nil {
		return err
	}
	if err := pack.Missing(helloNeeds()...); err != nil {
		return err
	}
	list, err := os.ReadFile(args[1]) //nolint:gosec // the file that the user names
	if err != nil {
		return err
	}
	layer, err := withTools(ctx, app, args[0])
	if err != nil {
		return err
	}
	pushed := 0
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 2 {
			return fmt.Errorf("%s: %q: want ROLE NAME:TAG", args[1], strings.TrimSpace(line))
		}
		command := []string{app, words[0]}
		if words[0] == shellRole {
			command = nil
		}
		image, err := pack.Image(appConfig(command...), layer)
		if err != nil {
			return err
		}
		if err := l.pushImage(ctx, words[1], image); err != nil {
			return err
		}
		pushed++
	}
	_, err = fmt.Fprintf(out, "pushed %d images of %s\n", pushed, args[0])
	return err
}
