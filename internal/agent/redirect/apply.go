// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package redirect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"strings"

	"github.com/tulle-mesh/tulle/internal/agent/userns"
)

// Apply brings this network namespace's rules to what the configuration wants, whatever of ours was there before. Each family changes in one step.
func Apply(ctx context.Context, c Config, log *slog.Logger) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := checkOwners(&c); err != nil {
		return err
	}
	if c.IPv6 {
		// IPv6 first: it is the one that a kernel may lack, and then nothing has been changed.
		if err := applyFamily(ctx, &c, ipv6); err != nil {
			addresses, addressErr := ipv6Addresses()
			if addressErr != nil || len(addresses) > 0 {
				return errors.Join(fmt.Errorf("%w: this kernel may have no NAT for IPv6: load ip6table_nat, or leave IPv6 alone with APPMESH_ENABLE_IPV6=0 (annotation appmesh.k8s.aws/ipv6: disabled)", err), addressErr)
			}
			log.WarnContext(ctx, "IPv6 is not captured; there is no IPv6 address here that could be reached", "error", err)
		}
	}
	return applyFamily(ctx, &c, ipv4)
}

// Undo takes all our rules out of this network namespace. Where there are none it does nothing. IPv6 is left out where the configuration says so.
func Undo(ctx context.Context, c Config) error {
	var faults []error
	for _, f := range families(&c) {
		from, err := readState(ctx, f)
		if err == nil && len(from.chains)+len(from.jumps) > 0 {
			err = restore(ctx, f, undoing(from))
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", f.name, err))
		}
	}
	return errors.Join(faults...)
}

// Print writes, as a shell script, what Apply would do in a namespace that has none of our rules, or, with undo, what Undo would do after it.
func Print(w io.Writer, c Config, undo bool) error {
	if err := c.Validate(); err != nil {
		return err
	}
	var script strings.Builder
	for _, f := range families(&c) {
		text := transaction(&c, f, state{})
		if undo {
			text = undoing(parseState(text))
		}
		fmt.Fprintf(&script, "# %s\n%s --wait --noflush <<'EOF'\n%sEOF\n", f.name, f.restore, text)
	}
	_, err := io.WriteString(w, script.String())
	return err
}

func families(c *Config) []family {
	if c.IPv6 {
		return []family{ipv6, ipv4}
	}
	return []family{ipv4}
}

func applyFamily(ctx context.Context, c *Config, f family) error {
	from, err := readState(ctx, f)
	if err == nil {
		err = restore(ctx, f, transaction(c, f, from))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return nil
}

// checkOwners says in one line what iptables says in none: that it cannot know a user of whom the user namespace knows nothing.
func checkOwners(c *Config) error {
	if c.User != nil {
		if err := userns.CheckUser(*c.User); err != nil {
			return fmt.Errorf("connections of user %d cannot be told apart: %w", *c.User, err)
		}
	}
	if c.Group != nil {
		if err := userns.CheckGroup(*c.Group); err != nil {
			return fmt.Errorf("connections of group %d cannot be told apart: %w", *c.Group, err)
		}
	}
	return nil
}

func readState(ctx context.Context, f family) (state, error) {
	saved, err := run(ctx, "", f.save, "-t", "nat")
	return parseState(saved), err
}

func restore(ctx context.Context, f family, text string) error {
	_, err := run(ctx, text, f.restore, "--wait", "--noflush")
	return err
}

// run runs one of iptables' programs and makes sense of its failure.
func run(ctx context.Context, input, name string, args ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is missing: apt-get install iptables", name)
	}
	command := exec.CommandContext(ctx, path, args...) //nolint:gosec // G204: one of four fixed names, found in PATH
	command.Stdin = strings.NewReader(input)
	var out, complaint bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaint
	if err := command.Run(); err != nil {
		words := strings.Join(strings.Fields(complaint.String()), " ")
		if strings.Contains(words, "Permission denied") || strings.Contains(words, "Operation not permitted") {
			words += " (the capability NET_ADMIN is needed)"
		}
		return "", fmt.Errorf("%s: %w: %s", name, err, words)
	}
	return out.String(), nil
}

// ipv6Addresses returns this namespace's IPv6 addresses that others can reach.
func ipv6Addresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("read the host's addresses: %w", err)
	}
	var reachable []netip.Addr
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && prefix.Addr().Is6() && prefix.Addr().IsGlobalUnicast() {
			reachable = append(reachable, prefix.Addr())
		}
	}
	return reachable, nil
}
