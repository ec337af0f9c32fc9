// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Traits is what delivery must know of a resource beyond its bytes. The zero value is right for a resource that nothing depends on.
type Traits struct {
	// Endpoints, of a cluster: the name of the ClusterLoadAssignment that must follow whenever the cluster is added or changed; "" for none.
	Endpoints string
	// Warms, of a cluster: it has active health checks, so Envoy does not use it until their first round has ended.
	Warms bool
	// Needs, of a listener or a route configuration: the clusters that it sends requests to.
	Needs []string
	// Origin is what the resource was built from. Delivery never looks at it; it comes back in a Nack and in a ProxyStatus.
	Origin any
}

// Resource is one xDS resource, marshalled once and shared by every proxy that holds it. It is immutable, and Traits must not be changed after NewResource.
type Resource struct {
	Traits
	name    string
	kind    kind
	version string
	// content is replaced by an equal one when the server finds that it holds these bytes already.
	content atomic.Pointer[content]
}

// content is the encoded form of a resource: a whole "resources" field of a DeltaDiscoveryResponse. Its tail from sotw on is a whole
// "resources" field of a DiscoveryResponse, since both have the same number and wire type.
type content struct {
	bytes []byte
	sotw  int
}

// versionBytes of a SHA-256 make a version: 9 are 12 characters, short on the wire and stable over restarts and replicas.
const versionBytes = 9

// NewResource marshals m, which must be a Cluster, ClusterLoadAssignment, Listener or RouteConfiguration that bears this name. Its version is a
// hash of its content. It does not validate m. The error says which resource is at fault and why.
func NewResource(name string, m proto.Message, t Traits) (*Resource, error) {
	if name == "" {
		return nil, errors.New("resource without a name")
	}
	full := string(m.ProtoReflect().Descriptor().FullName())
	k, ok := kindOf(typePrefix + full)
	if !ok {
		return nil, fmt.Errorf("resource %q: type %s is not delivered", name, full)
	}
	if own := ownName(m); own != name {
		return nil, fmt.Errorf("resource %q: the %s inside is named %q", name, full, own)
	}
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("resource %q: marshal %s: %w", name, full, err)
	}
	return newResource(k, name, t, value), nil
}

// NewEncoded is NewResource for a caller that has marshalled the message: pieces that follow each other are its deterministic encoding, which is not looked into. They are copied.
func NewEncoded(typeURL, name string, t Traits, pieces ...[]byte) (*Resource, error) {
	if name == "" {
		return nil, errors.New("resource without a name")
	}
	k, ok := kindOf(typeURL)
	if !ok {
		return nil, fmt.Errorf("resource %q: type %s is not delivered", name, typeURL)
	}
	return newResource(k, name, t, pieces...), nil
}

func newResource(k kind, name string, t Traits, pieces ...[]byte) *Resource {
	r := &Resource{Traits: t, name: name, kind: k, version: hash(pieces)}
	r.content.Store(encode(name, r.version, k.typeURL(), pieces))
	return r
}

// Name returns the resource's name, which is unique within its type.
func (r *Resource) Name() string { return r.name }

// TypeURL returns the type as requests name it, such as "type.googleapis.com/envoy.config.cluster.v3.Cluster".
func (r *Resource) TypeURL() string { return r.kind.typeURL() }

// Version returns the hash of the content, 12 characters; equal content has the same version in every process.
func (r *Resource) Version() string { return r.version }

// Size returns the number of bytes that the resource takes in a delta response.
func (r *Resource) Size() int { return len(r.content.Load().bytes) }

// delta returns the encoded field for a DeltaDiscoveryResponse; callers must not change it.
func (r *Resource) delta() []byte { return r.content.Load().bytes }

// sotw returns the encoded field for a DiscoveryResponse; callers must not change it.
func (r *Resource) sotw() []byte {
	c := r.content.Load()
	return c.bytes[c.sotw:]
}

func ownName(m proto.Message) string {
	switch n := m.(type) {
	case interface{ GetClusterName() string }:
		return n.GetClusterName()
	case interface{ GetName() string }:
		return n.GetName()
	}
	return ""
}

func hash(pieces [][]byte) string {
	h := sha256.New()
	for _, b := range pieces {
		h.Write(b)
	}
	var sum [sha256.Size]byte
	return base64.RawURLEncoding.EncodeToString(h.Sum(sum[:0])[:versionBytes])
}

// encode writes the resource as a field of a DeltaDiscoveryResponse, with the Any last so that it is also a field of a DiscoveryResponse.
func encode(name, version, typeURL string, value [][]byte) *content {
	length := 0
	for _, b := range value {
		length += len(b)
	}
	anySize := fieldSize(len(typeURL)) + fieldSize(length)
	size := fieldSize(len(version)) + fieldSize(len(name)) + fieldSize(anySize)
	b := make([]byte, 0, fieldSize(size))
	b = protowire.AppendTag(b, fieldResources, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size)) //nolint:gosec // a length in memory is never negative
	b = appendString(b, 1, version)
	b = appendString(b, 3, name)
	sotw := len(b)
	b = protowire.AppendTag(b, fieldResources, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(anySize)) //nolint:gosec // a length in memory is never negative
	b = appendString(b, 1, typeURL)
	b = protowire.AppendTag(b, 2, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(length))
	for _, piece := range value {
		b = append(b, piece...)
	}
	return &content{bytes: b, sotw: sotw}
}
