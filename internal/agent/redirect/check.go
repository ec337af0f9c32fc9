// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package redirect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Check says whether this network namespace has the rules that Apply makes: the chains, in order what they do, and the ways to them.
func Check(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	var faults []error
	for _, f := range families(&c) {
		err := checkFamily(ctx, &c, f)
		if err != nil && f.name == ipv6.name {
			// As Apply does: without an address there is nothing to capture.
			if addresses, addressErr := ipv6Addresses(); addressErr == nil && len(addresses) == 0 {
				continue
			}
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func checkFamily(ctx context.Context, c *Config, f family) error {
	saved, err := run(ctx, "", f.save, "-t", "nat")
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	if have, want := effects(saved), effects(transaction(c, f, state{})); !slices.Equal(have, want) {
		return fmt.Errorf("%s: the rules are not those that were made: want %s; have %s", f.name, described(want), described(have))
	}
	return nil
}

func described(effects []string) string {
	if len(effects) == 0 {
		return "none"
	}
	return strings.Join(effects, ", ")
}

// effects are the chain and the target of each of our rules: what does not depend on how a version of iptables words a match. The order within a chain is kept.
func effects(saved string) []string {
	var list []string
	for line := range strings.Lines(saved) {
		rule, ok := strings.CutPrefix(strings.TrimSpace(line), "-A ")
		if !ok {
			continue
		}
		chain, _, _ := strings.Cut(rule, " ")
		if _, target, found := strings.Cut(rule, " -j "); found && (chain == ingressChain || chain == egressChain || leadsToOurs(rule)) {
			list = append(list, chain+" -> "+target)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int {
		left, _, _ := strings.Cut(a, " ")
		right, _, _ := strings.Cut(b, " ")
		return strings.Compare(left, right)
	})
	return list
}
