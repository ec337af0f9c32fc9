// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"maps"
	"net/netip"
	"slices"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// onMatch is where a branch of the tree that chooses a filter chain leads; nil leads nowhere, which is the default chain or a closed connection.
type onMatch = xdsmatcherv3.Matcher_OnMatch

// chain ends a branch at a filter chain.
func (p *packer) chain(name string) *onMatch {
	action := &xdscorev3.TypedExtensionConfig{Name: "chain", TypedConfig: p.pack(&wrapperspb.StringValue{Value: name})}
	return &onMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Action{Action: action}}
}

// deeper continues a branch with another decision.
func deeper(m *xdsmatcherv3.Matcher) *onMatch {
	return &onMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Matcher{Matcher: m}}
}

// exact decides by the whole text of an input.
func exact(input *xdscorev3.TypedExtensionConfig, branches map[string]*onMatch, otherwise *onMatch) *xdsmatcherv3.Matcher {
	return &xdsmatcherv3.Matcher{
		MatcherType: &xdsmatcherv3.Matcher_MatcherTree_{MatcherTree: &xdsmatcherv3.Matcher_MatcherTree{
			Input:    input,
			TreeType: &xdsmatcherv3.Matcher_MatcherTree_ExactMatchMap{ExactMatchMap: &xdsmatcherv3.Matcher_MatcherTree_MatchMap{Map: branches}},
		}},
		OnNoMatch: otherwise,
	}
}

// outboundTree chooses the filter chain of an outbound connection: by its original port, then its original address, then, on tlsPort, the server name asked for.
func (p *packer) outboundTree(plan []*portPlan) *xdsmatcherv3.Matcher {
	ports := make(map[string]*onMatch, len(plan)+2)
	// A connection made to the listener itself must not be passed on to its original address, which is the listener's own.
	ports[portText(outboundPort)] = p.chain(closedChain)
	ports[portText(tlsPort)] = p.serverNames(&portPlan{port: tlsPort})
	for _, one := range plan {
		if branch := p.port(one); branch != nil {
			ports[portText(one.port)] = branch
		}
	}
	return exact(constants().portInput, ports, nil)
}

// port decides among the services of one port.
func (p *packer) port(one *portPlan) *onMatch {
	rest := p.rest(one)
	if one.port == tlsPort {
		rest = p.serverNames(one)
	}
	if len(one.addresses) == 0 {
		return rest
	}
	branches := make(map[string]*onMatch, len(one.addresses))
	for _, a := range slices.SortedFunc(maps.Keys(one.addresses), netip.Addr.Compare) {
		branches[a.String()] = p.chain(tcpChain(one.addresses[a].service.Name, one.port))
	}
	return deeper(exact(constants().addressInput, branches, rest))
}

// rest takes what no address and no server name tells apart.
func (p *packer) rest(one *portPlan) *onMatch {
	switch {
	case len(one.http) > 0 && one.port == tlsPort:
		// TLS is no HTTP: what is encrypted goes where it would go without the HTTP services.
		return deeper(exact(constants().transportInput, map[string]*onMatch{"raw_buffer": p.chain(httpChain(one.port))}, nil))
	case len(one.http) > 0:
		return p.chain(httpChain(one.port))
	case one.rest != nil:
		return p.chain(tcpChain(one.rest.service.Name, one.port))
	default:
		return nil
	}
}

// serverNames decides by the name that a TLS client asks for: a service, or one of AWS's own.
func (p *packer) serverNames(one *portPlan) *onMatch {
	list := &xdsmatcherv3.Matcher_MatcherList{}
	for _, name := range slices.Sorted(maps.Keys(one.names)) {
		text := &xdsmatcherv3.StringMatcher{MatchPattern: &xdsmatcherv3.StringMatcher_Exact{Exact: name}}
		list.Matchers = append(list.Matchers, serverName(text, p.chain(tcpChain(one.names[name].service.Name, one.port))))
	}
	aws := &xdsmatcherv3.StringMatcher{MatchPattern: &xdsmatcherv3.StringMatcher_Suffix{Suffix: ".amazonaws.com"}}
	list.Matchers = append(list.Matchers, serverName(aws, p.chain(awsChain)))
	return deeper(&xdsmatcherv3.Matcher{MatcherType: &xdsmatcherv3.Matcher_MatcherList_{MatcherList: list}, OnNoMatch: p.rest(one)})
}

func serverName(text *xdsmatcherv3.StringMatcher, to *onMatch) *xdsmatcherv3.Matcher_MatcherList_FieldMatcher {
	single := &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate{
		Input:   constants().sniInput,
		Matcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_ValueMatch{ValueMatch: text},
	}
	return &xdsmatcherv3.Matcher_MatcherList_FieldMatcher{
		Predicate: &xdsmatcherv3.Matcher_MatcherList_Predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_{SinglePredicate: single}},
		OnMatch:   to,
	}
}

// portRange is the range of one port; Envoy's ranges end before their end.
func portRange(port int32) *typev3.Int32Range { return &typev3.Int32Range{Start: port, End: port + 1} }
