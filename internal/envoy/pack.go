// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"errors"
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// unlimited is the value by which App Mesh switches circuit breakers off.
const unlimited = 1<<31 - 1

// validated is a message with rules of its own. All of Envoy's messages are.
type validated interface {
	proto.Message
	ValidateAll() error
}

// check applies a message's own rules. It does not look into packed messages: those are checked when packed.
func check(m proto.Message) error {
	if v, ok := m.(validated); ok {
		return v.ValidateAll()
	}
	return nil
}

// pack checks a message and wraps it, with the same bytes for the same message.
func pack(m proto.Message) (*anypb.Any, error) {
	packed := new(anypb.Any)
	err := check(m)
	if err == nil {
		err = anypb.MarshalFrom(packed, m, proto.MarshalOptions{Deterministic: true})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return packed, nil
}

// packer packs messages and gathers what goes wrong.
type packer struct{ faults []error }

func (p *packer) pack(m proto.Message) *anypb.Any {
	packed, err := pack(m)
	if err != nil {
		p.faults = append(p.faults, err)
	}
	return packed
}

func (p *packer) err() error { return errors.Join(p.faults...) }

// adsSource says that a resource comes over the proxy's one stream.
func adsSource() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		ResourceApiVersion:    corev3.ApiVersion_V3,
	}
}

// socket is a TCP address. A port out of range is left to the message's own rules.
func socket(host string, port int32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: unsigned(port)},
	}}}
}

// unsigned turns a number of the API into Envoy's; a negative one, which the API does not have, becomes the largest so that Envoy's rules refuse it.
func unsigned(n int32) uint32 {
	if n < 0 {
		return 1<<32 - 1
	}
	return uint32(n)
}

func count(n uint32) *wrapperspb.UInt32Value { return &wrapperspb.UInt32Value{Value: n} }

// span is d for Envoy; less than nothing is nothing, which means "off" wherever it is used.
func span(d time.Duration) *durationpb.Duration { return durationpb.New(max(d, 0)) }

// spanOrDefault is d for Envoy where 0 is no legal value; not set or 0 leaves Envoy's default.
func spanOrDefault(d *mesh.Duration) *durationpb.Duration {
	if d.Span() <= 0 {
		return nil
	}
	return durationpb.New(d.Span())
}
