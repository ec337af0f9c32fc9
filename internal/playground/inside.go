// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package playground

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/playground/sandbox"
	"github.com/tulle-mesh/tulle/internal/playground/traffic"
)

// Roles that this executable plays inside, besides those of package sandbox.
const (
	roleDirector = "director"
	roleApp      = "app"
	roleRequest  = "request"
	roleLoad     = "load"
)

// Inside plays a part inside a sandbox. argv is Options.Self and args what follows it: the role and its arguments.
// Users have no business here, so the command that leads to it is hidden.
func Inside(ctx context.Context, argv, args []string) error {
	if len(args) == 0 {
		return errors.New("this command is for the playground's own use")
	}
	role, args := args[0], args[1:]
	switch role {
	case sandbox.RoleInit:
		return sandbox.Init(argv, args)
	case sandbox.RolePod:
		return sandbox.Hold(ctx, args)
	case sandbox.RoleEnter:
		return sandbox.Enter(args)
	case roleDirector:
		return direct(ctx, argv)
	case roleApp:
		if len(args) != 2 {
			return errors.New("app takes an address and a response")
		}
		return traffic.Serve(ctx, args[0], args[1], os.Stdout)
	case roleRequest:
		if len(args) != 1 {
			return errors.New("request takes a URL")
		}
		return json.NewEncoder(os.Stdout).Encode(traffic.Get(ctx, args[0]))
	case roleLoad:
		var p traffic.Plan
		if len(args) != 1 || json.Unmarshal([]byte(args[0]), &p) != nil {
			return errors.New("load takes a plan")
		}
		return traffic.Load(ctx, p, clock.Real{}, os.Stdin, os.Stdout)
	}
	return fmt.Errorf("no role %q", role)
}

// direct is the program inside: it builds the world and does the scenario's steps.
func direct(ctx context.Context, argv []string) error {
	data, err := io.ReadAll(os.NewFile(sandbox.PlanFD, "plan"))
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	var p plan
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	p.Scenario.Manifests = p.Manifests
	events := json.NewEncoder(os.NewFile(sandbox.EventsFD, "events"))
	w, err := newWorld(p, argv, clock.Real{}, func(text string) { _ = events.Encode(event{Progress: text}) })
	if err == nil {
		err = w.run(ctx)
	}
	if err != nil {
		return events.Encode(event{Error: err.Error()})
	}
	if err := events.Encode(event{Report: &w.report}); err != nil {
		return fmt.Errorf("reporting: %w", err)
	}
	if p.Keep {
		<-ctx.Done()
	}
	return nil
}
