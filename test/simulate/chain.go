// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package simulate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// chainFor chooses the filter chain of a connection; nil closes it.
func chainFor(l *listenerv3.Listener, r *Request) (*listenerv3.FilterChain, error) {
	name, found, err := decide(l.GetFilterChainMatcher(), connection{request: r, inspected: inspects(l, r.Port)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.GetName(), err)
	}
	if !found {
		return l.GetDefaultFilterChain(), nil
	}
	i := slices.IndexFunc(l.GetFilterChains(), func(c *listenerv3.FilterChain) bool { return c.GetName() == name })
	if i < 0 {
		return nil, fmt.Errorf("%s: the tree names chain %q, which is not there", l.GetName(), name)
	}
	return l.GetFilterChains()[i], nil
}

// inspects says whether a listener reads TLS handshakes on a port.
func inspects(l *listenerv3.Listener, port int32) bool {
	for _, f := range l.GetListenerFilters() {
		if f.GetName() == "envoy.filters.listener.tls_inspector" {
			return f.GetFilterDisabled() == nil || !disabled(f.GetFilterDisabled(), port)
		}
	}
	return false
}

func disabled(p *listenerv3.ListenerFilterChainMatchPredicate, port int32) bool {
	if not := p.GetNotMatch(); not != nil {
		return !disabled(not, port)
	}
	ports := p.GetDestinationPortRange()
	return port >= ports.GetStart() && port < ports.GetEnd()
}

// connection is what matchers may ask of a connection.
type connection struct {
	request   *Request
	inspected bool
}

// input reads what an input of the tree stands for.
func (c connection) input(i *xdscorev3.TypedExtensionConfig) (string, error) {
	message, err := i.GetTypedConfig().UnmarshalNew()
	if err != nil {
		return "", err
	}
	switch message.(type) {
	case *networkv3.DestinationPortInput:
		return fmt.Sprint(c.request.Port), nil
	case *networkv3.DestinationIPInput:
		return c.request.Address.String(), nil
	case *networkv3.ServerNameInput:
		if c.inspected {
			return c.request.ServerName, nil
		}
		return "", nil
	case *networkv3.TransportProtocolInput:
		if c.inspected && c.request.ServerName != "" {
			return "tls", nil
		}
		return "raw_buffer", nil
	default:
		return "", fmt.Errorf("input %T", message)
	}
}

// decide walks a matcher to the name of a chain.
func decide(m *xdsmatcherv3.Matcher, c connection) (name string, found bool, err error) {
	switch {
	case m == nil:
		return "", false, nil
	case m.GetMatcherTree() != nil:
		tree := m.GetMatcherTree()
		value, err := c.input(tree.GetInput())
		if err != nil {
			return "", false, err
		}
		if name, found, err = follow(tree.GetExactMatchMap().GetMap()[value], c); found || err != nil {
			return name, found, err
		}
	default:
		for _, one := range m.GetMatcherList().GetMatchers() {
			hit, err := holds(one.GetPredicate().GetSinglePredicate(), c)
			if err != nil {
				return "", false, err
			}
			if hit {
				return follow(one.GetOnMatch(), c)
			}
		}
	}
	return follow(m.GetOnNoMatch(), c)
}

func follow(on *xdsmatcherv3.Matcher_OnMatch, c connection) (name string, found bool, err error) {
	if on.GetMatcher() != nil {
		return decide(on.GetMatcher(), c)
	}
	if on.GetAction() == nil {
		return "", false, nil
	}
	name, err = chainName(on.GetAction())
	return name, err == nil, err
}

func chainName(action *xdscorev3.TypedExtensionConfig) (string, error) {
	text := new(wrapperspb.StringValue)
	if err := action.GetTypedConfig().UnmarshalTo(text); err != nil {
		return "", err
	}
	return text.GetValue(), nil
}

func holds(p *xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate, c connection) (bool, error) {
	value, err := c.input(p.GetInput())
	if err != nil {
		return false, err
	}
	switch text := p.GetValueMatch().GetMatchPattern().(type) {
	case *xdsmatcherv3.StringMatcher_Exact:
		return value == text.Exact, nil
	case *xdsmatcherv3.StringMatcher_Suffix:
		return strings.HasSuffix(value, text.Suffix), nil
	default:
		return false, errors.New("a predicate without a value")
	}
}

// chainNames gathers every chain that a matcher may lead to.
func chainNames(m *xdsmatcherv3.Matcher, into map[string]bool) error {
	branches := []*xdsmatcherv3.Matcher_OnMatch{m.GetOnNoMatch()}
	branches = slices.AppendSeq(branches, maps.Values(m.GetMatcherTree().GetExactMatchMap().GetMap()))
	for _, one := range m.GetMatcherList().GetMatchers() {
		branches = append(branches, one.GetOnMatch())
	}
	for _, on := range branches {
		if on.GetMatcher() != nil {
			if err := chainNames(on.GetMatcher(), into); err != nil {
				return err
			}
		}
		if on.GetAction() != nil {
			name, err := chainName(on.GetAction())
			if err != nil {
				return err
			}
			into[name] = true
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
